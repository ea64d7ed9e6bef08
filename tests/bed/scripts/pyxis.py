"""Nodes with enroot and pyxis as the slurm project leaves them, and what Slurm, enroot and the agent answer there."""

from __future__ import annotations

import io
import tarfile
from hashlib import sha256

from tests.bed.scripts.node import FAKES, Node
from tests.projects.conftest import MakeNode

PLUGIN_FILE = "opt/pyxis/spank_pyxis.so"
PYXIS_CONF = "etc/slurm/plugstack.conf.d/pyxis.conf"
ENROOT_CONF = "etc/enroot/enroot.conf"
# What cyclecloud-slurm 4.0.9 writes: install.py without line ends, templates/enroot.conf.template; scratch on /mnt.
PLUGSTACK = "include /etc/slurm/plugstack.conf.d/*"
PLUGIN = "required /opt/pyxis/spank_pyxis.so runtime_path=/mnt/enroot/enroot-runtime"
SLURM_PROJECT_CONF = (FAKES / "enroot.conf").read_text()
# Recorded from Slurm 22.05 with pyxis 0.24: what srun says of a plug-in that is missing, of another release, or fine.
# A library of these tests is a file whose text says which.
SRUN = (FAKES / "srun").read_text()
DOWNLOAD = """
case "$1" in
    config)
        fake_value="$3"
        if [[ -e "$FAKE_STATE/attributes/$2" ]]; then read -r fake_value <"$FAKE_STATE/attributes/$2"; fi
        printf '%s\\n' "$fake_value" ;;
    download) cp "$FAKE_STATE/locker/$4" "$5" ;;
esac
"""
# make of enroot and pyxis: what they leave, without compiling.
MAKE = (FAKES / "make").read_text()
RUNS_BUILT = 'exec "$CYCLEFORGE_ROOT/usr/bin/enroot" "$@"'
SCRIPTS = ("05-install.sh", "10-enroot.sh", "20-hooks.sh")
TOOLS_OF_ENROOT = ("curl", "jq", "parallel", "zstd", "mksquashfs", "unsquashfs")


def bare_node(make_node: MakeNode) -> Node:
    """A node with Slurm and without pyxis and enroot: an older slurm project. /mnt is the temporary disk."""
    node = make_node("pyxis_enroot")
    node.mount("/mnt")
    (node.root / "mnt").mkdir()
    (node.root / "etc/slurm").mkdir(parents=True)
    node.fake("srun", SRUN, light=True)
    node.fake("setpriv", "exit 0", light=True)
    free = 'cat "$FAKE_STATE/free_kib" 2>/dev/null || echo 900000000'
    node.fake("df", f"printf 'x\n/dev/sdb1 999999999 1 %s 1%% /mnt\n' \"$({free})\"", light=True)
    node.fake("jetpack", DOWNLOAD, light=True)
    for name in ("chown", "uname", "tar", "gzip"):
        node.link(name)
    node.fake("uname", "echo x86_64")
    for name in TOOLS_OF_ENROOT:
        node.fake(name, "exit 0")
    node.write("proc/filesystems", "nodev\toverlay\n")
    return node


def platform_node(make_node: MakeNode) -> Node:
    """A node as cyclecloud-slurm 4.0.9 leaves it on Ubuntu and EL 8."""
    node = bare_node(make_node)
    node.write(ENROOT_CONF, SLURM_PROJECT_CONF)
    node.write("etc/slurm/plugstack.conf", PLUGSTACK)
    node.write(PYXIS_CONF, PLUGIN)
    node.write(PLUGIN_FILE, "plug-in of the slurm project\n")
    for hook in ("50-slurm-pmi.sh", "50-slurm-pytorch.sh"):
        node.write(f"usr/share/enroot/hooks.d/{hook}", f"#!/bin/bash\n# {hook}\n")
    node.fake("enroot", "echo 4.0.1", light=True)
    return node


def compiler(node: Node) -> None:
    node.fake("make", MAKE)
    node.fake("gcc", "exit 0")
    node.fake("setcap", "exit 0")
    node.write("usr/include/stdlib.h", "")
    node.write("usr/include/slurm/spank.h", "")


def locker(node: Node, *names: str) -> None:
    """Blobs in the locker, and their pins in the node's copy of the project."""
    rows = ["# file, version, sha256\n"]
    for name in names or ("enroot-4.1.2.tar", "pyxis-0.24.0.tar"):
        content = archive({"Makefile": f"{name}\n", "conf/x": "x", "deps/Makefile": ""})
        path = node.state / "locker" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        rows.append(f"{name}\t1\t{sha256(content).hexdigest()}\n")
    (node.spec / "files/blobs.tsv").write_text("".join(rows))


def archive(files: dict[str, str], top: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if top else "w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}" if top else name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def all_scripts(node: Node) -> str:
    """The whole project once; all output."""
    return "".join(node.ok(script) for script in SCRIPTS)


def settings(node: Node, **values: str) -> None:
    known = {"scratch": "", "nvme_mount_point": "/nvme", "credentials": "", "min_free_gib": "60", "mount_home": "leave"}
    lines = (f"{key}={value}\n" for key, value in (known | {"role": "execute"} | values).items())
    node.write("etc/cycleforge/enroot.conf", "".join(lines))


def boot(node: Node, *, fails: bool = False, **values: str) -> str:
    """What cycleforge-enroot.service runs, with these settings or those of 10-enroot.sh; all output."""
    installed = node.root / "opt/cycleforge/pyxis_enroot/enroot.sh"
    if not installed.exists():
        settings(node, **values)
    result = node.command(str(installed if installed.exists() else node.spec / "files/enroot.sh"))
    assert (result.returncode != 0) is fails, result.stdout + result.stderr
    return result.stdout + result.stderr
