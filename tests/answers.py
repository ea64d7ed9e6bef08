"""What a command answers with --json."""

from __future__ import annotations

import json
from typing import Any


def data_of(out: str) -> Any:
    """The data of the envelope that every answer has."""
    answer = json.loads(out)
    assert list(answer) == ["format", "verb", "ok", "exit_code", "errors", "data"]
    assert (answer["format"], answer["ok"]) == (1, answer["exit_code"] == 0)
    return answer["data"]
