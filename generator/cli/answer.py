"""What this command answers with --json: one envelope around the data of any verb, printed once its exit code is known.

docs/programs.md describes it.
"""

from __future__ import annotations

FORMAT = 1
OLD = "CYCLEFORGE_JSON_FORMAT"
"""With 0 the data is printed alone, as before there was an envelope; for one release."""


class Answer:
    """Of one command."""

    verb: str | None = None
    data: object = None
    is_given = False
    """Whether the verb has given its data; one that fails before answers with its error."""
    is_printed = False
    """Whether it stands on standard output, or was to: there is one value only."""

    def envelope(self, exit_code: int, error: dict[str, str | None] | None = None) -> dict[str, object]:
        """What is printed; `error` is what has ended the command."""
        errors = [] if error is None else [error]
        data = self.data if self.is_given else {"ok": False, "errors": errors}
        if self.is_given and isinstance(data, dict):
            errors = [*data.get("errors", ()), *errors]
        ok = exit_code == 0
        return {"format": FORMAT, "verb": self.verb, "ok": ok, "exit_code": exit_code, "errors": errors, "data": data}


now = Answer()
