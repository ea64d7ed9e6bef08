"""What is uploaded of a project: compared with builds that CycleCloud's own command made, and rule by rule."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from generator.blobs import Store, store_of
from generator.files.file import MANIFEST, json_file
from generator.output import folder as output
from generator.plan import assignment
from generator.plan.deployment import Plan
from generator.plan.projects import BlobPlan, ProjectPlan
from generator.projects import lock, package
from generator.projects.content import contents, digest
from generator.projects.ini import ProjectUnreadable, read_project
from generator.projects.local import SHIPPED
from generator.projects.package import Package, manifest_bytes, package_folder, package_shipped
from generator.projects.payload import Payload, made
from generator.render import projects as rendering
from tests.bed import parts
from tests.blobs.catalogue import SOURCE, TAR, blob, catalogue_of
from tests.projects.folders import INI, SCRIPT, content, paths, project

ROOT = Path(__file__).resolve().parents[2]


def git_id(content: bytes) -> str:
    """What git calls a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


# ---------------------------------------------------------------- builds of CycleCloud's own command


@pytest.mark.parametrize(
    ("name", "files", "size_bytes", "wanted"),
    [
        ("limits", ["files/set_limits.sh", "scripts/00_set_limits.sh"], 92, "73bfc910d24b6a3f21f9d9a58fcf01e705912615"),
        ("nhc", ["files/install_nhc.sh", "scripts/00_install_nhc.sh"], 89, "4d9af2fd06231a3a9a133130f695e4646aa7c7ae"),
    ],
)
def test_manifests_of_public_builds(tmp_path: Path, name: str, files: list[str], size_bytes: int, wanted: str) -> None:
    """Azure/HPC-Accelerator at 93b3336, scenarios/deeplearning/…/projects/<name>_1.0.0/build/<name>/manifest.json."""
    specs = {f"default/cluster-init/{file}": b"#!/bin/bash\n" for file in files}
    ini = f"[project]\nname = {name}\ntype = application\nversion = 1.0.0\n"
    found = package_folder(project(tmp_path, ini, specs))
    assert (len(found.manifest), git_id(found.manifest)) == (size_bytes, wanted)
    assert paths(found) == sorted(specs)


SYMPHONY = {
    "symphony/sym_adv_entitlement.dat": "5cfd39a26e906a69cc757718bc9dee66",
    "symphony/sym-7.3.1.0_x86_64.bin": "2c4e3c0085d69ce38e9afc0b8be41817",
    "symphony/sym-7.3.1.0.exe": "de11baecd38114743f560a6068e18254",
}
SYMPHONY_INI = f"""\
[project]
version = 2.0.0
name = symphony
type = scheduler

[blobs sym_7.3.1.0]
Files = {", ".join(SYMPHONY)}

#[blobs older]
#Files = symphony/older.bin

[spec default]
run_list = recipe[symphony::default]

[spec master]
run_list = recipe[symphony::default], recipe[symphony::autostart], recipe[symphony::autostop]

[spec management]
run_list = recipe[symphony::sethostname]
"""


def test_a_public_manifest_with_blobs_and_run_lists(tmp_path: Path) -> None:
    """Azure/cyclecloud-symphony at b405523, build/symphony/manifest.json; its blobs are known by their checksums."""
    specs = {
        f"{spec}/cluster-init/scripts/README.txt": b"-\n" for spec in ("default", "execute", "management", "master")
    }
    folder = project(tmp_path, SYMPHONY_INI, specs)
    (folder / "blobs/symphony").mkdir(parents=True)
    for file in SYMPHONY:
        (folder / "blobs" / file).write_bytes(file.encode())
    found = package_folder(folder)
    read = found.project
    known = manifest_bytes(
        read.name,
        read.version,
        read.type,
        [(file, bytes.fromhex(SYMPHONY[file])) for file in read.blobs],
        read.run_lists,
    )
    assert (len(known), git_id(known)) == (963, "b8911ac71ccd233d58006e78c5cabf6a1fba7eae")
    for file, checksum in SYMPHONY.items():
        known = known.replace(checksum.encode(), hashlib.md5(file.encode()).hexdigest().encode())
    assert found.manifest == known
    assert {path.parts[0] for path in found.files} == {"default", "execute", "management", "master"}
    assert list(map(str, found.blobs)) == sorted(SYMPHONY)


# ---------------------------------------------------------------- our projects


def deployed(folder: Path, name: str, blobs: tuple[BlobPlan, ...] = ()) -> Path:
    """A project as a deployment folder on disk holds it."""
    source = PurePosixPath("projects") / name
    plan: Plan = replace(
        parts.minimal(),
        projects=(ProjectPlan(name, "1.0.0", source, False, ("default",), ("htc",), "0" * 64, blobs),),
    )
    output.write(folder, {**rendering.render(plan), MANIFEST: json_file({"generator": "cycleforge", "files": {}})})
    return folder / source


