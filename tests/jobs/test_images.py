"""Images of training jobs: imported once by digest, the same one afterwards, credentials in no file or log of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.jobs.running import JobFolder, job, job_folder, plan_with

ERROR = 2
FIRST, OTHER = (f"sha256:{letter * 64}" for letter in "ab")
IMAGE = "docker://nvcr.io#nvidia/pytorch:25.03-py3"


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return job_folder(tmp_path, plan_with(job("opt-175b")))


def set_up(folder: JobFolder, status: int = 0, /, **environment: str) -> str:
    ran = folder.run("10-setup.sh", **environment)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def stage(folder: JobFolder) -> Path:
    return Path(folder.environment["SET_STAGE_PATH"])


def images(folder: JobFolder) -> list[str]:
    """What was imported, by digest."""
    return sorted(path.stem for path in (stage(folder) / "images").glob("*.sqsh"))


def asked(folder: JobFolder) -> list[str]:
    path = Path(folder.environment["FAKE_LOG"] + ".enroot")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def test_the_first_import_records_the_digest_and_imports_by_it(folder: JobFolder) -> None:
    set_up(folder, ERROR, FAKE_STATUS="1")
    assert images(folder) == [], "nothing stays of an import that failed"
    set_up(folder)
    assert asked(folder)[2] == f"digest {IMAGE}"
    assert asked(folder)[3].endswith(f" {IMAGE}@{FIRST}")
    assert images(folder) == [FIRST.replace(":", "-")]
    (record,) = (stage(folder) / "images").glob("*.digest")
    assert record.read_text(encoding="utf-8") == f"{FIRST}\n"
    set_up(folder)
    assert [line.split()[0] for line in asked(folder)] == ["digest", "import", "digest", "import", "digest"]


def test_a_changed_image_is_refused_with_two_ways_out(folder: JobFolder) -> None:
    set_up(folder)
    text = set_up(folder, ERROR, FAKE_DIGEST=OTHER)
    assert f"is another image now: the registry has {OTHER}, the first import recorded {FIRST}" in text
    assert f"set CONTAINER_DIGEST={FIRST}" in text
    set_up(folder, FAKE_DIGEST=OTHER, SET_CONTAINER_DIGEST=FIRST)
    assert images(folder) == [FIRST.replace(":", "-")]
    set_up(folder, FAKE_DIGEST=OTHER, SET_CONTAINER_DIGEST=OTHER)
    # Both are there, and what was recorded first still is what the tag stands for.
    assert images(folder) == [FIRST.replace(":", "-"), OTHER.replace(":", "-")]
    assert "is another image now" in set_up(folder, ERROR, FAKE_DIGEST=OTHER)


def test_a_lost_file_is_imported_anew_as_the_same_image(folder: JobFolder) -> None:
    """Also when the registry does not answer the question, and never as another one."""
    set_up(folder)
    for file in (stage(folder) / "images").glob("*.sqsh"):
        file.unlink()
    assert "the registry does not answer" in set_up(folder, FAKE_DIGEST="")
    assert asked(folder)[-1].endswith(f"@{FIRST}")
    for file in (stage(folder) / "images").glob("*.sqsh"):
        file.unlink()
    assert "CONTAINER_DIGEST states another one" in set_up(folder, ERROR, FAKE_DIGEST="", FAKE_GONE=FIRST)
    assert images(folder) == []


def test_without_a_digest_nothing_is_imported(folder: JobFolder) -> None:
    assert "set CONTAINER_DIGEST" in set_up(folder, ERROR, FAKE_DIGEST="")
    assert len(asked(folder)) == 1
    set_up(folder, FAKE_DIGEST="", SET_CONTAINER_DIGEST=OTHER)
    assert images(folder) == [OTHER.replace(":", "-")]


def test_the_reference_may_have_the_digest_itself(folder: JobFolder) -> None:
    set_up(folder, SET_CONTAINER=f"{IMAGE}@{OTHER}")
    assert [line.split()[-1] for line in asked(folder)] == [f"{IMAGE}@{OTHER}"]
    assert "state one of them" in set_up(folder, ERROR, SET_CONTAINER=f"{IMAGE}@{OTHER}", SET_CONTAINER_DIGEST=FIRST)
    assert "is no digest" in set_up(folder, ERROR, SET_CONTAINER_DIGEST="25.03")


def test_a_squash_file_of_ones_own_is_taken_as_it_is(folder: JobFolder) -> None:
    own = stage(folder) / "own.sqsh"
    assert "is not there" in set_up(folder, ERROR, SET_CONTAINER=str(own))
    own.write_text("squash", encoding="utf-8")
    set_up(folder, SET_CONTAINER=str(own))
    assert asked(folder) == []


def test_the_record_of_a_run_names_the_image(folder: JobFolder, tmp_path: Path) -> None:
    set_up(folder)
    (tmp_path / "output").write_text("", encoding="utf-8")
    folder.run(FAKE_OUTPUT=str(tmp_path / "output"))
    assert f'"container": "{IMAGE}@{FIRST}"' in folder.results("run.json")
    assert f"--container-image={stage(folder)}/images/{FIRST.replace(':', '-')}.sqsh" in folder.log


def test_a_run_without_an_imported_image_starts_no_container(folder: JobFolder, tmp_path: Path) -> None:
    (tmp_path / "output").write_text("", encoding="utf-8")
    ran = folder.run(FAKE_OUTPUT=str(tmp_path / "output"))
    assert ran.returncode == ERROR
    assert "run the set-up step first" in ran.stdout + ran.stderr
    assert "--container-image" not in folder.log


def test_credentials_reach_enroot_and_nothing_else(folder: JobFolder, tmp_path: Path) -> None:
    secret = "hunter" + "2" * 20
    file = tmp_path / "credentials"
    file.write_text(f"machine nvcr.io login $oauthtoken password {secret}\n", encoding="utf-8")
    file.chmod(0o644)
    given = {"SET_REGISTRY_NETRC": str(file), "TMPDIR": str(tmp_path)}
    assert "type: chmod o= " in set_up(folder, ERROR, **given)
    file.chmod(0o640)
    text = set_up(folder, **given)
    read = Path(folder.environment["FAKE_LOG"] + ".credentials")
    assert read.read_text(encoding="utf-8").count(secret) == 2
    read.unlink()
    holding = [
        path
        for base, _, names in os.walk(tmp_path)
        for path in (Path(base) / name for name in names)
        if path != file and secret in path.read_text(encoding="utf-8")
    ]
    assert holding == []
    assert secret not in text
    assert "cannot be read" in set_up(folder, ERROR, SET_REGISTRY_NETRC=str(tmp_path / "gone"))


def test_a_run_that_goes_on_asks_no_registry_and_keeps_its_image(folder: JobFolder) -> None:
    """What `own` does before each launch; the first one imports."""
    script = folder.path / "need.sh"
    script.write_text(
        "#!/usr/bin/env bash\nset -euo pipefail\n. ./library.sh\n. $JOBS_LIB/images.sh\nload_settings\n"
        'need_image "${CONTAINER}"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    assert folder.run("need.sh").returncode == 0
    assert len(asked(folder)) == 2
    assert folder.run("need.sh", FAKE_DIGEST=OTHER).returncode == 0
    assert len(asked(folder)) == 2
    for file in (stage(folder) / "images").glob("*.sqsh"):
        file.unlink()
    assert folder.run("need.sh", FAKE_DIGEST=OTHER).returncode == 0
    assert images(folder) == [FIRST.replace(":", "-")]
