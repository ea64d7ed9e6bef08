"""One cluster for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runs.bed import User, a_user


@pytest.fixture(scope="session")
def _user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    with a_user(tmp_path_factory.mktemp("runs")) as user:
        yield user


@pytest.fixture
def user(_user: User) -> Iterator[User]:
    """Whose cluster has no jobs when a test begins and ends."""
    yield _user
    _user.keeps()
    _user.cloud.slurm("scancel", "--quiet", "--user=root")
