"""`cycleforge support`: everything that helps, and no secret of any kind from any source."""

from __future__ import annotations

import json
import shutil
import stat
import tarfile
from pathlib import Path

import pytest

from generator.cyclecloud.hide import FORMS, Hide
from generator.cyclecloud.logs import CUT, MOST_BYTES
from tests.verbs.place import Living
from tests.what_if.place import PASSWORD

SUPPORT = ("support", "minimal.yaml")
KEY = "A1b2C3d4E5f6G7h8" * 5 + "A1b2C3=="
KEY86 = ("Zx9+/" * 20)[:86] + "=="
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4eHgifQ.c2lnbmF0dXJl"
PLANTED = {
    "private key": ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n-----END OPENSSH PRIVATE KEY-----",
                    "b3BlbnNzaC1rZXktdjE"),
    "signature of a SAS": ("https://a.blob.core.windows.net/c?sv=2024&sig=q1W2e3R4%2Bt5&se=x", "q1W2e3R4"),
    "authorization": ("curl said bearer abcdef0123456789", "abcdef0123456789"),
    "JSON web token": (f"got {JWT} back", "eyJzdWIiOiJ4eHgifQ"),
    "key of an account": (f"the account has {KEY86} today", KEY86),
    "client secret": ("login with abc8Q~0123456789abcdef0123456789abcdef01 failed", "8Q~0123456789abcdef"),
    "token of a service": ("HF hf_abcdefghijklmnopqrstuvwxyz", "hf_abcdefghijkl"),
    "password in an address": ("proxy http://ada:pr0xyw0rd@10.0.0.4:3128", "pr0xyw0rd"),
    "header": ("Authorization: Basic dTpwYXNz", "dTpwYXNz"),
    "named line": ("webServerKeystorePass = change it please", "change it please"),
    "named value": ('{"adminPassword": {"value": "n4med v4lue"}, "tokens": ["t0k3n-one"], '
                    '"x": "\\"api_key\\":\\"k3y-two\\""}', "n4med v4lue"),
    "named option": ("ran cyclecloud initialize --batch --password 0ption-w0rd", "0ption-w0rd"),
    "named element": ("<StoragePassword>el3ment</StoragePassword>", "el3ment"),
    "login of curl": ("+ curl -fsS -u ada:cUrl-w0rd https://host", "cUrl-w0rd"),
    "login of the command line": ("[cycleserver]\nkey=OjM5Mzk5", "OjM5Mzk5"),
}  # fmt: skip
"""Form → a text with a secret of it, and the part that must be gone."""
CONNECTION = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c0nnect-k3y;EndpointSuffix=core.windows.net"
GONE = ["l1teral one", "c0nnect-k3y"] + [gone for _, gone in PLANTED.values()] + ["t0k3n-one", "k3y-two", PASSWORD]
EVERYTHING = "\n".join(text for text, _ in PLANTED.values()) + f"\nand {PASSWORD} itself\nthis stays\n"


def test_every_form_has_its_example() -> None:
    assert PLANTED.keys() == {name for name, _, _ in FORMS}


@pytest.mark.parametrize("name", PLANTED)
def test_each_form_is_hidden_by_its_own_rule(name: str) -> None:
    text, gone = PLANTED[name]
    shown, count = Hide([]).clean(f"before\n{text}\nafter")
    assert gone not in shown
    assert count
    assert shown.startswith("before\n")
    assert shown.endswith("\nafter")


