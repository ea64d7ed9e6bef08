"""What is in a job's folder, before anything is sent."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.cyclecloud.jobs.prepared import of_folder, write
from generator.errors import CannotRead
from tests.jobs.running import job, job_folder, plan_with


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a job."""
    made = tmp_path / "it's a job"
    made.mkdir()
    (made / "job.sbatch").write_text("#!/bin/bash\ntrue\n")
    return made


def test_names_of_any_kind_are_sent(folder: Path, tmp_path: Path) -> None:
    names = [b"two words", b"quo'te\"", b"new\nline", b"-dash", b"*", b"not \xff text"]
    for name in names:
        (folder / os.fsdecode(name)).write_text("content")
    (folder / "inside").symlink_to("sub/../job.sbatch")
    (folder / "of-the-cluster").symlink_to("/shared/data")
    before = of_folder(folder, {})
    assert before.name == "it-s-a-job"
    write(before, tmp_path / "sent", who="ann", begin_at=None)
    assert {os.fsencode(path.name) for path in (tmp_path / "sent").iterdir()} >= {*names, b"inside", b"of-the-cluster"}
    (folder / os.fsdecode(names[-1])).write_text("other")
    assert of_folder(folder, {}).key != before.key


def test_another_folder_with_the_same_files_is_another_run(folder: Path) -> None:
    other = shutil.copytree(folder, folder.with_name("trial-2"))
    assert of_folder(other, {}).key != of_folder(folder, {}).key
    # What git keeps in a folder below does not decide what the job does.
    (folder / "sub/.git").mkdir(parents=True)
    key = of_folder(folder, {}).key
    (folder / "sub/.git/index").write_text("new")
    assert of_folder(folder, {}).key == key


def test_what_a_job_shares_with_others_is_sent_with_it(tmp_path: Path) -> None:
    """It decides what the job does; a copy of the job's folder alone is no job."""
    made = job_folder(tmp_path, plan_with(job("smoke"))).path
    (library,) = (made.parent / "lib").iterdir()
    before = of_folder(made, {})
    write(before, tmp_path / "sent", who="ann", begin_at=None)
    sent = tmp_path / "sent/lib" / library.name
    assert {path.name: path.read_bytes() for path in sent.iterdir()} == {
        path.name: path.read_bytes() for path in library.iterdir()
    }
    assert of_folder(shutil.copytree(tmp_path / "sent", tmp_path / "again"), {}).key, "it is whole"
    with (library / "common.sh").open("a") as file:
        file.write("# edited\n")
    assert of_folder(made, {}).key != before.key
    shutil.rmtree(library)
    with pytest.raises(CannotRead, match=rf"needs {library}, which is missing") as caught:
        of_folder(made, {})
    assert caught.value.hint == "copy jobs/lib beside the folder of the job"


def test_a_name_that_is_too_long_for_the_cluster_is_shorter(folder: Path) -> None:
    assert len(of_folder(folder.rename(folder.with_name("x" * 250)), {}).name) == 64


def link_outside(folder: Path) -> None:
    """From a folder below."""
    (folder / "sub").mkdir()
    (folder / "sub/data").symlink_to("../../data")


def a_socket(folder: Path) -> None:
    """As a program leaves it behind."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (link_outside, "sub/data points to ../../data outside the folder"),
        (a_socket, "socket is neither a file nor a folder"),
    ],
)
def test_what_cannot_be_sent(folder: Path, make: Callable[[Path], None], words: str) -> None:
    make(folder)
    with pytest.raises(CannotRead, match=words):
        of_folder(folder, {})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--dependency=afterok:7", "job.sbatch:2: a dependency of its own"),
        ("-d singleton", "job.sbatch:2: a dependency of its own"),
        ("-N 1 --wait", "job.sbatch:2: sbatch would wait"),
        ("-W", "job.sbatch:2: sbatch would wait"),
    ],
)
def test_an_option_that_would_not_do_what_it_says(folder: Path, options: str, words: str) -> None:
    (folder / "10-first.sbatch").write_text("#!/bin/bash\n#SBATCH --dependency=singleton # as it was\ntrue\n")
    text = f"#!/bin/bash\n#SBATCH {options}\ntrue\n"
    (folder / "job.sbatch").write_text(text)
    with pytest.raises(CannotRead, match=words):
        of_folder(folder, {})
    # sbatch does not read on behind the first line that is no comment.
    (folder / "job.sbatch").write_text(text.replace("#SBATCH", "true\n#SBATCH"))
    of_folder(folder, {})
