"""`cycleforge project build|list|info|new|bump`: what is found, said and written."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from generator.cli import main
from generator.files import assets
from generator.projects.local import SHIPPED, find_project, located
from generator.projects.package import package_folder
from tests.answers import data_of
from tests.projects.folders import INI, SCRIPT, project


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Run:
    """One run: exit code, both outputs."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["project", *arguments])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    def json(self, *arguments: str) -> tuple[int, Any]:
        code, out, err = self(*arguments, "--json")
        assert err == ""
        return code, data_of(out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


# ---------------------------------------------------------------- build


def test_build_without_a_name_takes_the_project_of_this_folder(run: Run) -> None:
    project(Path())
    assert run("build") == (0, "build/demo: version 1.0.0, 1 file, 10 B\n", "")
    assert run("build") == (0, "build/demo: version 1.0.0, 1 file, 10 B, up to date\n", "")
    assert sorted(path.name for path in Path("build").iterdir()) == ["demo"]


def test_build_without_a_name_elsewhere_takes_all_that_cycleforge_brings(run: Run) -> None:
    code, out, err = run("build", "--out", "there")
    assert (code, err, len(out.splitlines())) == (0, "", len(SHIPPED))
    assert sorted(path.name for path in Path("there").iterdir()) == sorted(SHIPPED)
    assert Path("there/slurm_nhc/default/cluster-init/files/cycleforge.sh").is_file()
    assert os.access("there/slurm_nhc/default/cluster-init/scripts/20-health.sh", os.X_OK)


def test_build_by_name_and_path(run: Run) -> None:
    project(Path("projects/site"), INI.replace("demo", "site"))
    project(Path("elsewhere/x"), INI + "[blobs]\nFiles = b\n", blobs__b=b"x" * 3000, blobs__c=b"")
    code, found = run.json("build", "site", "elsewhere/x", "misc_ubuntu", "projects/site")
    assert code == 0
    assert [row["name"] for row in found["projects"]] == ["site", "demo", "misc_ubuntu"]
    assert found["projects"][1] == {
        "name": "demo", "version": "1.0.0", "path": "build/demo", "changed": True, "files": 1, "bytes": 10,
        "blobs": [{"path": "b", "bytes": 3000, "md5": "33d7ac42e3aa0f3146843833c23e4365"}],
        "left_out": ["blobs/c"],
    }  # fmt: skip
    assert run("build", "elsewhere/x")[1] == (
        "build/demo: version 1.0.0, 1 file, 10 B, 1 blob of 3 KiB beside it, up to date\n  left out: blobs/c\n"
    )


def test_all_problems_are_told_and_nothing_is_built(run: Run) -> None:
    project(Path("good"))
    project(Path("one"), INI.replace("demo", "d:e"))
    project(Path("two"), specs={SCRIPT: b"#!/bin/sh\r\n"})
    code, out, err = run("build", "good", "one", "two")
    assert (code, out) == (2, "")
    assert "one/project.ini:2: 'd:e' is not a valid project name" in err
    assert f"two/specs/{SCRIPT}:1: the script has Windows line endings" in err
    assert err.count("  hint: ") == 2
    assert not Path("build").exists()
    code, found = run.json("build", "good", "one", "two")
    assert (code, found["ok"], found["projects"]) == (2, False, [])
    assert [(error["file"], error["line"]) for error in found["errors"]] == [
        ("one/project.ini", 2), (f"two/specs/{SCRIPT}", 1),
    ]  # fmt: skip


def test_a_folder_in_the_way_stays_and_is_named(run: Run) -> None:
    project(Path("p"))
    Path("build/demo").mkdir(parents=True)
    Path("build/demo/mine.txt").write_text("x")
    code, _, err = run("build", "p")
    assert code == 5
    assert "build/demo is not a build of project 'demo': it holds mine.txt" in err
    code, found = run.json("build", "p")
    assert (code, found["ok"]) == (5, False)
    assert "is not a build" in found["errors"][0]["message"]
    assert Path("build/demo/mine.txt").read_text() == "x"


def test_two_projects_of_one_name_do_not_replace_each_other(run: Run) -> None:
    project(Path("a"))
    project(Path("b"))
    code, _, err = run("build", "a", "b")
    assert code == 2
    assert "b and a are both named 'demo'" in err


@pytest.mark.parametrize("action", ["build", "info", "bump"])
def test_a_word_that_means_nothing(run: Run, action: str) -> None:
    Path("empty").mkdir()
    assert "hint: did you mean 'misc_ubuntu'?" in run(action, "misc_ubunto")[2]
    assert "hint: projects: misc_ndv4, misc_ubuntu" in run(action, "zzz")[2]
    assert "empty is not a project folder: it has no project.ini" in run(action, "empty")[2]
    assert run(action, "a\0b")[0] == 2
    assert run(action, "x" * 5000)[0] == 2


def test_a_shipped_folder_given_by_its_path_is_the_shipped_project(tmp_path: Path) -> None:
    folder = assets.folder("projects") / "misc_ubuntu"
    assert find_project(str(folder)).is_shipped
    assert not located(project(tmp_path / "misc_ubuntu", INI.replace("demo", "misc_ubuntu"))).is_shipped
    assert find_project("misc_ubuntu").folder == folder


# ---------------------------------------------------------------- list


def test_list_shows_what_is_brought_and_what_lies_here(run: Run) -> None:
    folder = project(Path("projects/site"), INI.replace("demo", "site"))
    code, out, err = run("list")
    assert (code, err) == (0, "")
    rows = [line.split("  ") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["PROJECT", *SHIPPED, "site"]
    assert [row["state"] for row in run.json("list")[1]["projects"]] == ["released"] * len(SHIPPED) + ["not recorded"]
    run("bump", "site")
    assert run.json("list")[1]["projects"][-1] == {
        "name": "site", "version": "1.0.0", "type": "application", "specs": ["default"], "files": 1, "bytes": 10,
        "state": "released", "shipped": False, "folder": "projects/site",
    }  # fmt: skip
    (folder / "specs" / SCRIPT).write_bytes(b"#!/bin/sh\nexit\n")
    _, out, err = run("list")
    assert "changed, bump it" in out.splitlines()[-1]
    assert err == "  hint: cycleforge project bump projects/site\n"
    assert run("bump", "site", "--part", "minor")[1] == "site: 1.0.0 is now 1.1.0\n"
    assert run.json("info", "site")[1]["state"] == "released"


def test_a_project_that_cannot_be_read_hides_no_other(run: Run) -> None:
    project(Path("projects/bad"), INI + "junk\n")
    project(Path("projects/site"), INI.replace("demo", "site"))
    (Path("projects") / "projects.lock.json").write_text("{}")
    code, out, err = run("list")
    assert code == 2
    assert len(out.splitlines()) == 1 + len(SHIPPED)
    assert "projects/bad/project.ini:5: 'junk' is not a setting" in err
    assert "projects.lock.json: not a lock of format 1" in err
    code, found = run.json("list")
    assert (code, found["ok"], len(found["projects"]), len(found["errors"])) == (2, False, len(SHIPPED), 2)


# ---------------------------------------------------------------- info


def test_info_shows_everything(run: Run) -> None:
    ini = (
        INI
        + "label = A demo\n[blobs]\nFiles = b\n[spec default]\nrun_list = role[a]\n[spec bare]\nrun_list = role[b]\n"
    )
    scripts = "default/cluster-init/scripts"
    specs = {
        f"{scripts}/{name}": b"#!/bin/sh\n" for name in ("9-b.sh", "10-a.sh", "B.sh", "README.txt", "w.cmd", "d/x.sh")
    }
    folder = project(Path("p"), ini, specs, blobs__b=b"bb", blobs__c=b"")
    code, found = run.json("info", "p")
    assert code == 0
    assert found["specs"] == [
        {"name": "bare", "scripts": [], "other_files": 0, "bytes": 0, "run_list": ["role[b]"]},
        {"name": "default", "scripts": ["10-a.sh", "9-b.sh", "B.sh", "w.cmd"], "other_files": 2, "bytes": 60,
         "run_list": ["role[a]"]},
    ]  # fmt: skip
    assert found["blobs"] == [{"path": "b", "bytes": 2, "md5": "21ad0bd836b90d08f4cf640b4c298e7c", "state": "present"}]
    assert found["manifest"] == json.loads(package_folder(folder).manifest)
    assert (found["label"], found["left_out"], found["released"], found["shipped"]) == (
        "A demo",
        ["blobs/c"],
        {},
        False,
    )
    code, out, err = run("info", "p")
    assert (code, err) == (0, "")
    assert "    10-a.sh\n    9-b.sh\n    B.sh\n    w.cmd\n  2 other files\n  run list: role[a]\n" in out
    assert "label     A demo" in out
    assert out.endswith(package_folder(folder).manifest.decode() + "\n")


def test_info_of_a_shipped_project_names_blobs_that_are_not_here(run: Run) -> None:
    code, found = run.json("info", "slurm_nhc")
    assert code == 0
    assert [(blob["path"], blob["md5"], blob["state"]) for blob in found["blobs"]] == [
        ("nhc-1.4.3-9c4a38c.tar", None, "missing")
    ]
    assert found["manifest"]["blobs"] == []
    lock = json.loads((assets.folder("projects") / "projects.lock.json").read_text())
    assert found["released"] == lock["projects"]["slurm_nhc"]
    assert found["digest"] == found["released"][found["version"]]
    assert "`cycleforge blobs fetch` gets it" in run("info", "slurm_nhc")[1]


# ---------------------------------------------------------------- new


def test_a_new_project_works(run: Run) -> None:
    code, out, _ = run("new", "site", "--spec", "gpu")
    assert code == 0
    folder = Path("projects/site")
    assert out.startswith(f"wrote {folder}; begin with {folder}/specs/gpu/cluster-init/scripts/10-example.sh\n")
    assert "- {name: site, path: ../projects/site}" in out
    assert "extra_projects: [site:gpu]" in out
    package = package_folder(folder)
    assert [path.as_posix() for path in package.files] == [
        f"gpu/cluster-init/{name}" for name in (
            "files/README.txt", "files/motd.txt", "scripts/10-example.sh", "scripts/README.txt", "tests/README.txt",
        )
    ]  # fmt: skip
    assert package.left_out == ()
    assert (folder / "blobs/README.txt").is_file()
    assert (folder / "templates/README.txt").is_file()
    for path in folder.rglob("*.*"):
        assert not {"@NAME@", "@SPEC@"} & set(re.findall("@[A-Z]+@", path.read_text(encoding="ascii")))
    for command in [line.strip() for line in out.splitlines() if line.startswith("  cycleforge project")]:
        assert main(command.split()[1:]) == 0, command
    assert run("info", "site")[0] == 0
    assert run("bump", "site")[1] == "site: recorded version 1.0.0\n"
    assert run("bump", "site")[1] == "site: nothing has changed since its version was recorded\n"


def test_the_new_project_can_be_attached_as_the_command_says(run: Run) -> None:
    run("new", "site")
    Path("cluster_defs").mkdir()
    Path("cluster_defs/lab.yaml").write_text(
        "name: lab\nlocation: southcentralus\nadmin: {username: ccadmin}\n"
        "projects:\n  - {name: site, path: ../projects/site}\n"
        "slurm:\n  partitions:\n    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2, default: true,\n"
        "       extra_projects: [site]}\n"
    )
    assert main(["build", "lab"]) == 0
    assert package_folder(Path("output/lab/projects/site")).files == package_folder(Path("projects/site")).files


def test_the_example_script_works_twice(run: Run, tmp_path: Path) -> None:
    run("new", "site", "--in", ".")
    spec = Path("site/specs/default/cluster-init").resolve()
    script = spec / "scripts/10-example.sh"
    assert os.access(script, os.X_OK)
    environment = {
        "PATH": os.environ["PATH"], "ROOT": str(tmp_path / "node"),
        "CYCLECLOUD_SPEC_PATH": str(spec), "CYCLECLOUD_PROJECT_NAME": "site",
    }  # fmt: skip
    told = [
        subprocess.run([script], env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert ["wrote" in told[0], "as it should be" in told[1]] == [True, True]
    assert "project site" in (tmp_path / "node/etc/motd.d/site").read_text()


def test_new_changes_nothing_that_is_there(run: Run) -> None:
    Path("projects/a").mkdir(parents=True)
    Path("projects/b").write_text("x")
    Path("projects/c").symlink_to("nowhere")
    for taken in ("a", "b", "c"):
        code, _, err = run("new", taken)
        assert code == 5
        assert f"projects/{taken} already exists" in err
    assert sorted(path.name for path in Path("projects").iterdir()) == ["a", "b", "c"]
    assert run("new", "x", "--in", "projects/b")[0] == 5


@pytest.mark.parametrize(
    "arguments",
    [("a/b",), ("..",), ("",), ("-x",), ("CycleCloud",), ("a.",), ("ä",), ("ok", "--spec", "a b"), ("misc_ubuntu",),
     ("ok", "--spec", "")],
)  # fmt: skip
def test_names_that_cannot_be(run: Run, arguments: tuple[str, ...]) -> None:
    code, _, err = run("new", *arguments)
    assert code == 2
    assert "hint: " in err
    assert list(Path().iterdir()) == []


def test_a_new_project_that_could_not_be_written_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("generator.disk.swap.swap", full)
    code, _, err = run("new", "site")
    assert (code, "the disk is full" in err) == (5, True)
    assert list(Path("projects").iterdir()) == []


def test_new_as_json(run: Run) -> None:
    code, found = run.json("new", "site")
    assert code == 0
    assert (found["name"], found["spec"], found["folder"]) == ("site", "default", "projects/site")
    assert "specs/default/cluster-init/scripts/10-example.sh" in found["files"]


# ---------------------------------------------------------------- help


def test_help_and_mistakes(run: Run) -> None:
    for action in ("build", "list", "info", "new", "bump"):
        code, out, _ = run(action, "--help")
        assert code == 0
        assert out.startswith(f"usage: cycleforge project {action} ")
    assert run()[0] == 2
    assert "did you mean '--out'?" in run("build", "--outt", "x")[2]
    assert run("bild")[0] == 2
