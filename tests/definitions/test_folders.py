"""What must hold for every deployment folder, whatever its text."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
import yaml

from generator.files import assets
from tests.bed.plans import slurm_of
from tests.bicep.compilers import findings_below
from tests.definitions.build import NAMES, checked, path_of, rendered, write

SHELLCHECK = Path(sys.executable).parent / "shellcheck"


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every deployment folder, written once."""
    top = tmp_path_factory.mktemp("folders")
    for each in NAMES:
        write(rendered(each), top / each)
    return {each: top / each for each in NAMES}


@pytest.fixture(scope="module")
def folder(name: str, folders: dict[str, Path]) -> Path:
    return folders[name]


@pytest.fixture(scope="module")
def bicep_findings(folders: dict[str, Path]) -> dict[str, list[str]]:
    return findings_below({name: folder / "main.bicep" for name, folder in folders.items()})


def test_no_problem_of_any_level(name: str) -> None:
    """But for the note that nothing is fetched here, which depends on the machine."""
    assert [problem for problem in checked(name).problems if problem.rule_id != "I1591"] == []


def test_all_shipped_definitions_are_tested() -> None:
    """Shipped is what git tracks: users keep definitions of their own beside them."""
    command = ["git", "-C", str(assets.root()), "ls-files", "cluster_defs/*.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"not a git checkout: {done.stderr.strip()}")
    assert sorted(Path(name).stem for name in done.stdout.split()) == sorted(NAMES)


def test_the_layout_of_the_folder(name: str) -> None:
    top = {path.parts[0] for path in rendered(name)}
    expected = {
        "main.bicep",
        "main.bicepparam",
        "modules",
        "bootstrap",
        "cluster",
        "projects",
        "jobs",
        "effective.yaml",
        "manifest.json",
        "README.md",
        "operations.md",
        "firewall-rules.json",
        "ssh_config",
        "ssh_hosts",
        ".envrc.template",
        ".gitignore",
    }
    assert top == expected


def test_the_manifest_names_every_file_with_its_digest(name: str) -> None:
    files = rendered(name)
    manifest = json.loads(files[PurePosixPath("manifest.json")].content)
    digests = {
        str(path): hashlib.sha256(file.content).hexdigest()
        for path, file in files.items()
        if path.name != "manifest.json" or len(path.parts) > 1
    }
    assert manifest["files"] == digests


def test_effective_yaml_can_be_read_by_everybody(name: str) -> None:
    content = yaml.safe_load(rendered(name)[PurePosixPath("effective.yaml")].content)
    assert content["definition"]["name"] == name
    assert content["derived"]["slurm"]["node_arrays"]


def test_no_secret_path_or_time_is_in_any_file(name: str) -> None:
    patterns = {
        "private key": rb"BEGIN [A-Z ]*PRIVATE KEY",
        "account key": rb"AccountKey=[A-Za-z0-9+/]{20}",
        "home folder": path_pattern(Path.home()),
        "checkout": path_pattern(assets.root()),
        "date": rb"20[2-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:",
    }
    for path, file in rendered(name).items():
        if path.parts[:2] == ("bootstrap", "payload"):
            continue
        for what, pattern in patterns.items():
            assert re.search(pattern, file.content) is None, f"{what} in {path}"


def path_pattern(path: Path) -> bytes:
    """The path as such, not as part of another word: `/main` is not in `./main.bicep`."""
    return rb"(?<![\w./-])" + re.escape(str(path)).encode() + rb"(?![\w.-])"


@pytest.mark.bicep
def test_bicep(name: str, bicep_findings: dict[str, list[str]]) -> None:
    assert bicep_findings[name] == []


def test_every_shell_script_is_clean(folders: dict[str, Path]) -> None:
    """Each distinct script once: the definitions share most of them. tests/projects has those of the projects, and
    tests/jobs what a recipe's folder holds as it stands.
    """
    recipes = {path.read_bytes() for path in assets.folder("recipes").rglob("*.sh")}
    assert recipes
    seen: set[bytes] = set()
    for folder in folders.values():
        scripts = [path for path in sorted(folder.rglob("*")) if path.is_file() and is_shell(path)]
        scripts = [path for path in scripts if not path.is_relative_to(folder / "projects")]
        new = [path for path in scripts if path.read_bytes() not in seen | recipes]
        seen |= {path.read_bytes() for path in new}
        command = [str(SHELLCHECK), "-x", "-P", "SCRIPTDIR", *map(str, new)]
        assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""
        for script in new:
            shell = "sh" if script.read_bytes().startswith(b"#!/bin/sh") else "bash"
            assert subprocess.run([shell, "-n", str(script)], capture_output=True, check=False).stderr == b""
    assert len(seen) > len(NAMES)


def is_shell(path: Path) -> bool:
    """A script by its first line, or a sourced one by its ending."""
    first = path.read_bytes()[:40].split(b"\n")[0]
    return (first.startswith(b"#!") and b"sh" in first and b"python" not in first) or path.suffix in (".sh", ".sbatch")


def test_every_python_file_parses_with_the_servers_python(folder: Path) -> None:
    files = sorted((folder / "bootstrap").rglob("*.py"))
    assert files
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_the_readme_gives_the_exact_commands(name: str) -> None:
    text = rendered(name)[PurePosixPath("README.md")].content.decode()
    plan = checked(name).plan
    assert plan is not None
    for part in (
        f"az deployment sub create --name {plan.name}-{plan.location} --location {plan.location}",
        "main.bicep",
        "az deployment sub show",
        "sbatch",
        f"cyclecloud terminate_cluster {slurm_of(plan).cluster_name}",
        f"az group delete --name {plan.resource_group}",
        "cyclecloud project upload azure-storage",
    ):
        assert part in text, part


def test_two_builds_are_identical_wherever_and_whenever(name: str, tmp_path: Path) -> None:
    """Other working folder, locale, time zone, hash seed and umask; the definition read through another path."""
    copy = tmp_path / "elsewhere" / path_of(name).name
    copy.parent.mkdir()
    copy.write_bytes(path_of(name).read_bytes())
    environment = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
        "PYTHONHASHSEED": "4711",
        "HOME": "/nonexistent",
    }
    script = 'umask 077; exec "$0" -m generator build "$1" --out "$2"'
    environment["PYTHONPATH"] = str(assets.root())
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, str(copy), str(tmp_path / "out")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    built = tmp_path / "out" / name
    found = {PurePosixPath(path.relative_to(built)): path for path in built.rglob("*") if path.is_file()}
    assert set(found) == set(rendered(name))
    for path, file in rendered(name).items():
        assert found[path].read_bytes() == file.content, path
        assert bool(found[path].stat().st_mode & 0o111) == file.executable, path
