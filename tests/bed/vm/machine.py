"""A virtual machine that a test drives: disks, boots, power cuts, and commands in it.

QEMU emulates the processor (no KVM), so a boot takes about 8 s. Commands go over a serial line to `guest/agent.sh`.
Every boot is a new QEMU process on the same disk files; it ends when the machine resets, powers off or loses power.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import io
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tests.bed.vm.image import Image, vm_image

BOOT_S = 1200
"""Far above the usual 8 s: the machine may have to share two cores with everything else."""
COMMAND_S = 1800


class VmError(AssertionError):
    """The machine did not do what was asked."""


class Machine:
    """A machine's disks and, while it runs, its QEMU process."""

    def __init__(
        self,
        image: Image,
        folder: Path,
        disks: Mapping[str, int],
        job: Mapping[str, bytes],
        broken: Collection[str],
        cpus: int,
    ) -> None:
        self.image, self.folder, self.disks, self.broken, self.cpus = image, folder, dict(disks), broken, cpus
        self.boots: list[float] = []
        """Seconds from the start of QEMU until the agent answered, per boot."""
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", image.root_disk, folder / "root.img"], check=True)
        (folder / "job.tar").write_bytes(_tar(job))
        (folder / "broken.conf").write_text(BROKEN)
        self.wipe()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / "agent"))
        self._server.listen(1)
        self._server.settimeout(20)
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: socket.socket | None = None

    def _command(self) -> list[str]:
        arguments = [
            f"root={self.image.root_argument}", "rw", "console=ttyS0", "quiet", "panic=-1", "mitigations=off",
            # On a busy host the kernel's test of the timer may fail, and an interrupt of a disk may come late.
            "no_timer_check", "nvme_core.io_timeout=10", "audit=0", "systemd.show_status=false",
        ]  # fmt: skip
        command = [
            # The plainest processor: what newer ones can do is slow when it is emulated.
            "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "qemu64", "-m", "1G",
            "-smp", str(self.cpus), "-nodefaults", "-display", "none", "-no-reboot", "-kernel", str(self.image.kernel),
            "-append", " ".join(arguments), "-serial", "file:console.log",
            "-chardev", "socket,id=agent,path=agent", "-serial", "chardev:agent", "-device", "virtio-rng-pci",
            "-drive", "file=job.tar,if=none,id=job,format=raw,readonly=on", "-device", "virtio-blk-pci,drive=job",
            *_disk("root", "ROOT"),
        ]  # fmt: skip
        for serial in self.disks:
            command += _disk(serial, serial, broken=serial in self.broken)
        return command

    # ------------------------------------------------------------ disks, from outside

    def path(self, serial: str) -> Path:
        return self.folder / f"{serial}.img"

    def wipe(self, *serials: str) -> None:
        """What Azure does at a deallocation: the disk reads as zeros. Only while the machine is off."""
        for serial in serials or tuple(self.disks):
            with self.path(serial).open("wb") as stream:
                stream.truncate(self.disks[serial])

    # ------------------------------------------------------------ power

    def boot(self) -> str:
        """Switch the machine on and wait until the agent answers; the boot's identity."""
        started = time.monotonic()
        self._start()
        word, _, identity = self._answer(BOOT_S).partition(b" ")
        if word != b"ready":
            raise VmError(f"the agent began with {word!r}\n{self.console()}")
        self.boots.append(time.monotonic() - started)
        return identity.decode()

    def boot_and_lose_power(self) -> None:
        """Switch on a machine in which something cuts the power before the boot has ended."""
        self._start()
        assert self._process is not None
        try:
            self._process.wait(BOOT_S)
        except subprocess.TimeoutExpired:
            raise VmError(f"the machine still runs\n{self.console()}") from None
        self.end()

    def _start(self) -> None:
        with (self.folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        try:
            self._agent, _ = self._server.accept()
        except TimeoutError:
            raise VmError(f"QEMU did not start:\n{(self.folder / 'qemu.log').read_text()}") from None

    def off(self, script: str = "systemctl poweroff") -> None:
        """Run a script that ends the boot, and wait for that; `echo b >/proc/sysrq-trigger` is a power cut."""
        assert self._process is not None
        self._send(script)
        try:
            self._process.wait(COMMAND_S)
        except subprocess.TimeoutExpired:
            raise VmError(f"the machine did not end by: {script}\n{self.console()}") from None
        self.end()

    def reboot(self) -> str:
        self.off("systemctl reboot")
        return self.boot()

    def end(self) -> None:
        """No power any more, from now on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._agent is not None:
            self._agent.close()
        self._process = self._agent = None

    # ------------------------------------------------------------ commands

    def shell(self, script: str, *, limit: float = COMMAND_S) -> tuple[int, str]:
        self._send(script)
        code, _, output = self._answer(limit).partition(b" ")
        return int(code), base64.b64decode(output).decode(errors="replace")

    def ok(self, script: str, *, limit: float = COMMAND_S) -> str:
        """Run a script that must succeed; its output without the last line end."""
        code, output = self.shell(script, limit=limit)
        if code:
            raise VmError(f"exit code {code} of: {script}\n{output}")
        return output.rstrip("\n")

    def console(self) -> str:
        file = self.folder / "console.log"
        return "\n".join(file.read_text(errors="replace").splitlines()[-25:]) if file.exists() else ""

    def close(self) -> None:
        self.end()
        self._server.close()

    # ------------------------------------------------------------ the wire

    def _send(self, script: str) -> None:
        assert self._agent is not None
        self._agent.sendall(base64.b64encode(script.encode()) + b"\n")

    def _answer(self, limit: float) -> bytes:
        assert self._agent is not None
        deadline = time.monotonic() + limit
        line = bytearray()
        while not line.endswith(b"\n"):
            self._agent.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                piece = self._agent.recv(65536)
            except TimeoutError:
                raise VmError(f"no answer within {limit} s, only {bytes(line[-200:])!r}\n{self.console()}") from None
            if not piece:
                raise VmError(f"QEMU ended:\n{(self.folder / 'qemu.log').read_text()}\n{self.console()}")
            line += piece
        return bytes(line).strip()


# Every read of a broken disk ends with an input/output error.
BROKEN = """[inject-error]
event = "read_aio"
errno = "5"
once = "off"
"""


def _disk(name: str, serial: str, *, broken: bool = False) -> list[str]:
    file = f"blkdebug:broken.conf:{name}.img" if broken else f"{name}.img"
    return [
        "-drive", f"file={file},if=none,id=d{serial},format=raw,cache=unsafe,discard=unmap",
        "-device", f"nvme,drive=d{serial},serial={serial}",
    ]  # fmt: skip


def _tar(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    # A block device is whole sectors.
    return stream.getvalue().ljust(-(-stream.tell() // 2**20) * 2**20, b"\0")


@contextlib.contextmanager
def machine(
    disks: Mapping[str, int], job: Mapping[str, bytes], *, broken: Collection[str] = (), cpus: int = 2
) -> Iterator[Machine]:
    """A booted machine with blank NVMe disks (serial → bytes), some of them unreadable, and a folder /job.

    Two processors show races of udev and our program at a boot; one costs a fifth less time on a busy host.
    """
    image = vm_image()
    folder = Path(tempfile.mkdtemp(prefix="cfvm."))
    with (image.root_disk.parent.parent / "vm-run.lock").open("a") as lock:
        # Two machines at once would only slow each other down to their time limits.
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = Machine(image, folder, disks, job, broken, cpus)
        try:
            made.boot()
            yield made
        finally:
            made.close()
            shutil.rmtree(folder)
