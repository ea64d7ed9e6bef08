"""Servers for the tests of the bootstrap; each has its own folder and ports, so tests may run side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.bed.server.harness import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Servers of a given plan, closed after the test."""
    servers: list[Server] = []

    def make(*args: Any, **kwargs: Any) -> Server:
        servers.append(Server(tmp_path / str(len(servers)), *args, **kwargs))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def server(make_server: Callable[..., Server]) -> Server:
    return make_server()
