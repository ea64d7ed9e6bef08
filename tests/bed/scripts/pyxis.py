"""Nodes with enroot and pyxis as the slurm project leaves them, and what Slurm, enroot and the agent answer there."""

from __future__ import annotations

import io
import tarfile
from hashlib import sha256

from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

PLUGIN_FILE = "opt/pyxis/spank_pyxis.so"
PYXIS_CONF = "etc/slurm/plugstack.conf.d/pyxis.conf"
ENROOT_CONF = "etc/enroot/enroot.conf"
# What cyclecloud-slurm 4.0.9 writes: install.py without line ends, templates/enroot.conf.template; scratch on /mnt.
PLUGSTACK = "include /etc/slurm/plugstack.conf.d/*"
PLUGIN = "required /opt/pyxis/spank_pyxis.so runtime_path=/mnt/enroot/enroot-runtime"
SLURM_PROJECT_CONF = """ENROOT_SCRATCH_PATH /mnt/enroot
ENROOT_RUNTIME_PATH /mnt/enroot/enroot-run/user-$(id -u)
ENROOT_CACHE_PATH /mnt/enroot/enroot-cache/group-$(id -g)
ENROOT_DATA_PATH /mnt/enroot/enroot-data/user-$(id -u)
ENROOT_TEMP_PATH /mnt/enroot/enroot-temp
ENROOT_SQUASH_OPTIONS -noI -noD -noF -noX -no-duplicates
ENROOT_MOUNT_HOME y
ENROOT_RESTRICT_DEV y
ENROOT_ROOTFS_WRITABLE y
MELLANOX_VISIBLE_DEVICES all
# Trailing comment - this file requires at least one trailing newline after the above

"""
# Recorded from Slurm 22.05 with pyxis 0.24: what srun says of a plug-in that is missing, of another release, or fine.
# A library of these tests is a file whose text says which.
SRUN = """
[[ "$1" == --help ]] || exit 2
if [[ -n "${SLURM_CONF:-}" ]]; then
    fake_prefix=""
    while IFS= read -r fake_line; do
        if [[ "$fake_line" == PlugStackConfig=* ]]; then fake_files="${fake_line#*=}"; fi
    done <"$SLURM_CONF"
else
    fake_prefix="$CYCLEFORGE_ROOT" fake_files="$CYCLEFORGE_ROOT/etc/slurm/plugstack.conf.d/*"
    [[ -e "$CYCLEFORGE_ROOT/etc/slurm/plugstack.conf" ]] || fake_files=/dev/null
fi
while read -r fake_verb fake_library _ || [[ -n "$fake_verb" ]]; do
    if [[ "$fake_verb" != required && "$fake_verb" != optional ]]; then continue; fi
    fake_text=none
    if [[ -e "$fake_prefix$fake_library" ]]; then fake_text="$(<"$fake_prefix$fake_library")"; fi
    case "$fake_text" in
        plug-in*) echo "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH" ;;
        none) fake_why="Dlopen of plugin file failed" ;;&
        other*) fake_why="Incompatible plugin version" ;;&
        none | other*)
            echo "srun: error: spank: $fake_library: $fake_why" >&2
            [[ "$fake_verb" == optional ]] || exit 1 ;;
    esac
done < <(cat $fake_files)
echo "  -e, --error=err             location of stderr redirection"
"""
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
MAKE = """
echo make "$@" >>"$FAKE_STATE/made"
for word in "$@"; do case "$word" in DESTDIR=*) target="${word#*=}" ;; esac; last="$word"; done
folder="$(printf '%s\\n' "$@" | sed -n '/^--directory$/{n;p}')"
case "$last" in
    spank_pyxis.so) echo "plug-in of $(cat "$folder/Makefile")" >"$folder/spank_pyxis.so" ;;
    install)
        mkdir -p "$target/usr/bin" "$target/usr/share/enroot/hooks.d" "$target/etc/enroot/mounts.d"
        for name in enroot enroot-nsenter enroot-mount enroot-switchroot enroot-aufs2ovlfs enroot-mksquashovlfs; do
            printf '#!/bin/bash\\necho 4.1.2\\n' >"$target/usr/bin/$name"; chmod 755 "$target/usr/bin/$name"
        done
        echo "#ENROOT_TEMP_PATH /tmp" >"$target/etc/enroot/enroot.conf"
        echo "/proc /proc none rbind" >"$target/etc/enroot/mounts.d/10-system.fstab"
        echo profile >"$target/usr/share/enroot/apparmor.profile"
        for hook in 50-slurm-pmi.sh 50-slurm-pytorch.sh; do
            printf '#!/bin/bash\\n' >"$target/usr/share/enroot/hooks.d/$hook"
        done ;;
esac
"""
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
    """gcc, make and the headers, as the slurm project installs them."""
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
    """What 10-enroot.sh writes for the boot unit."""
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
