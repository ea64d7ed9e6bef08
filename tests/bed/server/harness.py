"""A server of the tests: a root folder with fakes in it, on which the rendered `start.sh` and program really run."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import platform
import py_compile
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from generator.files import assets
from generator.files.file import File, text
from generator.render import bootstrap
from tests.bed.plans import plan_from
from tests.bed.server.certificates import certificate
from tests.bed.server.fakes.site import Site
from tests.bed.server.interpreter import warm

if TYPE_CHECKING:
    from generator.files.file import Files
    from generator.plan.deployment import Plan

FAKES = Path(__file__).parent / "fakes"
PYTHON = os.environ.get("CYCLEFORGE_TEST_PYTHON", sys.executable)
"""The Python that runs the program; set it to a 3.6 to test what EL 8 does."""

ADMIN_PASSWORD = "a'd\"m`i$n\\ %p;a#ss&w(o)rd!é"
DATABASE_PASSWORD = "d'b\"$(touch pwned)\\%%s é=1"
TIME_SCALE = 0.01
PATIENCE_S = 10.0
"""Only a stand-in that hangs takes so long, whatever else the machine does."""

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM7e1KWc2FA2bQtrjX6eJX1yyGn3FwYlCFh0aZPvX8gB root@server\n"

TEMPLATE = (
    "[cluster minimal]\nFormLayout = selectionpanel\n    [[node scheduler]]\n    MachineType = $SchedulerMachineType\n"
)
LATE = {"configuration_slurm_accounting_password": "secret:databasePassword", "NFSAddress": "homeAddress"}


@functools.cache
def plan(**slurm: bool) -> Plan:
    """A small plan with an accounting database and these keys of its section `slurm`; it is made once."""
    with_database = "network: {address_space: 10.50.0.0/20}\nslurm: {accounting: {type: new}}"
    made = plan_from(with_database, json.dumps({"slurm": slurm}))
    projects = tuple(replace(each, version="1.0.0", digest="0" * 64) for each in made.projects)
    return replace(made, projects=projects)


@functools.cache
def carried() -> Files:
    """Template, parameters and two projects, as other renderers make them."""
    files: Files = {
        PurePosixPath("cluster/minimal.txt"): text(TEMPLATE),
        PurePosixPath("cluster/minimal.params.json"): text(
            json.dumps({"SchedulerMachineType": "Standard_D4as_v5", "NFSAddress": None,
                        "configuration_slurm_accounting_password": None})
        ),
    }  # fmt: skip
    for name, blobs in (("misc_ubuntu", ""), ("pyxis_enroot", "\n[blobs]\nFiles = enroot.tar\n")):
        folder = PurePosixPath("projects") / name
        files[folder / "project.ini"] = text(f"[project]\nname = {name}\nversion = 1.0.0\ntype = application\n{blobs}")
        scripts = folder / "specs/default/cluster-init/scripts"
        files[scripts / "10-configure.sh"] = text("#!/bin/bash\ntrue\n", executable=True)
        files[scripts / "20-more & more.sh"] = text("#!/bin/bash\nfalse\n", executable=True)
    # Random enough not to be compressed away: the archive must need more than one chunk.
    noise = b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(2500))
    files[PurePosixPath("projects/pyxis_enroot/blobs/enroot.tar")] = File(noise)
    return files


_rendered: dict[int, tuple[Plan, Files]] = {}
"""By identity, because a plan has no hash."""


def rendered(the_plan: Plan) -> Files:
    """What travels to a server of that plan; it is made once."""
    if id(the_plan) not in _rendered:
        _rendered[id(the_plan)] = the_plan, bootstrap.render(the_plan, carried(), LATE)
    return _rendered[id(the_plan)][1]


@functools.cache
def compiled() -> Files:
    """The program as byte code that Python uses as long as it belongs to the source; the launcher itself writes none.

    Most tests start the program several times, and no test is about compiling it.
    """
    if sys.executable != PYTHON:
        return {}
    files: Files = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path in (assets.folder("bootstrap") / "cycleforge_bootstrap").glob("*.py"):
            cache = PurePosixPath(importlib.util.cache_from_source(f"{path.parent.name}/{path.name}"))
            target = str(Path(scratch) / cache.name)
            mode = py_compile.PycInvalidationMode.CHECKED_HASH
            py_compile.compile(
                str(path), target, f"{path.parent.name}/{path.name}", doraise=True, invalidation_mode=mode
            )
            files["bootstrap" / cache] = File(Path(target).read_bytes())
    return files


class Server:
    """One server VM. `site` is what it talks to; `deploy` is what the extension does; `run` is the unit alone."""

    def __init__(self, folder: Path, the_plan: Plan | None = None, files: Files | None = None) -> None:
        self.root = folder / "root"
        self.fake = folder / "fake"
        self.bin = folder / "bin"
        for each in (self.root, self.fake, self.bin, self.fake / "tmp"):
            each.mkdir(parents=True)
        self.plan = the_plan or plan()
        self.files = rendered(self.plan) if files is None else bootstrap.render(self.plan, files, LATE)
        self.packed = (carried() if files is None else files) | self.files
        names = bootstrap.payload_chunks(self.files)
        chunks = {Path(name).stem: self.files[PurePosixPath(name)].content for name in names}
        chunks = {f"cycleforge-{stem}": content for stem, content in chunks.items()}
        self.secrets = {"adminPassword": ADMIN_PASSWORD, "databasePassword": DATABASE_PASSWORD}
        self.facts: dict[str, Any] = {
            "subscriptionId": "22222222-2222-2222-2222-222222222222",
            "tenantId": "33333333-3333-3333-3333-333333333333",
            "resourceGroup": "minimal-rg", "location": "southcentralus", "cloud": "AzureCloud",
            "storageAccount": "minimalabc", "storageSuffix": "core.windows.net", "container": "cyclecloud",
            "lockerIdentityId": "/subscriptions/2/resourceGroups/minimal-rg/providers/x/userAssignedIdentities/locker",
            "lockerIdentityClientId": "44444444-4444-4444-4444-444444444444",
            "subnetId": "minimal-rg/minimal-vnet/compute",
            "serverName": "minimal-server", "payloadDeployments": list(chunks), "homeAddress": "10.50.0.9",
            "payloadSha256": bootstrap.payload_sha256(self.files), "databaseHost": "db.example",
            "fingerprintRecord": "cycleforge-fingerprints",
        }  # fmt: skip
        self.site = Site(self.root, self.facts, chunks, certificate(), TIME_SCALE)
        self.site.start()
        self.facts["armEndpoint"] = self.site.url + "/"
        self._install()

    def _program(self, path: Path, source: str, interpreter: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{interpreter}\n{(FAKES / source).read_text()}")
        path.chmod(0o755)

    def _install(self) -> None:
        server = self.root / "opt/cycle_server"
        (server / "config/data").mkdir(parents=True)
        (server / "tools").mkdir()
        self._program(server / "cycle_server", "program.sh", "/bin/bash")
        self._program(self.bin / "jetpack", "program.sh", "/bin/bash")
        self._program(self.bin / "systemctl", "systemctl.sh", "/bin/sh")
        self._program(self.bin / "systemd-run", "systemd-run.sh", "/bin/sh")
        for name in ("curl", "base64", "shred", "tar", "grep", "sha256sum"):
            self._program(self.bin / name, "recorded.sh", "/bin/sh")
        self._cli()
        keys = self.root / "etc/ssh"
        keys.mkdir(parents=True)
        (keys / "ssh_host_ed25519_key.pub").write_text(HOST_KEY)
        (server / "config/cycle_server.properties").write_text(
            "webServerMaxHeapSize=2048M\nwebServerPort=8080\nwebServerSslPort=8443\nwebServerClusterPort=9443\n"
            "webServerEnableHttps=false\nwebServerJvmOptions=-Dx=y=z\n"
        )
        self.archive("zip")

    def _cli(self) -> None:
        """What an installer copies: the program, the Python beside it, an azcopy for root only."""
        self._program(self.fake / "cli/cyclecloud", "program.sh", "/bin/bash")
        self._program(self.fake / "cli/python3", "python3.sh", "/bin/bash")
        (self.fake / "cli/azcopy").write_text("")
        (self.fake / "cli/azcopy").chmod(0o700)
        package = self.fake / "packages/cyclecli"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        shutil.copy(FAKES / "accounts.py", package / "util.py")

    def archive(self, kind: Literal["zip", "tar"], *, modes: bool = True) -> Path:
        """Put an installer of the CLI among the server's tools; its own Python is reached through a link."""
        folder = "cyclecloud-cli-installer"
        texts = {"install.sh": (FAKES / "install.sh").read_text(), "kind": f"{kind}\n",
                 "embedded/bin/python3.12": "#!/bin/sh\n"}  # fmt: skip
        programs = {"install.sh", "embedded/bin/python3.12"}
        if kind == "zip":
            path = self.root / "opt/cycle_server/tools/cyclecloud-cli.zip"
            with zipfile.ZipFile(path, "w") as packed:
                for name, content in [*texts.items(), ("embedded/bin/python3", "python3.12")]:
                    entry = zipfile.ZipInfo(f"{folder}/{name}")
                    mode = stat.S_IFREG | (0o755 if name in programs else 0o644)
                    if name not in texts:
                        mode = stat.S_IFLNK | 0o777
                    if modes:
                        entry.external_attr = mode << 16
                    packed.writestr(entry, content)
            return path
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
        path = self.root / f"opt/cycle_server/tools/cyclecloud-cli-linux-{machine}.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, content in texts.items():
                member = tarfile.TarInfo(f"{folder}/{name}")
                member.size, member.mode = len(content.encode()), 0o755 if name in programs else 0o644
                tar.addfile(member, BytesIO(content.encode()))
            link = tarfile.TarInfo(f"{folder}/embedded/bin/python3")
            link.type, link.linkname = tarfile.SYMTYPE, "python3.12"
            tar.addfile(link)
        return path

    @property
    def environment(self) -> dict[str, str]:
        """What the unit and the extension see; the addresses are those of the fakes."""
        real = os.environ["PATH"]
        return {
            "PATH": f"{self.bin}:{real}", "FAKE_REAL_PATH": real, "FAKE_DIR": str(self.fake),
            "FAKE_PORT": str(self.site.port), "CYCLEFORGE_ROOT": str(self.root), "CYCLEFORGE_PYTHON": PYTHON,
            "CYCLEFORGE_IMDS": self.site.url, "CYCLEFORGE_BLOB": self.site.url, "CYCLEFORGE_PORTAL": self.site.portal,
            "FAKE_PYTHON": sys.executable,
            "CYCLEFORGE_TIME_SCALE": str(TIME_SCALE), "CYCLEFORGE_PATIENCE_S": str(PATIENCE_S),
            "CYCLEFORGE_PAUSE_SECONDS": "0.2", "CYCLEFORGE_FETCH_SECONDS": "600", "CYCLEFORGE_WAIT_SECONDS": "600",
            "CYCLEFORGE_AFTER_SECONDS": "600",
            "TMPDIR": str(self.fake / "tmp"),
        }  # fmt: skip

    # ------------------------------------------------------------ the extension

    def script(self) -> Path:
        """The script as the extension writes it: two lines of the deployment above our text."""
        lines = ["#!/bin/sh"]
        for name, value in (("FACTS", self.facts), ("SECRETS", self.secrets)):
            encoded = base64.b64encode(json.dumps(value, ensure_ascii=False).encode()).decode()
            lines.append(f"CYCLEFORGE_{name}={encoded}")
        path = self.fake / "download/0/script.sh"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("\n".join(lines).encode() + b"\n" + self.files[bootstrap.START].content)
        path.chmod(0o500)
        return path

    def deploy(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["/bin/sh", str(self.script())], env=self.environment | environment, cwd=self.fake,
                              capture_output=True, text=True, check=False)  # fmt: skip

    # ------------------------------------------------------------ the unit alone

    def unpack(self, **limits: Any) -> None:
        """What start.sh does before it starts the unit; `limits` shortens steps, in seconds."""
        home = self.root / "var/lib/cycleforge"
        home.mkdir(parents=True, exist_ok=True)
        (home / "facts.json").write_text(json.dumps(self.facts))
        (home / "secrets.json").write_text(json.dumps(self.secrets))
        content = b"".join(self.site.chunks.values())
        target = self.root / "opt/cycleforge" / self.facts["payloadSha256"]
        if not target.exists():
            with tarfile.open(fileobj=BytesIO(content)) as tar:
                # Our own archive; 3.11.4 brought the filter, and 3.12 warns without one.
                tar.extraction_filter = lambda member, _: member
                tar.extractall(target)
            (target.parent / "current").symlink_to(target.name)
            units = self.root / "etc/systemd/system"
            units.mkdir(parents=True)
            shutil.copy(target / "bootstrap/cycleforge-bootstrap.service", units)
            for name, file in compiled().items():
                (target / name).parent.mkdir(exist_ok=True)
                (target / name).write_bytes(file.content)
        if limits:
            path = target / "bootstrap/bootstrap.json"
            config = json.loads(path.read_text())
            config["limits"] |= limits
            path.write_text(json.dumps(config))

    def forget_result(self) -> None:
        (self.root / "var/lib/cycleforge/status.json").unlink(missing_ok=True)

    def run_until(self, moment: str) -> subprocess.CompletedProcess[str]:
        """The program with a power cut: `before NAME` or `after NAME` of a step."""
        return self.run(FAKE_KILL=moment)

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """One run of the program, without its launcher where that proves nothing more: `deploy` has it in every run."""
        if sys.executable != PYTHON:
            return self.launch("run", **environment)
        folder = self.root / "opt/cycleforge" / self.facts["payloadSha256"] / "bootstrap"
        launched = {"PYTHONPATH": str(folder), "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
        return warm().run(["run"], self.environment | launched | environment)

    def launch(
        self, command: str = "run", give: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        program = self.root / "opt/cycleforge" / self.facts["payloadSha256"] / "bootstrap/cycleforge-bootstrap"
        if "FAKE_KILL" in environment:
            python = self.fake / "killed"
            python.write_text(f'#!/bin/sh\nexec "{PYTHON}" "{FAKES}/killed.py" "$@"\n')
            python.chmod(0o755)
            environment["CYCLEFORGE_PYTHON"] = str(python)
        # In a session of its own: `retry` would otherwise find the terminal of whoever runs the tests.
        return subprocess.run([str(program), command], env=self.environment | environment, capture_output=True,
                              text=True, input=give, check=False, start_new_session=True)  # fmt: skip

    def reboot(self) -> None:
        """A tmpfs forgets; everything else stays."""
        shutil.rmtree(self.root / "run", ignore_errors=True)

    # ------------------------------------------------------------ looking

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.root / "var/lib/cycleforge/status.json").read_text())
        return document

    def step(self, name: str) -> dict[str, Any]:
        return next(step for step in self.status()["steps"] if step["name"] == name)

    def called(self, prefix: str) -> list[list[str]]:
        """Arguments of every call of a faked program whose name and arguments begin so."""
        calls = [[call["name"], *call["argv"]] for call in self.site.calls]
        return [call for call in calls if " ".join(call).startswith(prefix)]

    def everything_said(self) -> str:
        """Every argument, environment value, log, journal and file that is left on the server.

        The arguments of `initialize` are not among them: that command gets the password, and no other may.
        """
        seen = [
            json.dumps([[] if call["argv"][:1] == ["initialize"] else call["argv"], call["environment"]],
                       ensure_ascii=False)
            for call in self.site.calls
        ]  # fmt: skip
        for folder in (self.root, self.fake):
            for path in sorted(folder.rglob("*")):
                if stat.S_ISREG(path.lstat().st_mode):
                    seen.append(f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}")
        return "\n".join(seen)

    def close(self) -> None:
        """End what the test left running; nothing may have asked anyone, and no account may be locked."""
        pid = self.fake / "unit.pid"
        if pid.exists():
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.killpg(int(pid.read_text()), signal.SIGKILL)
        self.site.stop()
        assert self.site.dialogues == []
        assert not (self.fake / "dialogue").exists()
        assert self.site.accounts.locks == 0
