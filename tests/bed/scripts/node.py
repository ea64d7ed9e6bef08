"""A node for the project scripts: a root folder, a PATH of fakes and a few harmless real tools, node attributes.

Nothing of the machine below is reachable: PATH holds only what is in TOOLS and what a test puts there.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path, PurePosixPath

from generator.files import assets
from generator.projects.content import contents
from generator.projects.ini import read_project
from tests.bed.scripts.tree import Tree
from tests.size_attributes import KEYS, size_attributes

TOOLS = (
    "awk", "bash", "cat", "chmod", "cmp", "cp", "cut", "date", "dd", "df", "env", "false", "find", "flock", "grep",
    "head", "kill", "ln", "ls", "mkdir", "mktemp", "mv", "printf", "readlink", "rm", "sed", "seq", "sha256sum",
    "sleep", "sort", "stat", "tail", "touch", "tr", "wc",
)  # fmt: skip
FAKES = Path(__file__).parent / "fakes"
"""What some tools do, in Bash; names begin with `fake_` where it runs among those of a script."""
A100 = "Standard_ND96amsr_A100_v4"
H100 = "Standard_ND96isr_H100_v5"
# GNU timeout takes this signal for the end of its time, whatever the clock says.
HANGS = """
read -r caller <"/proc/$PPID/comm"
if [[ "$caller" == timeout ]]; then sleep 0.1; kill -ALRM "$PPID"; fi
exec sleep 3600
"""
"""What a tool does that never answers: the limit of its caller has passed, and it still does not."""

# Scripts ask it most of all, so it starts nothing itself.
JETPACK = """
[[ "$1" == config ]] || exit 2
if [[ -e "$FAKE_STATE/attributes/$2" ]]; then
    IFS= read -r -d '' fake_value <"$FAKE_STATE/attributes/$2"
    printf '%s' "$fake_value"
else
    printf '%s\\n' "$3"
fi
"""
# Runs our own units as systemd would; every other unit is only logged.
SYSTEMCTL = (FAKES / "systemctl").read_text()
# However busy the machine is, only what HANGS is cut; the limits that the scripts chose are written down. A light fake
# answers at once, so it runs in this process: a script asks jetpack a dozen times.
TIMEOUT = f"""
fake_flags=()
while [[ "$1" == --* ]]; do
    case "$1" in --kill-after=*) fake_flags+=(--kill-after=0.3) ;; *) fake_flags+=("$1") ;; esac
    shift
