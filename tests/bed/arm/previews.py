"""What-if: a test says what it answers (`State.what_if`), the form is Azure's.

Source: https://learn.microsoft.com/rest/api/resources/deployments/what-if-at-subscription-scope
"""

from __future__ import annotations

from typing import Any

from .answers import Parts, answer
from .exchange import Answer, Asked
from .resources import polling
from .state import Caller, State


@answer("what if")
def what_if(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """202, then the changes."""
    properties = {"correlationId": "c", "changes": []} | state.what_if

    def finish() -> Answer:
        if isinstance(state.what_if.get("error"), dict):
            return Answer(200, {"status": "Failed", "error": state.what_if["error"]})
        return Answer(200, {"status": "Succeeded", "properties": properties})

    return Answer(202, None, polling(state, asked, state.begin(finish).id, "Location"))
