"""The login of the CLI on every known and every plausible release: two ways, no dialogue, no locked account."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.bed.server.fakes.accounts import Accounts
from tests.bed.server.fakes.releases import CLI_8_6_1, CLI_8_10, KNOWN, Release, unknown, works
from tests.bed.server.harness import ADMIN_PASSWORD, TIME_SCALE
from tests.bed.server.program import context, module, run_steps

if TYPE_CHECKING:
    from tests.bed.server.harness import Server

GIVEN = {"--batch", "--force", "--verify-ssl=false"}


def log_in(server: Server, release: Release, scale: float = TIME_SCALE, password: str = ADMIN_PASSWORD) -> Any:
    """A first boot up to the login; the error, or None. `scale` as in the harness."""
    site = server.site
    site.cli = release
    site.accounts = Accounts(scale, {"ccadmin": password}, late=site.accounts.late)
    (server.fake / "packages/cyclecli/util.py").rename(server.fake / "packages/cyclecli/kept")
    if release.encodes:
        (server.fake / "packages/cyclecli/util.py").symlink_to("kept")
    (server.root / "var/lib/cycleforge/state.json").unlink(missing_ok=True)
    problem = run_steps(context(server, CYCLEFORGE_TIME_SCALE=str(scale)), "cli", "login")
    (server.fake / "packages/cyclecli/util.py").unlink(missing_ok=True)
    (server.fake / "packages/cyclecli/kept").rename(server.fake / "packages/cyclecli/util.py")
    return problem


def calls(server: Server, word: str) -> list[dict[str, Any]]:
    return [call for call in server.site.calls if call["name"] == "cyclecloud" and call["argv"][0] == word]


@pytest.mark.parametrize("release", KNOWN, ids=str)
def test_known_releases(server: Server, release: Release) -> None:
    server.unpack()
    assert log_in(server, release) is None
    (called,) = calls(server, "initialize")
    assert set(called["argv"]) >= GIVEN
    assert not called["terminal"]
    assert not [word for call in server.site.calls for word in call["argv"] if word.startswith("--config")]
    home = server.root / "run/cycleforge/home"
    for call in calls(server, "initialize") + calls(server, "account"):
        assert f"\0HOME={home}\0" in f"\0{call['environment']}\0"
        assert "\0PYTHONPATH=" not in f"\0{call['environment']}"
    config = home / ".cycle/config.ini"
    assert ("by=initialize" in config.read_text()) == (release != CLI_8_10), "the file is the second way"
    assert [path.stat().st_mode & 0o777 for path in (home, config)] == [0o700, 0o600]
    assert server.site.accounts.failures == 0


def test_every_plausible_release_logs_in_or_says_why_not(server: Server) -> None:
    """24 mixes, each with at most four tries."""
    server.unpack()
    server.site.accounts.late = 0
    seen = set()
    for release in unknown():
        before = len(server.site.calls)
        problem = log_in(server, release, scale=0.001)
        assert (problem is None) == works(release), (release, problem)
        seen.add(problem is None)
        made = [call["argv"][0] for call in server.site.calls[before:] if call["name"] == "cyclecloud"]
        assert made.count("initialize") <= 2, release
        assert made.count("account") <= 4, release
        assert server.site.accounts.failures <= 4, release
        assert server.site.accounts.locks == 0
        if problem is not None:
            assert "cyclecloud" in problem.message or "encode" in problem.message, problem.message
            assert not (server.root / "run/cycleforge/home/.cycle").exists(), "what failed is no login for the next"
    assert seen == {True, False}


def test_an_exit_status_alone_is_no_proof(server: Server) -> None:
    server.unpack()
    problem = log_in(server, replace(CLI_8_6_1, absent="in other words", reads_cycleserver=True), scale=0.001)
    assert "`cyclecloud account show` does not show that the CLI is logged in: no such credentials" in problem.message


def test_the_way_that_writes_the_file_shows_the_password_to_nobody(server: Server) -> None:
    server.unpack()
    assert log_in(server, CLI_8_10) is None
    text = (server.root / "run/cycleforge/home/.cycle/config.ini").read_text()
    assert text.startswith("[cycleserver]\n")
    assert "auth_option=username_password" in text
    assert "w(o)rd" not in text
    recorded = (server.fake / "recorded.log").read_text()
    assert "python3 -I -B -c import sys" in recorded
    assert "w(o)rd" not in recorded


def test_password_that_becomes_effective_late(server: Server) -> None:
    server.unpack()
    server.site.accounts.late = 2
    assert log_in(server, CLI_8_6_1) is None
    assert server.site.accounts.failures == 2
    assert len(calls(server, "initialize")) == 1, "the CLI is asked only with a password that the site accepts"


def test_wrong_password_does_not_lock_the_administrator(server: Server) -> None:
    server.unpack()
    problem = log_in(server, CLI_8_6_1, password="another one")
    assert problem.permanent
    assert "does not accept the administrator's password" in problem.message
    assert server.site.accounts.failures == module("login").REFUSALS < 5
    assert calls(server, "initialize") == []


def test_a_killed_try_counts(server: Server) -> None:
    """The next run keeps the distance, too: how often a boot is interrupted must not decide about the lock."""
    server.unpack()
    server.site.faults.kill_after = "cyclecloud initialize"
    assert server.run().returncode == -9
    assert server.run().returncode == 0
    assert server.step("login")["seconds"] >= 60
    again = server.status()
    assert again["state"] == "succeeded"


def test_the_lock_of_the_stand_in() -> None:
    """What the tests above rely on."""
    accounts = Accounts(1e-9, {"a": "right"})
    for _ in range(9):
        assert not accounts.accept("a", "wrong")
    assert accounts.locks == 0, "more than 60 s apart"
    accounts = Accounts(1e9, {"a": "right"})
    for _ in range(5):
        assert accounts.accept("a", "right")
        assert not accounts.accept("a", "wrong")
    assert accounts.locks == 1
    assert not accounts.accept("a", "right")