done
printf '%s\\n' "$*" >>"$FAKE_STATE/limits"
shift
fake_light="$FAKE_STATE/$1.sh"
if [[ "$1" != */* && -e "$fake_light" ]]; then shift; . "$fake_light"; exit; fi
exec {shutil.which("timeout")} "${{fake_flags[@]}}" 3600 "$@"
"""
# The same as a function that Bash finds before the program: most of what a script costs here is programs that start.
# In a shell of its own, without the settings and traps of the script that calls it.
_IN_A_SHELL = "( set +eu +C +o pipefail; trap - ERR; IFS=$' \\t\\n'\n{}) \n"
_FUNCTION = "() {{ " + _IN_A_SHELL + "}}"
# A third of all its calls ask for a node attribute, which `JETPACK` answers; that needs no shell either.
_ATTRIBUTE = """() {
if [[ "${2-}" == jetpack && "${3-}" == config && -e "$FAKE_STATE/jetpack.sh" ]]; then
    local fake_value IFS=' '
    printf '%s\\n' "$*" >>"$FAKE_STATE/limits"
    printf '%s\\n' "jetpack config $4 $5" >>"$FAKE_STATE/calls"
    if [[ -e "$FAKE_STATE/attributes/$4" ]]; then
        IFS= read -r -d '' fake_value <"$FAKE_STATE/attributes/$4" || :
        printf '%s' "$fake_value"
    else
        printf '%s\\n' "$5"
    fi
    return 0
fi
"""
TIMEOUT_FUNCTION = _ATTRIBUTE + _IN_A_SHELL.format(TIMEOUT) + "}"
# It ends a `timeout` in the background by its process id, which must be that of the program.
WITHOUT_FUNCTION = "slurm_nhc"
MOUNTPOINT = """
for fake_path in "$@"; do :; done
if [[ ! -e "$FAKE_STATE/mounts" ]]; then exit 1; fi
while read -r fake_mounted; do
    if [[ "$fake_mounted" == "${fake_path#"$CYCLEFORGE_ROOT"}" ]]; then exit 0; fi
done <"$FAKE_STATE/mounts"
exit 1
"""


@cache
def _spec(project: str) -> dict[PurePosixPath, bytes]:
    """The rendered spec of a project, by paths below the spec's folder."""
    files = contents(read_project(assets.folder("projects") / project), shipped=True)
    start = PurePosixPath("specs/default/cluster-init")
    return {path.relative_to(start): file.content for path, file in files.items() if path.is_relative_to(start)}


class Node:
    """One node and one project on it. `state` holds what the fakes know: attributes, mounts, calls."""

    def __init__(self, folder: Path, project: str) -> None:
        self._name_places(folder, project)
        _fresh(project).plant(folder)

    @classmethod
    def from_nothing(cls, folder: Path, project: str) -> Node:
        """One whose every file is made anew: what `_fresh` remembers for all others."""
        node = cls.__new__(cls)
        node._name_places(folder, project)
        node._make()
        return node

    def _name_places(self, folder: Path, project: str) -> None:
        self.folder, self.project = folder, project
        self.root, self.bin, self.state = folder / "root", folder / "bin", folder / "state"
        self.spec = folder / "cluster-init" / project / "default"

    def _make(self) -> None:
        for made in (self.root, self.bin, self.state / "attributes", self.state / "active", self.state / "installed"):
            made.mkdir(parents=True)
        for tool in TOOLS:
            self.link(tool)
        self.fake("jetpack", JETPACK, light=True)
        self.fake("systemctl", SYSTEMCTL, light=True)
        self.fake("mountpoint", MOUNTPOINT, light=True)
        self._program("timeout", f"#!{shutil.which('bash')}{TIMEOUT}")
        self.fake("findmnt", 'for path in "$@"; do :; done; echo "${SOURCE:-/dev/sdb1}"')
        for quiet in ("journalctl", "sysctl"):
            self.fake(quiet, "exit 0")
        self.os("ubuntu", "22.04")
        self.attribute("slurm.role", "execute")
        self.install(self.project)

    def install(self, project: str) -> None:
        """Place the rendered spec where the node agent would: without execute bits."""
        for path, content in _spec(project).items():
            target = self.folder / "cluster-init" / project / "default" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def link(self, tool: str) -> None:
        found = shutil.which(tool)
        assert found is not None, f"the tests need {tool}"
        (self.bin / tool).symlink_to(found)

    def fake(self, tool: str, body: str, *, light: bool = False) -> None:
        """A tool that logs its call and then runs the body; a light one needs no process of its own below `timeout`."""
        log = f'printf "%s\\n" "{tool} $*" >>"$FAKE_STATE/calls"\n'
        self._program(tool, f"#!{shutil.which('bash')}\n{log}{body}\n")
        (self.state / f"{tool}.sh").unlink(missing_ok=True)
        if light:
            (self.state / f"{tool}.sh").write_text(log + body)

    def _program(self, tool: str, text: str) -> None:
        path = self.bin / tool
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def limits_s(self, tool: str) -> list[float]:
        """The limits that scripts have set for calls of a tool, in order."""
        file = self.state / "limits"
        rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [float(row[0]) for row in rows if tool in row[1:]]

    def remove(self, tool: str) -> None:
        (self.bin / tool).unlink()
        (self.state / f"{tool}.sh").unlink(missing_ok=True)

    def os(self, name: str, version: str, like: str = "") -> None:
        self.write("etc/os-release", f'NAME="x"\nID={name}\nVERSION_ID="{version}"\nID_LIKE="{like}"\n')

    def attribute(self, key: str, value: str) -> None:
        (self.state / "attributes" / key).write_text(value + "\n")

    def vm_size(self, name: str, described: str | None = None) -> None:
        """Set the VM size, and what the cluster template tells such a node, or one of the size `described`."""
        self.attribute("azure.metadata.compute.vmSize", name)
        for key in KEYS:
            (self.state / "attributes" / key).unlink(missing_ok=True)
        for key, value in size_attributes(described or name).items():
            self.attribute(key, value)

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)
        return target

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def mount(self, path: str) -> None:
        with (self.state / "mounts").open("a") as stream:
            stream.write(path + "\n")

    def mounts(self) -> list[str]:
        """Mount points, in the order of mounting."""
        file = self.state / "mounts"
        return file.read_text().split() if file.exists() else []

    def calls(self, start: str = "") -> list[str]:
        file = self.state / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(start)]

    def forget(self) -> None:
        """Forget the calls and limits so far."""
        for name in ("calls", "limits"):
            (self.state / name).unlink(missing_ok=True)

    def environment(self) -> dict[str, str]:
        functions = {} if self.project == WITHOUT_FUNCTION else {"BASH_FUNC_timeout%%": TIMEOUT_FUNCTION}
        for tool in ("mountpoint", "systemctl"):
            light = self.state / f"{tool}.sh"
            if light.exists():
                functions[f"BASH_FUNC_{tool}%%"] = _FUNCTION.format(light.read_text())
        return functions | {
            "PATH": str(self.bin), "FAKE_STATE": str(self.state), "CYCLEFORGE_ROOT": str(self.root), "LC_ALL": "C",
            "CYCLECLOUD_SPEC_PATH": str(self.spec), "CYCLECLOUD_PROJECT_NAME": self.project,
            "CYCLEFORGE_POLL_S": "0.05", "HOSTNAME": "node-1",
        }  # fmt: skip

    def command(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        bash = str(self.bin / "bash")
        return subprocess.run([bash, *words], env=self.environment() | extra, capture_output=True, text=True,
                              check=False)  # fmt: skip

    def run(self, script: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run one cluster-init script of the project. None of them has a `timeout` in the background."""
        quick = {"BASH_FUNC_timeout%%": TIMEOUT_FUNCTION}
        return self.command(str(self.spec / "scripts" / script), **(quick | extra))

    def ok(self, script: str, **extra: str) -> str:
        result = self.run(script, **extra)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout + result.stderr

    def fails(self, script: str, **extra: str) -> str:
        result = self.run(script, **extra)
        assert result.returncode != 0, result.stdout + result.stderr
        return result.stdout + result.stderr

    def files(self) -> dict[str, tuple[int, int, str]]:
        """Every file below the root: mode, inode and content. A rewritten file has another inode."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_symlink():
                found[str(path.relative_to(self.root))] = (0, 0, str(path.readlink()))
            elif path.is_file():
                status = path.stat()
                found[str(path.relative_to(self.root))] = (status.st_mode & 0o7777, status.st_ino, path.read_text())
        return found

    def content(self) -> dict[str, tuple[int, str]]:
        """As `files`, without inodes: to compare two nodes."""
        return {path: (mode, text) for path, (mode, _, text) in self.files().items()}


@cache
def _fresh(project: str) -> Tree:
    """The files of a new node; nothing in them names its own folder."""
    with tempfile.TemporaryDirectory(prefix="node-") as folder:
        return Tree.of(Node.from_nothing(Path(folder), project).folder)
