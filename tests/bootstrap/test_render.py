"""What is rendered: fixed user data, configuration, and an archive that is the same everywhere."""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
import yaml
from msgspec.structs import replace

from generator import catalog
from generator.files import assets
from generator.files.file import File
from generator.render import bootstrap
from tests.bed import parts
from tests.bed.server.harness import LATE, carried, plan

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

KNOWN_KEYS = {"package_update", "package_upgrade", "write_files", "runcmd"}
"""Keys of cloud-init that we use; its schema lets an unknown one pass, so a misspelt key would do nothing."""

SOURCES = sorted((assets.folder("bootstrap") / "cycleforge_bootstrap").glob("*.py"))


def test_configuration(snapshot: SnapshotAssertion) -> None:
    files = bootstrap.render(plan(pin_project=True, start_cluster=True), carried(), LATE)
    assert files[PurePosixPath("bootstrap/bootstrap.json")].content.decode() == snapshot


def test_user_data_is_the_same_for_every_definition() -> None:
    one = bootstrap.render(plan(), carried(), LATE)
    other = bootstrap.render(replace(parts.minimal(), name="other", location="westeurope"), {}, {})
    assert one[bootstrap.CLOUD_INIT] == other[bootstrap.CLOUD_INIT]
    assert one[bootstrap.START] == other[bootstrap.START]


def test_user_data_is_valid(tmp_path: Path) -> None:
    content = bootstrap.render(plan(), {}, {})[bootstrap.CLOUD_INIT].content
    assert content.startswith(b"#cloud-config\n")
    assert len(content) <= catalog.limits().custom_data.value
    document = yaml.safe_load(content)
    assert set(document) <= KNOWN_KEYS
    assert all(set(entry) <= {"path", "owner", "permissions", "content"} for entry in document["write_files"])
    if shutil.which("cloud-init") is None:
        pytest.skip("cloud-init is not on PATH: the schema was not asked")
    path = tmp_path / "user-data.yaml"
    path.write_bytes(content)
    asked = subprocess.run(
        ["cloud-init", "schema", "--config-file", str(path)], capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr


def test_chunks_are_the_archive() -> None:
    files = bootstrap.render(plan(), carried(), LATE)
    paths = bootstrap.payload_chunks(files)
    assert paths == ("bootstrap/payload/payload-00.bin", "bootstrap/payload/payload-01.bin")
    pieces = [files[PurePosixPath(path)].content for path in paths]
    assert len(pieces[0]) == bootstrap.CHUNK_BYTES <= catalog.limits().loaded_file.value
    content = b"".join(pieces)
    assert hashlib.sha256(content).hexdigest() == bootstrap.payload_sha256(files)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(m.uid, m.gid, m.mtime, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
    names = {member.name for member in members}
    assert {"bootstrap/bootstrap.json", "bootstrap/cycleforge_bootstrap/__main__.py", "cluster/minimal.txt"} <= names
    assert not {name for name in names if name.startswith("bootstrap/payload/")}
    assert not {str(path) for path in bootstrap.NOT_CARRIED} & names
    modes = {member.name: member.mode for member in members}
    assert modes["bootstrap/cycleforge-bootstrap"] == 0o755
    assert modes["bootstrap/bootstrap.json"] == 0o644


def test_archive_has_no_time_and_no_order_of_its_own() -> None:
    files = carried()
    backwards = dict(reversed(files.items()))
    content = bootstrap.archive(files)
    assert content == bootstrap.archive(backwards)
    assert content[:10] == b"\x1f\x8b\x08\x00\0\0\0\0\x02\xff"
    assert gzip.decompress(content)


def test_long_and_foreign_names_survive(tmp_path: Path) -> None:
    path = PurePosixPath("projects") / ("d" * 120) / ("ü" * 90 + ".sh")
    (tmp_path / "a.tgz").write_bytes(bootstrap.archive({path: File(b"x", executable=True)}))
    subprocess.run(["tar", "-xzf", "a.tgz"], cwd=tmp_path, check=True)
    assert (tmp_path / path).read_bytes() == b"x"


def test_the_list_names_every_piece_and_every_file_in_them() -> None:
    """With size and digest, so that a change of the binary pieces can be read."""
    files = bootstrap.render(plan(), carried(), LATE)
    lines = files[bootstrap.LIST].content.decode().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    content = {name: files[PurePosixPath(name)].content for name in bootstrap.payload_chunks(files)}
    with tarfile.open(fileobj=io.BytesIO(b"".join(content.values()))) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            content[member.name] = file.read()
    assert len(content) > len(bootstrap.payload_chunks(files))
    assert rows == [[name, str(len(text)), hashlib.sha256(text).hexdigest()] for name, text in content.items()]


def test_content_hash_follows_payload_and_script() -> None:
    files = bootstrap.render(plan(), carried(), LATE)
    same = bootstrap.render(plan(), carried(), LATE)
    assert bootstrap.content_hash(files) == bootstrap.content_hash(same)
    other = files | {bootstrap.START: File(files[bootstrap.START].content + b"#")}
    assert bootstrap.content_hash(other) != bootstrap.content_hash(files)
    changed = bootstrap.render(plan(start_cluster=True), carried(), LATE)
    assert bootstrap.content_hash(changed) != bootstrap.content_hash(files)


def test_script_fits_the_extension() -> None:
    files = bootstrap.render(plan(), {}, {})
    # Facts and secrets take a few KiB more, all of it once more in base64.
    assert (len(files[bootstrap.START].content) + 16 * 1024) * 4 / 3 < catalog.limits().extension_script.value


def test_no_secret_is_asked_without_a_database() -> None:
    config = bootstrap.configuration(parts.minimal(), {})
    assert config["secrets"] == {"adminPassword": "Password of the CycleCloud administrator 'ccadmin'"}
    assert json.dumps(config)


def test_everything_in_the_folder_is_rendered() -> None:
    files = bootstrap.render(plan(), {}, {})
    folder = assets.folder("bootstrap")
    sources = {p.relative_to(folder.parent).as_posix() for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert sources <= {str(path) for path in files}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_program_reads_as_python_3_6(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    newer = {"dataclasses", "contextvars", "importlib.resources", "zoneinfo", "tomllib", "graphlib"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module not in newer
            assert not (node.module == "__future__" and node.names[0].name == "annotations")
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & newer
        if isinstance(node, ast.keyword):
            assert node.arg not in ("capture_output", "missing_ok", "dirs_exist_ok", "text"), (
                f"line {node.value.lineno}"
            )
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("removeprefix", "removesuffix", "readlink", "is_relative_to", "with_stem")


def test_program_uses_the_standard_library_only() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(node.module or "")
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names, path.name


@pytest.mark.parametrize("name", ["start.sh", "cycleforge-bootstrap"])
def test_scripts_pass_the_shells_and_shellcheck(name: str) -> None:
    path = assets.folder("bootstrap") / name
    for command in (["bash", "-n"], ["sh", "-n"], [str(Path(sys.executable).with_name("shellcheck")), "-s", "sh"]):
        result = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_unit_starts_what_is_installed() -> None:
    unit = (assets.folder("bootstrap") / "cycleforge-bootstrap.service").read_text()
    assert "ExecStart=/bin/sh /opt/cycleforge/current/bootstrap/cycleforge-bootstrap run" in unit
    # Exit 1 is a result; only a killed program continues by itself.
    assert "Restart=on-abnormal" in unit
    assert "WantedBy=multi-user.target" in unit
