"""Released versions do not change: the check, the bump, kills between its two writes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from generator.errors import CannotRead, CannotWrite
from generator.files import assets
from generator.plan.common_checks import common_table
from generator.projects import lock as lock_module
from generator.projects.content import contents, digest
from generator.projects.ini import ProjectUnreadable, read_project
from generator.projects.lock import bump, check, next_version, read_lock, shipped_problems

NAMES = ("misc_ndv4", "misc_ubuntu", "pyxis_enroot", "slurm_nhc", "slurm_policy")


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """A copy of the shipped projects as version 1.0.0, whose lock is up to date."""
    root = tmp_path / "projects"
    shutil.copytree(assets.folder("projects"), root)
    (root / "projects.lock.json").unlink(missing_ok=True)
    for name in NAMES:
        file = root / name / "project.ini"
        file.write_text(file.read_text().replace(f"version = {read_project(root / name).version}", "version = 1.0.0"))
        bump(root / name)
    return root


def script(projects: Path, name: str = "misc_ubuntu") -> Path:
    return next((projects / name / "specs/default/cluster-init/scripts").glob("*.sh"))


def test_the_shipped_lock_is_clean() -> None:
    assert shipped_problems(NAMES) == ()


def test_a_changed_script_is_a_problem_whose_fix_is_one_command(projects: Path) -> None:
    script(projects).write_text("#!/usr/bin/env bash\necho changed\n")
    (problem,) = shipped_problems(NAMES, projects)
    assert problem.fix == "cycleforge project bump misc_ubuntu"
    assert problem.message == "project 'misc_ubuntu' has changed, but its version is still 1.0.0"
    assert (problem.file, problem.line) == (projects / "misc_ubuntu/project.ini", 4)


def test_the_bump_makes_it_clean_and_keeps_the_old_digest(projects: Path) -> None:
    old = read_lock(projects / "projects.lock.json")
    script(projects).write_text("#!/usr/bin/env bash\necho changed\n")
    done = bump(projects / "misc_ubuntu")
    assert done is not None
    assert (done.old, done.new) == ("1.0.0", "1.0.1")
    assert shipped_problems(NAMES, projects) == ()
    now = read_lock(projects / "projects.lock.json")
    assert now["misc_ubuntu"]["1.0.0"] == old["misc_ubuntu"]["1.0.0"]
    assert now["misc_ubuntu"]["1.0.1"] == done.digest
    assert "version = 1.0.1\n" in (projects / "misc_ubuntu/project.ini").read_text()


def test_a_bump_without_a_change_does_nothing(projects: Path) -> None:
    before = (projects / "projects.lock.json").read_bytes()
    assert bump(projects / "misc_ubuntu") is None
    assert (projects / "projects.lock.json").read_bytes() == before


def test_a_version_that_is_taken_elsewhere_gets_a_next_one(projects: Path) -> None:
    """Whether the lock has never heard of it, or thinks that it is this content."""
    lock_file = projects / "projects.lock.json"
    lock_file.unlink()
    for wanted in ("1.0.1", "1.0.2"):
        done = bump(projects / "misc_ubuntu", taken=True)
        assert done is not None
        assert done.new == wanted
    assert list(read_lock(lock_file)["misc_ubuntu"]) == ["1.0.1", "1.0.2"]
    assert bump(projects / "misc_ubuntu") is None


@pytest.mark.parametrize(("part", "wanted"), [("patch", "1.9.10"), ("minor", "1.10.0"), ("major", "2.0.0")])
def test_next_versions(part: lock_module.Part, wanted: str) -> None:
    assert next_version("1.9.9", part) == wanted


@pytest.mark.parametrize("version", ["1.0", "1.0.0-x", "01.0.0", "v1.0.0", ""])
def test_only_three_numbers_have_a_next_version(version: str) -> None:
    with pytest.raises(ValueError, match="three numbers"):
        next_version(version)


def test_other_bytes_of_project_ini_stay(projects: Path) -> None:
    file = projects / "misc_ubuntu/project.ini"
    file.write_bytes(b"# version = 1.0.0\r\n[project]\r\nname = misc_ubuntu\r\nVersion=1.0.0  \r\nlabel = 1.0.0\r\n")
    bump(projects / "misc_ubuntu", "minor")
    assert (
        file.read_bytes()
        == b"# version = 1.0.0\r\n[project]\r\nname = misc_ubuntu\r\nVersion=1.1.0  \r\nlabel = 1.0.0\r\n"
    )


def test_a_version_that_somebody_raised_is_recorded_as_it_is(projects: Path) -> None:
    file = projects / "slurm_nhc/project.ini"
    file.write_text(file.read_text().replace("1.0.0", "3.0.0"))
    (problem,) = shipped_problems(NAMES, projects)
    assert problem.message == "version 3.0.0 of project 'slurm_nhc' is not in the lock"
    done = bump(projects / "slurm_nhc")
    assert done is not None
    assert (done.old, done.new) == ("3.0.0", "3.0.0")
    assert shipped_problems(NAMES, projects) == ()


def test_a_version_that_went_back_is_a_problem(projects: Path) -> None:
    file = projects / "slurm_nhc/project.ini"
    file.write_text(file.read_text().replace("1.0.0", "0.9.0"))
    (problem,) = shipped_problems(NAMES, projects)
    assert "older than the released 1.0.0" in problem.message
    done = bump(projects / "slurm_nhc")
    assert done is not None
    assert done.new == "1.0.1"


def test_versions_are_numbers(projects: Path) -> None:
    file = projects / "slurm_nhc/project.ini"
    for version in ("1.9.0", "1.10.0"):
        file.write_text(file.read_text().replace(read_project(projects / "slurm_nhc").version, version))
        bump(projects / "slurm_nhc")
    assert list(read_lock(projects / "projects.lock.json")["slurm_nhc"]) == ["1.0.0", "1.9.0", "1.10.0"]
    assert shipped_problems(NAMES, projects) == ()


def test_a_figure_for_every_node_is_part_of_the_version(projects: Path) -> None:
    table = projects / "slurm_nhc" / "specs" / "default" / "cluster-init" / "files" / "common_checks.tsv"
    assert table.read_text(encoding="utf-8") == common_table()
    table.write_text(common_table().replace("=93", "=94"), encoding="utf-8")
    (problem,) = shipped_problems(NAMES, projects)
    assert problem.project == "slurm_nhc"


def test_a_kill_between_the_two_writes_is_completed_by_the_next_bump(
    projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(projects).write_text("#!/usr/bin/env bash\necho changed\n")
    replace = os.replace
    done: list[Path] = []

    def once(source: str, target: Path) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", once)
    with pytest.raises(KeyboardInterrupt):
        bump(projects / "misc_ubuntu")
    monkeypatch.undo()
    assert [path.name for path in projects.iterdir() if path.name.startswith(".projects.lock")] == []
    (problem,) = shipped_problems(NAMES, projects)
    assert "is not in the lock" in problem.message
    finished = bump(projects / "misc_ubuntu")
    assert finished is not None
    assert finished.new == "1.0.1"
    assert shipped_problems(NAMES, projects) == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": 2, "projects": {}}', '{"format": 1, "projects": []}',
             '{"format": 1, "projects": {"a": {"1.0.0": "short"}}}', '{"format": 1, "projects": {"a": []}}'],
)  # fmt: skip
def test_a_broken_lock_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "projects.lock.json"
    file.write_text(text)
    with pytest.raises(CannotRead, match=r"projects\.lock\.json"):
        read_lock(file)


def test_no_lock_is_an_empty_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "none.json") == {}


def test_a_lock_that_cannot_be_written_is_named(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(projects).write_text("#!/usr/bin/env bash\necho changed\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CannotWrite, match=r"project\.ini: no permission; what was there is unchanged"):
        bump(projects / "misc_ubuntu")


def test_a_scheme_of_somebody_else_has_to_be_raised_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    scripts = folder / "specs/default/cluster-init/scripts"
    scripts.mkdir(parents=True)
    (folder / "project.ini").write_text("[project]\nname = mine\nversion = 2026.07.02\n")
    (scripts / "10-x.sh").write_text("#!/bin/sh\n")
    first = bump(folder, shipped=False)
    assert first is not None
    (scripts / "10-x.sh").write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(ProjectUnreadable, match="not three numbers"):
        bump(folder, shipped=False)


def test_the_check_is_pure(projects: Path) -> None:
    project = read_project(projects / "misc_ndv4")
    current = digest(contents(project, shipped=True))
    assert check(project, current, {"misc_ndv4": {"1.0.0": current}}) is None
    assert check(project, current, {}) is not None


def test_the_lock_is_stored_in_order(projects: Path) -> None:
    content = json.loads((projects / "projects.lock.json").read_text())
    assert list(content["projects"]) == sorted(content["projects"])
