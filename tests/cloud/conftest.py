"""What most tests of this folder begin with."""

from __future__ import annotations

import pytest

from tests.bed.cloud import Cloud


@pytest.fixture
def cloud(running: Cloud) -> Cloud:
    """The cluster that the module has started as `running`, as it was then."""
    running.restore()
    return running
