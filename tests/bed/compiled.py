"""`pytest --collect-only -p tests.bed.compiled` loads every test file and makes no test of it.

So each file is rewritten for pytest's messages and kept compiled, in half the time of a whole collection. And what
Hypothesis finds out once, it keeps for the processes that follow.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem() -> list[pytest.Item]:
    """Nothing, whatever the name in the file stands for."""
    return []


def pytest_collection_finish() -> None:
    """The letters of Unicode: over a second, which else each process takes that makes a text before one has ended."""
    st.text().validate()