@pytest.mark.parametrize("word", ["a", "-", "<a", "eyJ", "https", "password", '{"', "= ", "'"])
def test_a_long_word_takes_no_longer_than_many_short_ones(word: str) -> None:
    """A form that begins anew at each letter of a word would not end with this test."""
    Hide([]).clean(word * (200_000 // len(word)))


def test_a_known_secret_is_found_in_every_spelling() -> None:
    secret = "a'd\"m`i$n\\ %p;&<x>é"
    hide = Hide([secret])
    spelled = json.dumps({"x": f"_{secret}_"}) + f" {secret!r} _{secret}_"
    assert "m`i$n" not in hide.clean(spelled)[0]
    assert Hide(["abc"]).clean("abc")[0] == "abc"


@pytest.fixture
def planted(living: Living) -> Living:
    """A secret of every kind in every source."""
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    living.deployment("0" * 16, {"note": {"type": "String", "value": EVERYTHING}}, operation=EVERYTHING)
    failed = {"Name": "htc-1", "Template": "htc", "Status": "Failed", "State": "Started", "TargetState": "Started"}
    living.runs({**failed, "StatusMessage": EVERYTHING})
    living.also_reaches("htc-1")
    living.slurm.nodes = {"htc-1": ("htc", "DOWN+CLOUD", EVERYTHING.replace("\n", " "))}
    living.slurm.config["Comment"] = EVERYTHING
    living.slurm.jobs = [("1", "ada", "htc", "RUNNING", "1:00", "htc-1", EVERYTHING)]
    living.slurm.says = EVERYTHING
    living.site.programs["cycle_server"] = lambda *_: {"output": json.dumps([{"Message": EVERYTHING}])}
    root, output = living.folder / "root", living.folder / "output/minimal"
    for path in (
        "var/lib/cycleforge/status.json", "var/log/cycleforge/bootstrap.log", "opt/cycle_server/logs/cycle_server.log",
        "var/log/slurmctld/slurmctld.log", "var/log/slurmd/slurmd.log", "opt/cycle/jetpack/logs/jetpack.log",
        "sched/cycleforge-health/htc-1.json",
    ):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(EVERYTHING)
    for plan in (
        output / "effective.yaml",
        output / "cluster/minimal.txt",
        output / "ssh_config",
        living.folder / "minimal.yaml",
    ):
        plan.write_text(plan.read_text() + "".join(f"# {line}\n" for line in EVERYTHING.splitlines()))
    for path, more in (
        ("manifest.json", {"note": EVERYTHING}),
        (
            "cluster/minimal.params.json",
            {"Password": "l1teral one", "Note": {"connectionString": {"value": CONNECTION}}},
        ),
    ):
        values = json.loads((output / path).read_text())
        (output / path).write_text(json.dumps(values | more))
    return living


def contents(path: Path) -> dict[str, str]:
    """Name → text."""
    with tarfile.open(path) as archive:
        return {each.name: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]


def test_no_secret_of_any_source_is_in_it(planted: Living) -> None:
    code, _, err = planted(*SUPPORT)
    files = contents(planted.folder / "minimal-support.tar.gz")
    index = files["index.txt"]
    assert code == 0, f"{err}\n{index}"
    for name, text in files.items():
        assert [gone for gone in GONE if gone in text] == [], name
    stays = [name for name, text in files.items() if "this stays" in text]
    for source in ("plan/effective.yaml", "plan/cluster/minimal.txt", "plan/definition.yaml", "plan/manifest.json",
                   "deployment/record.json", "deployment/operations",
                   "server/first-boot.json", "cluster/events.json", "cluster/nodes.json", "slurm/nodes.txt",
                   "slurm/config.txt", "slurm/jobs.txt", "slurm/reasons.txt", "bootstrap.log", "cycle_server.log",
                   "slurmctld.log", "nodes/htc-1", "health/htc-1.json"):  # fmt: skip
        assert any(source in name for name in stays), (source, sorted(files))
    assert planted.changes == []
    assert "nothing is missing" in index


def test_it_is_private_and_the_same_each_time(planted: Living) -> None:
    assert planted(*SUPPORT)[0] == 0
    first = planted.folder / "minimal-support.tar.gz"
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert planted(*SUPPORT, "--into", "again.tar.gz")[0] == 0
    assert (planted.folder / "again.tar.gz").read_bytes() == first.read_bytes()
    code, _, err = planted(*SUPPORT)
    assert (code, "already exists" in err) == (5, True)


def test_what_is_silent_is_named_and_costs_nothing_else(planted: Living) -> None:
    planted.has_no_path_to("scheduler")
    planted.has_no_path_to("htc-1")
    code, _, err = planted(*SUPPORT)
    files = contents(planted.folder / "minimal-support.tar.gz")
    absent = files["index.txt"].partition("Not in it, and why:")[2]
    assert code == 1
    for name in ("scheduler: ", "slurm: the scheduler cannot be reached", "health: ", "nodes/htc-1: "):
        assert name in absent, absent
    assert "cluster/nodes.json" in files
    assert "missing: slurm" in err


def test_it_has_limits(planted: Living, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a long log is taken, from the beginning of a line; and what is too much is named."""
    log = planted.folder / "root/var/log/slurmctld/slurmctld.log"
    row = f"password=hunter22 {'x' * 900} slurmctld says something\n"
    log.write_text(row * 2000)
    assert planted(*SUPPORT)[0] == 0
    (text,) = (
        text for name, text in contents(planted.folder / "minimal-support.tar.gz").items() if "slurmctld" in name
    )
    assert text.startswith(f"{CUT}\npassword=*** xxx")
    assert 900_000 < len(text) <= MOST_BYTES + len(CUT) + 1
    monkeypatch.setattr("generator.cyclecloud.bundle.MOST_TOGETHER", 1_000_000)
    assert planted(*SUPPORT, "--into", "small.tar.gz")[0] == 1
    files = contents(planted.folder / "small.tar.gz")
    assert sum(map(len, files.values())) < 1_100_000
    assert "slurmctld.log: the archive has 1 MB without it" in files["index.txt"]
    shutil.rmtree(planted.folder / "root/sched/cycleforge-health")
    assert "health: /sched/cycleforge-health cannot be read" in planted(*SUPPORT, "--into", "third.tar.gz")[2]


def test_an_archive_that_cannot_be_written_leaves_nothing(planted: Living) -> None:
    code, _, err = planted(*SUPPORT, "--into", "no/such/folder.tar.gz")
    assert (code, "cannot write" in err) == (5, True)
    assert not list(planted.folder.glob("*.tar.gz*"))


def test_print_asks_nobody(living: Living) -> None:
    code, out, _ = living(*SUPPORT, "--print")
    assert (code, living.site.calls, living.arm.requests) == (0, [], [])
    assert "scontrol show config" in out
    assert "sudo tail" in out
