"""Nobody is signed in: one plain line and what to do about it, whatever the verb, and nothing of the libraries."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from generator.words.terminal import on_one_line
from tests.bed.plans import SMALL
from tests.command import COMMAND, ROOT

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
OPTIONS = {
    "deploy": ["--yes"],
    "support": ["--into", "bundle.tar.gz"],
    "stop": ["--yes"],
    "what-if": [],
    "run": ["smoke"],
}
VERBS = (
    "connect", "delete", "deploy", "logs", "nodes", "preflight", "prove", "run", "start", "status", "stop", "support",
    "update", "what-if",
)  # fmt: skip


REPORTS = ("status", "support")
"""Verbs that say of each part why it is not known."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built folder of a user whose machine has ssh, and no az."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "minimal.yaml").write_text(SMALL)
    (folder / "bin").mkdir()
    for name in ("ssh", "sh", "env", "bash"):
        for place in ("/usr/bin", "/bin"):
            if (program := Path(place, name)).exists() and not (folder / "bin" / name).exists():
                (folder / "bin" / name).symlink_to(program)
    (folder / "bin/bicep").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin/bicep").chmod(0o755)
    # The command of `ssh_config`, as it is installed.
    (folder / "bin/cycleforge").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (folder / "bin/cycleforge").chmod(0o755)
    assert types(folder, "build", "minimal.yaml").returncode == 0
    return folder


def types(here: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": str(here / "bin"), "HOME": str(here / "home"), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8",
        "NO_COLOR": "1", "AZURE_TOKEN_CREDENTIALS": "", **more,
    }  # fmt: skip
    return subprocess.run(
        [*COMMAND, *words], cwd=here, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("verb", VERBS)
def test_one_plain_line_and_what_to_do(here: Path, verb: str) -> None:
    more = {"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION, "CYCLECLOUD_ADMIN_PASSWORD": "Go0d-enough"}
    done = types(
        here, verb, "minimal.yaml" if verb in ("deploy", "what-if") else "minimal", *OPTIONS.get(verb, []), **more
    )
    said = done.stdout + done.stderr
    assert done.returncode in (1, 4), said
    assert "not signed in to AzureCloud" in said
    assert r"\n" not in said
    assert said.count("not signed in to") == 1 or verb in REPORTS, said
    for word in (
        "run command",
        "Credential",
        "Attempted",
        "azsdk",
        "kex_exchange",
        "Traceback",
        "az account set",
        "; tried",
    ):
        assert word not in said, said
    if verb != "support":
        assert "install az (https://learn.microsoft.com/cli/azure/install-azure-cli), then az login" in said


@pytest.mark.parametrize("verb", ["logs", "nodes", "start", "stop", "support", "update"])
def test_no_other_way_of_azure_is_announced(here: Path, verb: str) -> None:
    """Without the administrator's password ssh is the first way, and the run command would need the same login."""
    for more in ({"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION}, {}):
        (here / "bundle.tar.gz").unlink(missing_ok=True)
        done = types(here, verb, "minimal", *OPTIONS.get(verb, []), **more)
        said = done.stdout + done.stderr
        assert done.returncode, said
        assert "not signed in to AzureCloud" in said or not more
        assert "run command" not in said


def test_no_subscription_is_chosen(here: Path) -> None:
    done = types(here, "preflight", "minimal")
    assert done.returncode == 2
    assert "install az (" in done.stderr
    assert "az account set" not in done.stderr


def test_who_means_another_login_is_told_what_became_of_it(here: Path) -> None:
    more = {"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION, "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"}
    done = types(here, "preflight", "minimal", **more)
    assert done.returncode == 4
    assert "not signed in to AzureCloud; tried: EnvironmentCredential: Environment variables are not" in done.stdout
    assert r"\n" not in done.stdout


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tried:\n  A: no\n  B: no", "tried: A: no; B: no"),
        ("one", "one"),
        ("", ""),
        ("a\r\nb\x1b[2J", "a; b\\x1b[2J"),
    ],
)
def test_several_lines_in_a_place_for_one(text: str, line: str) -> None:
    assert on_one_line(text) == line


def test_a_login_of_az_that_has_ended_says_so(here: Path) -> None:
    az = here / "bin/az"
    az.write_text("#!/bin/sh\necho 'ERROR: AADSTS70043: The refresh token has expired.' >&2\nexit 1\n")
    az.chmod(0o755)
    try:
        done = types(here, "preflight", "minimal", AZURE_SUBSCRIPTION_ID=SUBSCRIPTION)
    finally:
        az.unlink()
    assert done.returncode == 4
    assert "AADSTS70043" in done.stdout
    assert "hint: az login (" in done.stdout
    assert "Credential" not in done.stdout + done.stderr
