"""What a deployment asks for: secrets, what unset variables left open, and the environment that it reads."""

from __future__ import annotations

import re

from ...records import record


@record
class Asked:
    """A value that the definition left to an unset environment variable and that is asked for at deployment.

    It becomes the parameter `parameter` of `main.bicep` without a default; `main.bicepparam` reads it from the
    environment variable `variable`.
    """

    variable: str
    parameter: str
    description: str

    @property
    def title(self) -> str:
        """The description without its end: what is asked for, in the middle of a sentence."""
        return self.description.split(":")[0].rstrip(".")


@record
class PasswordRule:
    """What a password needs; `text` completes "it must have …"."""

    text: str
    pattern: str
    """Of the whole of a password that keeps to the rule; a dot is any character."""


@record
class SecretPlan:
    """A secure parameter of `main.bicep`; its value is never in any file."""

    parameter: str
    variable: str
    description: str
    prompt: str
    """What the server asks for when it has to repeat its first boot."""
    min_length: int
    max_length: int
    """In characters."""
    needs: tuple[PasswordRule, ...]

    def broken_by(self, value: str) -> tuple[str, ...]:
        """Return the texts of the rules that the value breaks; none of them has any of it."""
        return tuple(rule.text for rule in self.needs if not re.fullmatch(rule.pattern, value, re.DOTALL))

    @property
    def title(self) -> str:
        """The description without its end: what is asked for, in the middle of a sentence."""
        return self.description.split(":")[0].rstrip(".")


@record
class Variable:
    """An environment variable that the definition names, or that a secret parameter is read from."""

    name: str
    description: str
    secret: bool
    default: str | None
    example: str