def assert_equal(one: Package, other: Package) -> None:
    assert (one.manifest, one.files, one.blobs, one.left_out) == (
        other.manifest, other.files, other.blobs, other.left_out,
    )  # fmt: skip
    for path, payload in one.files.items():
        assert (payload.executable, content(one, str(path))) == (
            other.files[path].executable, content(other, str(path)),
        )  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_project_is_what_the_deployment_folder_holds(tmp_path: Path, name: str) -> None:
    shipped = package_shipped(name, store_of(os.environ))
    assert_equal(shipped, package_folder(deployed(tmp_path / "lab", name)))
    assert PurePosixPath("default/cluster-init/files/cycleforge.sh") in shipped.files
    assert b'"blobs": []' in shipped.manifest


def test_a_shipped_project_with_its_blob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CYCLEFORGE_BLOBS", str(tmp_path / "store"))
    with catalogue_of(monkeypatch, SOURCE):
        store = Store(tmp_path / "store")
        pin = store.put(blob(SOURCE), TAR)
        plan = BlobPlan(SOURCE["file"], "1.0", SOURCE["sha256"], len(TAR), "present")
        shipped = package_shipped("slurm_nhc", store)
        assert_equal(shipped, package_folder(deployed(tmp_path / "lab", "slurm_nhc", (plan,))))
        assert hashlib.md5(TAR).hexdigest().encode() in shipped.manifest
        pin.write_bytes(b"x" * len(TAR))
        assert package_shipped("slurm_nhc", store).blobs == {}, "a damaged blob does not travel"
        assert package_shipped("slurm_nhc", None).blobs == {}


def test_the_shipped_projects_are_those_of_the_planner() -> None:
    planned = (
        assignment.BASE, assignment.GPU_NODE, assignment.CONTAINERS, assignment.HEALTH, assignment.POLICY,
    )  # fmt: skip
    assert sorted(SHIPPED) == sorted(planned)


# ---------------------------------------------------------------- what is taken


def test_only_cluster_init_and_chef_are_taken(tmp_path: Path) -> None:
    taken = {
        SCRIPT: b"#!/bin/sh\n",
        "default/cluster-init/scripts/README.txt": b"-\n",
        "default/cluster-init/stages/deep/er/install.sh": b"",
        "default/cluster-init/top.txt": b"",
        "b-1/cluster-init/tests/test_x.py": b"",
    }
    droppings = {
        "default/cluster-init/scripts/.10-x.sh.swp": b"", "default/cluster-init/files/a~": b"",
        "default/cluster-init/files/__pycache__/x.txt": b"", "default/.DS_Store": b"",
    }  # fmt: skip
    strays = {"default/scripts/lost.sh": b"", "notes.txt": b"", "default/chef/Berksfile": b"", "default/readme.md": b""}
    found = package_folder(project(tmp_path, specs=taken | droppings | strays, templates__t__txt=b"", build__x=b""))
    assert paths(found) == sorted(taken)
    assert [path.as_posix() for path in found.left_out] == [
        "specs/default/.DS_Store", "specs/default/chef/Berksfile", "specs/default/cluster-init/files/__pycache__",
        "specs/default/cluster-init/files/a~", "specs/default/cluster-init/scripts/.10-x.sh.swp",
        "specs/default/readme.md", "specs/default/scripts", "specs/notes.txt",
    ]  # fmt: skip


def test_empty_folders_are_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "specs/default/cluster-init/tests/deep").mkdir(parents=True)
    (folder / "specs/other/chef/roles").mkdir(parents=True)
    found = package_folder(folder)
    assert paths(found) == [SCRIPT]
    assert found.project.specs == ("default", "other")


def test_modes_and_times_do_not_count_but_the_build_keeps_the_bit(tmp_path: Path) -> None:
    folder = project(tmp_path)
    before = package_folder(folder)
    (folder / "specs" / SCRIPT).chmod(0o700)
    os.utime(folder / "specs" / SCRIPT, (1, 1))
    after = package_folder(folder)
    assert after.files == before.files
    assert [each.files[PurePosixPath(SCRIPT)].executable for each in (before, after)] == [False, True]


# ---------------------------------------------------------------- Chef


