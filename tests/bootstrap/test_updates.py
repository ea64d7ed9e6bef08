"""dnf does not take CycleCloud along."""

from __future__ import annotations

from configparser import ConfigParser
from typing import TYPE_CHECKING

import pytest

from tests.bed.server.program import context, run_steps

if TYPE_CHECKING:
    from tests.bed.server.harness import Server

ALMA = (
    "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\nskip_if_unavailable=False\n"
)
"""/etc/dnf/dnf.conf of AlmaLinux 8 and 9."""

OURS = {"cyclecloud*", "jetpack8"}


@pytest.mark.parametrize(
    ("before", "others"),
    [
        (ALMA, set()),
        (ALMA + "exclude=kernel* kmod-nvidia\n", {"kernel*", "kmod-nvidia"}),
        (ALMA + "excludepkgs = kernel*, jetpack8\n", {"kernel*"}),
        (ALMA + "excludepkgs=\n", set()),
        ("", set()),
        ("[other]\nexclude=x\n", set()),
        ("[main]\n[other]\nexclude=x\n", set()),
    ],
    ids=["as shipped", "others", "half", "empty value", "empty file", "no main", "other section"],
)
def test_packages_are_excluded_once(server: Server, before: str, others: set[str]) -> None:
    path = server.root / "etc/dnf/dnf.conf"
    path.parent.mkdir(parents=True)
    path.write_text(before)
    path.chmod(0o644)
    server.unpack()
    assert run_steps(context(server), "updates") is None
    after = path.read_text()
    parser = ConfigParser()
    parser.read_string(after)
    main = parser["main"]
    excluded = main.get("exclude", main.get("excludepkgs", "")).replace(",", " ").split()
    assert set(excluded) == OURS | others
    assert len(excluded) == len(set(excluded))
    assert [
        line for line in before.splitlines() if line not in after.splitlines() and not line.startswith("excl")
    ] == []
    if parser.has_section("other") and "exclude=x" in before:
        assert parser["other"]["exclude"] == "x"
    assert path.stat().st_mode & 0o777 == 0o644
    assert run_steps(context(server), "updates") is None
    assert path.read_text() == after


def test_yum_conf_that_is_a_link_stays_one(server: Server) -> None:
    (server.root / "etc").mkdir(exist_ok=True)
    (server.root / "etc/real.conf").write_text(ALMA)
    (server.root / "etc/yum.conf").symlink_to("real.conf")
    server.unpack()
    assert run_steps(context(server), "updates") is None
    assert (server.root / "etc/yum.conf").is_symlink()
    assert "excludepkgs=cyclecloud* jetpack8" in (server.root / "etc/real.conf").read_text()


def test_a_system_without_dnf_has_nothing_to_do(server: Server) -> None:
    server.unpack()
    assert run_steps(context(server), "updates") is None
    assert not (server.root / "etc/dnf").exists()
