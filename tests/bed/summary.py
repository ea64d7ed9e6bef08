"""The last lines of a run: which Slurm there was none of, how many proofs it gave, and how many it did not."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.bed.slurm.newer import ABSENT


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """After everything that pytest itself prints; the reasons are in its summary (`-ra`)."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", ())}
        for reason in sorted(each for each in reasons if ABSENT in each):
            reporter.write_line(f"not tried: {reason.removeprefix('Skipped: ')}")
        counts = [(what, len(reporter.stats.get(what, ()))) for what in ("passed", "failed", "error", "skipped")]
        told = ", ".join(f"{count} {what}" for what, count in counts if count or what in ("passed", "skipped"))
        reporter.write_line(f"proofs: {told}{', for the reasons above' if counts[-1][1] else ''}")
    return result