def test_chef_folders_become_archives(tmp_path: Path) -> None:
    specs = {
        "default/chef/site-cookbooks/demo/recipes/default.rb": b"log 'x'\n",
        "default/chef/site-cookbooks/demo/files/run": b"#!/bin/sh\n",
        f"default/chef/site-cookbooks/{'long-' * 24}/{'name-' * 8}.rb": b"",
        "default/chef/roles/r.rb": b"name 'r'\n",
        "default/chef/data_bags/b/i.json": b"{}\n",
        "default/chef/environments/e.rb": b"",
    }
    folder = project(tmp_path, specs=specs)
    found = package_folder(folder)
    assert paths(found) == [f"default/chef/{name}.tgz" for name in ("data_bags", "roles", "site-cookbooks")]
    assert found.left_out == (PurePosixPath("specs/default/chef/environments/e.rb"),)
    packed = content(found, "default/chef/site-cookbooks.tgz")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        members = archive.getmembers()
        top = [member.name.split("/")[0] for member in members]
        assert set(top) == {"site-cookbooks"}
        assert members[0].isdir()
        files = {member.name: archive.extractfile(member).read() for member in members if member.isfile()}  # type: ignore[union-attr]
        assert {f"default/chef/{name}": text for name, text in files.items()} == {
            path: text for path, text in specs.items() if "site-cookbooks" in path
        }
        assert {(each.mtime, each.uid, each.gid, each.uname, each.gname) for each in members} == {(0, 0, 0, "", "")}
        assert {member.name.rsplit("/")[-1]: oct(member.mode) for member in members if member.isfile()} == {
            "default.rb": "0o644", "run": "0o755", f"{'name-' * 8}.rb": "0o644",
        }  # fmt: skip
    for path in folder.rglob("*"):
        os.utime(path, (5, 5))
        if path.is_file():
            path.chmod(0o700)
    assert package_folder(folder).files == found.files


def test_the_archive_is_the_same_on_every_machine() -> None:
    """The bytes themselves: a change of them would be another content under a released version."""
    files = {PurePosixPath("a/b.rb"): made(b"x\n" * 40_000), PurePosixPath("c"): made(b"")}
    packed = package.chef_archive("roles", files)
    assert hashlib.sha256(packed).hexdigest() == "c6a2379e03af4a75869d0a6c9a6a743736f59f4102a7953be3735c0c4d2a11eb"
    assert package.chef_archive("roles", dict(reversed(files.items()))) == packed


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}(/[a-z]{1,3}){0,2}\.rb", fullmatch=True), st.binary(max_size=70_000)))
def test_archives_unpack_to_what_went_in(files: dict[str, bytes]) -> None:
    packed = package.chef_archive("roles", {PurePosixPath(name): made(text) for name, text in files.items()})
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        found = {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}  # type: ignore[union-attr]
    assert found == {f"roles/{name}": text for name, text in files.items()}


def test_what_is_too_large_for_a_cookbook_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "CHEF_BYTES", 3)
    folder = project(tmp_path, specs={"default/chef/roles/r.rb": b"1234"})
    with pytest.raises(ProjectUnreadable, match="specs/default/chef/roles: has 4 bytes") as caught:
        package_folder(folder)
    assert "blobs/" in (caught.value.hint or "")


# ---------------------------------------------------------------- payloads


def test_payloads_are_fresh_streams_that_can_seek(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for payload in (package_folder(folder).files[PurePosixPath(SCRIPT)], made(b"#!/bin/sh\n")):
        with payload.open() as one, payload.open() as other:
            assert one.read(2) == b"#!"
            assert one.seek(0) == 0
            assert one.read() == other.read() == b"#!/bin/sh\n"
        assert (payload.size_bytes, payload.md5) == (10, hashlib.md5(b"#!/bin/sh\n").digest())
    with pytest.raises(ValueError, match="content or a path"):
        Payload(0, b"").open()


def test_a_stamp_tells_that_a_file_changed(tmp_path: Path) -> None:
    payload = package_folder(project(tmp_path)).files[PurePosixPath(SCRIPT)]
    assert payload.path is not None
    assert payload.is_unchanged
    payload.path.write_bytes(b"#!/bin/zz\n")
    os.utime(payload.path, (1, 1))
    assert not payload.is_unchanged
    payload.path.unlink()
    assert not payload.is_unchanged
    with pytest.raises(ProjectUnreadable, match="cannot be read"):
        payload.open()


_MEASURE = """
import resource, sys
from pathlib import Path
from generator.projects.package import package_folder
from generator.projects.lock import folder_digest
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
package = package_folder(Path(sys.argv[1]))
folder_digest(package.project)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_large_blob_is_never_in_memory(tmp_path: Path) -> None:
    folder = project(tmp_path, INI + "[blobs]\nFiles = large.bin\n", blobs__small=b"")
    with (folder / "blobs/large.bin").open("wb") as file:
        file.truncate(200 << 20)
    done = subprocess.run([sys.executable, "-c", _MEASURE, folder], cwd=ROOT, capture_output=True, check=True)
    assert int(done.stdout) < 20, "MiB more than before"


def test_the_digest_in_pieces_is_the_digest(tmp_path: Path) -> None:
    folder = project(tmp_path, INI + "[blobs]\nFiles = b*\n", blobs__b1=b"1" * 300_000, README=b"x", build__x=b"")
    (folder / "link").symlink_to("blobs")
    read = read_project(folder)
    assert lock.folder_digest(read) == digest(contents(read, shipped=False))
