"""An image is imported only where there is room to unpack it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.running import JobFolder, job, job_folder, plan_with, settings_of
from tests.jobs.test_scripts import ERROR, PASS


def with_free(tmp_path: Path, gigabytes: str, wanted: str) -> JobFolder:
    """A node whose enroot unpacks below `scratch`, which has so much room."""
    folder = job_folder(tmp_path, plan_with(job("opt-175b")))
    (tmp_path / "bin").mkdir()
    df = tmp_path / "bin/df"
    df.write_text(
        f'#!/bin/sh\nfor last; do :; done\necho "$last" >>{tmp_path}/asked\nprintf "Avail\\n {gigabytes}\\n"\n'
    )
    df.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/enroot.conf").write_text(
        f"ENROOT_CACHE_PATH /nowhere\nENROOT_TEMP_PATH {tmp_path}/scratch/enroot/user-$(id -u)\n"
    )
    folder.environment |= {"ENROOT_SYSCONF_PATH": f"{tmp_path}/etc", "SET_IMPORT_SCRATCH_GB": wanted}
    folder.environment["PATH"] = f"{tmp_path}/bin:{folder.environment['PATH']}"
    return folder


def test_an_import_that_would_fill_the_disk_does_not_begin(tmp_path: Path) -> None:
    folder = with_free(tmp_path, "74", "75")
    ran = folder.run("10-setup.sh")
    assert ran.returncode == ERROR
    assert f"{tmp_path}/scratch on" in ran.stdout + ran.stderr
    assert "has 74 GB free" in ran.stdout + ran.stderr
    assert not list((tmp_path / "stage").glob("images/*.sqsh"))
    # What is larger elsewhere is taken from there.
    (tmp_path / "large").mkdir()
    again = folder.run("10-setup.sh", SET_IMPORT_SCRATCH_GB="74", ENROOT_TEMP_PATH=f"{tmp_path}/large")
    assert again.returncode == PASS, again.stdout + again.stderr
    assert (tmp_path / "asked").read_text().split() == [f"{tmp_path}/scratch", f"{tmp_path}/large"]
    # An image that is there needs no room.
    assert folder.run("10-setup.sh").returncode == PASS


@pytest.mark.parametrize("free", ["", "-", "none"])
def test_room_that_nobody_knows_is_none(tmp_path: Path, free: str) -> None:
    ran = with_free(tmp_path, free, "75").run("10-setup.sh")
    assert ran.returncode == ERROR
    assert "cannot be said" in ran.stdout + ran.stderr


def test_the_room_follows_from_the_image() -> None:
    known = {recipe: settings_of(plan_with(job(recipe)))["IMPORT_SCRATCH_GB"] for recipe in ("mpt", "gpt3-175b")}
    assert known == {"mpt": "68", "gpt3-175b": "75"}
    own = job("mpt", CONTAINER="docker://registry.example.com#team/mine:1")
    assert settings_of(plan_with(own))["IMPORT_SCRATCH_GB"] == "100"
    assert settings_of(plan_with(job("mpt", IMPORT_SCRATCH_GB=5)))["IMPORT_SCRATCH_GB"] == "5"
