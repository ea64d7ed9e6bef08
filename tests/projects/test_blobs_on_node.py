"""`cf_blob` and `cf_unpack_blob`: a blob is used only with its pinned content, whatever the agent, the locker or a kill
do to it."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed.scripts.node import HANGS, Node
from tests.projects.conftest import MakeNode

NAME = "tool-1.0.tar"
DOWNLOAD = """
[[ "$1" == download && "$2" == --project && $# == 5 ]] || exit 2
blob="$FAKE_STATE/locker/projects/$3/blobs/$4"
if [[ ! -e "$blob" ]]; then echo "Failed to find $4 in locker"; echo; exit 1; fi
cat "$blob" >"$5"
"""


def tar_of(**members: str) -> bytes:
    """A tar archive; a text that begins with #! is executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size, entry.mode, entry.uid = len(text), 0o777 if text.startswith("#!") else 0o666, 12345
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


BLOB = tar_of(tool="#!/bin/sh\necho tool\n", lib__part="part\n")


class BlobNode:
    """A node whose locker may hold the blob, with the library and its table beside each other, as in a project."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.files = node.spec / "files"
        shutil.copy(assets.folder("projects") / "_lib/blobs.sh", self.files)
        for tool in ("mkdir", "tar"):
            if not (node.bin / tool).exists():
                node.link(tool)
        node.fake("jetpack", DOWNLOAD)
        self.expect(BLOB)
        self.locker(BLOB)
        self.folder = node.root / "var/lib/cycleforge/blobs"
        self.target = node.root / "opt/cycleforge/tool"

    def expect(self, content: bytes) -> None:
        """Pin this content."""
        table = f"# file, version, sha256\n{NAME}\t1.0\t{hashlib.sha256(content).hexdigest()}\n"
        (self.files / "blobs.tsv").write_text(table)

    def locker(self, content: bytes | None) -> None:
        """What the locker holds."""
        path = self.node.state / f"locker/projects/{self.node.project}/blobs" / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)

    def run(self, text: str, **extra: str) -> tuple[int, str]:
        """Lines after sourcing both libraries; exit code and output."""
        head = 'set -euo pipefail\n. "$CYCLECLOUD_SPEC_PATH/files/cycleforge.sh"\n'
        head += '. "$CYCLECLOUD_SPEC_PATH/files/blobs.sh"\n'
        result = self.node.command("-c", head + text, **extra)
        return result.returncode, result.stdout + result.stderr

    def fetch(self, **extra: str) -> tuple[int, str]:
        """cf_blob as a caller that can do without would write it."""
        return self.run(
            f'if cf_blob {NAME} {self.folder}; then echo "got $REPLY $CF_CHANGED"; else echo "without [$REPLY]"; fi',
            **extra,
        )

    def unpack(self, **extra: str) -> tuple[int, str]:
        """Fetch and unpack."""
        return self.run(
            f'cf_blob {NAME} {self.folder}\ncf_unpack_blob "$REPLY" {self.target}\necho "$CF_CHANGED"', **extra
        )

    def tree(self) -> dict[str, tuple[int, str]]:
        """The unpacked files with their modes."""
        return {
            path.relative_to(self.target).as_posix(): (path.stat().st_mode & 0o7777, path.read_text())
            for path in sorted(self.target.rglob("*"))
            if path.is_file() and path.name != ".cycleforge-blob"
        }

    def litter(self) -> list[str]:
        """Temporary files and folders that are left."""
        return [path.name for path in (*self.folder.parent.rglob(".*.cycleforge.*"), *self.target.parent.glob(".*"))]


WHOLE = {"lib/part": (0o644, "part\n"), "tool": (0o755, "#!/bin/sh\necho tool\n")}


@pytest.fixture
def blobs(make_node: MakeNode) -> BlobNode:
    return BlobNode(make_node("misc_ubuntu"))


def test_a_blob_is_fetched_once(blobs: BlobNode) -> None:
    assert blobs.fetch() == (0, f"got {blobs.folder}/{NAME} 1\n")
    assert (blobs.folder / NAME).read_bytes() == BLOB
    assert (blobs.folder / NAME).stat().st_mode & 0o777 == 0o644
    assert blobs.fetch() == (0, f"got {blobs.folder}/{NAME} 0\n")
    assert len(blobs.node.calls("jetpack")) == 1
    assert blobs.litter() == []


def test_a_locker_without_it_leaves_the_decision_to_the_caller(blobs: BlobNode) -> None:
    blobs.locker(None)
    code, output = blobs.fetch()
    assert code == 0
    assert "without []\n" in output
    assert f"WARNING: blob {NAME} was not fetched in 3 tries: jetpack download ended with 1" in output
    assert "(Failed to find tool-1.0.tar in locker)" in output
    assert "cycleforge blobs fetch" in output
    assert len(blobs.node.calls("jetpack")) == 3
    assert blobs.litter() == []
    assert not (blobs.folder / NAME).exists()


def test_no_node_agent(blobs: BlobNode) -> None:
    blobs.node.remove("jetpack")
    code, output = blobs.fetch()
    assert (code, "without []\n" in output) == (0, True)
    assert "jetpack) is not installed" in output
    # A blob that someone placed there by hand is as good.
    blobs.folder.mkdir(parents=True)
    (blobs.folder / NAME).write_bytes(BLOB)
    assert blobs.fetch() == (0, f"got {blobs.folder}/{NAME} 0\n")


def test_a_download_that_fails_twice_succeeds_the_third_time(blobs: BlobNode) -> None:
    blobs.node.fake("jetpack", f'(( $(wc -l <"$FAKE_STATE/calls") == 3 )) || exit 7\n{DOWNLOAD}')
    assert blobs.fetch()[1] == f"got {blobs.folder}/{NAME} 1\n"


def test_a_hanging_download_ends_with_its_children(blobs: BlobNode) -> None:
    blobs.node.fake("jetpack", f"sleep 3600 & {HANGS}")
    code, output = blobs.fetch(CYCLEFORGE_BLOB_LIMIT_S="0.2")
    assert blobs.node.limits_s("jetpack") == [0.2] * 3
    assert (code, "without []\n" in output) == (0, True)
    assert "did not end within 0.2 s" in output
    assert blobs.litter() == []


@pytest.mark.parametrize("content", [b"", BLOB[:-1], BLOB + b"\0", b"<html>sign in</html>"])
def test_other_content_is_refused(blobs: BlobNode, content: bytes) -> None:
    blobs.locker(content)
    code, output = blobs.fetch()
    assert (code, "without []\n" in output) == (0, True)
    assert "does not have the pinned sha256" in output
    assert not (blobs.folder / NAME).exists()
    assert blobs.litter() == []


def test_an_agent_that_writes_nothing(blobs: BlobNode) -> None:
    blobs.node.fake("jetpack", "exit 0")
    assert "ended well, but wrote no file" in blobs.fetch()[1]


@pytest.mark.parametrize("damage", ["content", "link", "folder"])
def test_what_lies_there_is_verified_every_time(blobs: BlobNode, damage: str, tmp_path: Path) -> None:
    blobs.fetch()
    path = blobs.folder / NAME
    if damage == "content":
        path.write_bytes(BLOB.replace(b"tool", b"evil"))
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(BLOB)
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.unlink()
        path.mkdir()
        code, output = blobs.fetch()
        assert code == 1
        assert f"cannot write {path}" in output
        return
    assert blobs.fetch()[1] == f"got {path} 1\n"
    assert path.read_bytes() == BLOB
    assert not path.is_symlink()


@pytest.mark.parametrize("table", [None, "", f"{NAME}\t1.0\tshort\n", f"other\t1.0\t{'0' * 64}\n"])
def test_a_blob_without_a_pin_is_never_used(blobs: BlobNode, table: str | None) -> None:
    (blobs.files / "blobs.tsv").unlink()
    if table is not None:
        (blobs.files / "blobs.tsv").write_text(table)
    code, output = blobs.fetch()
    assert code == 1
    assert f"blobs.tsv has no digest of '{NAME}'" in output
    assert blobs.node.calls("jetpack") == []


def test_a_folder_that_cannot_be_written_stops_the_script(blobs: BlobNode) -> None:
    blobs.folder.parent.mkdir(parents=True, exist_ok=True)
    blobs.folder.write_text("a file where the folder belongs\n")
    code, output = blobs.fetch()
    assert code == 1
    assert f"ERROR: cannot write to {blobs.folder}" in output


def test_unpacking_once(blobs: BlobNode) -> None:
    assert blobs.unpack() == (0, "1\n")
    assert blobs.tree() == WHOLE
    inode = (blobs.target / "tool").stat().st_ino
    assert blobs.unpack() == (0, "0\n")
    assert (blobs.target / "tool").stat().st_ino == inode
    assert blobs.litter() == []


def test_another_content_replaces_the_folder(blobs: BlobNode) -> None:
    blobs.unpack()
    (blobs.target / "own").write_text("a stray file of the old version\n")
    newer = tar_of(tool="#!/bin/sh\necho newer\n")
    blobs.expect(newer)
    blobs.locker(newer)
    assert blobs.unpack() == (0, "1\n")
    assert blobs.tree() == {"tool": (0o755, "#!/bin/sh\necho newer\n")}


def test_a_folder_of_somebody_else_is_replaced_and_a_damaged_archive_is_not_taken(blobs: BlobNode) -> None:
    blobs.target.mkdir(parents=True)
    (blobs.target / "tool").write_text("half\n")
    assert blobs.unpack() == (0, "1\n")
    assert blobs.tree() == WHOLE
    broken = BLOB[:700]
    blobs.expect(broken)
    blobs.locker(broken)
    code, output = blobs.unpack()
    assert code == 1
    assert f"{NAME} cannot be unpacked to {blobs.target}" in output
    assert blobs.tree() == WHOLE
    assert blobs.litter() == []


@pytest.mark.parametrize(("tool", "nth"), [("jetpack", 1), ("mv", 1), ("mv", 2), ("mv", 3), ("tar", 1), ("rm", 1)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_any_step_is_healed_by_the_next_run(blobs: BlobNode, tool: str, nth: int, when: str) -> None:
    """The folder holds the old version, so that the last two renames replace it."""
    old = tar_of(tool="#!/bin/sh\necho old\n", gone="gone\n")
    blobs.expect(old)
    blobs.locker(old)
    assert blobs.unpack() == (0, "1\n")
    blobs.expect(BLOB)
    blobs.locker(BLOB)
    blobs.node.forget()
    real = f'{(blobs.node.bin / tool).resolve()} "$@"' if tool != "jetpack" else f"( {DOWNLOAD} )"
    parent = "$(awk '/^PPid/ {print $2}' /proc/$PPID/status)" if tool in ("jetpack", "tar") else "$PPID"
    act = real if when == "after" else ":"
    blobs.node.fake(
        tool,
        f'if (( $(grep -c "^{tool} " "$FAKE_STATE/calls") == {nth} )); then {act}; kill -KILL {parent}; exit 1; fi\n'
        f"{real}",
    )
    code, _ = blobs.unpack()
    assert code == -9
    state = blobs.tree() if blobs.target.exists() else {}
    assert state in ({}, WHOLE, {"gone": (0o644, "gone\n"), "tool": (0o755, "#!/bin/sh\necho old\n")})
    blobs.node.remove(tool)
    if tool == "jetpack":
        blobs.node.fake("jetpack", DOWNLOAD)
    else:
        blobs.node.link(tool)
    code, output = blobs.unpack()
    assert code == 0, output
    assert blobs.tree() == WHOLE
    assert blobs.litter() == []
