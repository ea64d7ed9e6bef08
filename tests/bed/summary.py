"""The last lines of a run: which Slurm and compiler there was none of, how many proofs it gave, how many it did not."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.bed.slurm.newer import ABSENT
from tests.bicep import compilers

_NOT_TRIED = pytest.StashKey[dict[str, int]]()
"""What there is no program for, and how many tests need it; they are no skips, each with the same reason."""


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected."""
    config.addinivalue_line("markers", "bicep(compiler=False): needs a Bicep compiler, or a checker in its place")
    config.stash[_NOT_TRIED] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot be tried."""
    if compilers.program() is None:
        missing = {"Bicep compiler": [item for item in items if item.get_closest_marker("bicep")]}
    elif compilers.version() is None:
        marked = ((item, item.get_closest_marker("bicep")) for item in items)
        missing = {"compiler (BICEP names a checker)": [item for item, mark in marked if mark and mark.kwargs]}
    else:
        return
    for what, left in missing.items():
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if item not in set(left)]
            config.stash[_NOT_TRIED][what] = len(left)
    if hasattr(config, "workeroutput"):
        config.workeroutput["not_tried"] = config.stash[_NOT_TRIED]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process of pytest-xdist has collected the same."""
    node.config.stash[_NOT_TRIED].update(getattr(node, "workeroutput", {}).get("not_tried", {}))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """After everything that pytest itself prints; the reasons are in its summary (`-ra`)."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", ())}
        for reason in sorted(each for each in reasons if ABSENT in each):
            reporter.write_line(f"not tried: {reason.removeprefix('Skipped: ')}")
        for what, count in session.config.stash[_NOT_TRIED].items():
            reporter.write_line(f"not tried: {count} tests need a {what}: set BICEP, or `make tools`")
        counts = [(what, len(reporter.stats.get(what, ()))) for what in ("passed", "failed", "error", "skipped")]
        told = ", ".join(f"{count} {what}" for what, count in counts if count or what in ("passed", "skipped"))
        reporter.write_line(f"proofs: {told}{', for the reasons above' if counts[-1][1] else ''}")
    return result
