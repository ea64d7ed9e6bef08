"""Errors of the template reader: each names the line."""

from __future__ import annotations


class TemplateSyntaxError(ValueError):
    """The text is not a CycleCloud template; `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


class ExpressionError(ValueError):
    """The text is not a ClassAd expression; the reader of the template adds the line."""


class EvaluationError(ValueError):
    """A well-formed expression has no value here: an unknown function or name, or operands that do not fit."""
