"""`make test-gpu` against stand-ins: what it asks, keeps, hides and says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bed.fakes import NVIDIA_SMI
from tests.gpu import commands, redact, run
from tests.gpu.replay import machine as captured
from tests.gpu.replay import programs

SERIAL, UUID, HOST = "1654321000005", "GPU-8ffa0cd1-aa11-4b2c-9d3e-0123456789ab", redact.host_names()[:1]
BOOT, SEQUENCE = "b03ed610f21d46ab8243a495ba5a0058", "b033a22bbb384da0b0412e8f652deabb"


def record(message: object, facility: str = "0", **more: str) -> str:
    """A line of `journalctl --output=json`. Layout: systemd 255, src/shared/logs-show.c (output_json, json_escape)."""
    return json.dumps(
        {
            "SYSLOG_FACILITY": facility, "MESSAGE": message, "_BOOT_ID": BOOT,
            "__REALTIME_TIMESTAMP": "1700000000801302", "__MONOTONIC_TIMESTAMP": "1806379233",
            "__SEQNUM": "77", "__SEQNUM_ID": SEQUENCE,
            "__CURSOR": f"s={SEQUENCE};i=11c713;b={BOOT};m=6bab28e1;t=5b087959e3cfd;x=20528862f8f765c9", **more,
        },
        separators=(",", ":"),
    )  # fmt: skip


LOADING = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15"
LOG = [
    record("Linux version 6.8.0-1015-azure"),
    record("hv_netvsc 000d3a12-3456-000d-3a12-3456000d3a12 eth0: VF slot 1 added, 00:0d:3a:12:34:56"),
    record("trainer[41]: segfault at 10 ip 00 sp 00 error 4 in libnvidia-ml.so.550.54.15[7f00+1000]"),
    record(LOADING, _HOSTNAME="{host}", _MACHINE_ID=BOOT[::-1]),
]


class Machine:
    """Programs on PATH in place of a driver: the stand-in of all test machines, with one GPU."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.state, self.out = folder / "bin", folder / "state", folder / "captures"
        for each in (self.bin, self.state / "gpu"):
            each.mkdir(parents=True)
        (self.state / "gpus").write_text("0\n")
        for field, value in (("serial", SERIAL), ("uuid", UUID)):
            (self.state / f"gpu/0.{field}").write_text(f"{value}\n")
        self.program("nvidia-smi", NVIDIA_SMI.read_text())
        self.journal(*(line.replace("{host}", (HOST or ["host"])[0]) for line in LOG))
        self.program(
            "systemctl",
            "#!/bin/bash\nprintf 'Id=nvidia-persistenced.service\\nLoadState=loaded\\nActiveState=active\\n\\n'\n",
        )

    def journal(self, *lines: str) -> None:
        log = "".join(f"{line}\n" for line in lines)
        self.program("journalctl", f"#!/bin/bash\ncat <<'EOF'\n{log}EOF\n")

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
        """As `make test-gpu` starts it."""
        search = f"{self.bin}{os.pathsep}{os.environ['PATH']}" if path is None else path
        return subprocess.run(
            [sys.executable, "-m", "tests.gpu.run", "--out", str(self.out), *words],
            cwd=commands.ROOT, env={"PATH": search, "FAKE_STATE": str(self.state)}, capture_output=True, text=True,
            timeout=240,
        )  # fmt: skip

    @property
    def folder(self) -> Path:
        (found,) = self.out.iterdir()
        return found

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, subprocess.CompletedProcess[str]]:
    made = Machine(tmp_path_factory.mktemp("gpu"))
    return made, made.run()


def test_a_healthy_machine_is_captured_and_checked(machine: tuple[Machine, Any]) -> None:
    made, done = machine
    assert done.returncode == 0, done.stdout + done.stderr
    assert made.folder.name == "nvidia-h100-80gb-hbm3-550.54.15-x1"
    verdicts = {row["check"]: row["verdict"] for row in made.read(run.VERDICTS)}
    assert {"nvidia_smi", "gpu_count", "gpu_temperature", "gpu_remap_pending", "gpu_xid"} <= set(verdicts)
    assert set(verdicts.values()) == {"pass"}, verdicts
    for check in verdicts:
        assert re.search(rf"pass  {check}\b", done.stdout)


def test_each_command_of_the_list_is_kept_with_its_end(machine: tuple[Machine, Any]) -> None:
    made, _ = machine
    index = made.read(run.INDEX)
    asked = {tuple(entry["command"]) for entry in index}
    assert asked >= set(commands.all_commands())
    for entry in index:
        assert entry["called_by"]
        if "not_run" in entry:
            assert "is not on this machine" in entry["not_run"]
            assert not shutil.which(entry["command"][0])
        else:
            assert entry["exit"] in (0, 2), "the stand-in knows no -q -x"
            assert (made.folder / entry["printed"]).exists()
            assert entry["ms"] >= 0
    about = (made.folder / "README.md").read_text()
    assert re.search(r"on \d{4}-\d\d-\d\d on a machine with 1 × NVIDIA H100 80GB HBM3", about)
    assert "* kernel: " in about
    assert "* python: " in about


def test_nothing_in_a_capture_names_the_machine(machine: tuple[Machine, Any]) -> None:
    made, _ = machine
    for file in made.folder.iterdir():
        text = file.read_text()
        for secret in (SERIAL, UUID.removeprefix("GPU-"), *HOST, "00:0d:3a:12:34:56", BOOT, BOOT[::-1], SEQUENCE):
            assert secret.lower() not in text.lower(), file.name
    listed = next(file for file in made.folder.iterdir() if file.name.endswith("-nvidia-smi-l.txt"))
    assert listed.read_text() == "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
    log = next(file for file in made.folder.iterdir() if "journalctl" in file.name).read_text()
    (line,) = log.splitlines()
    kept = json.loads(line)
    assert (kept["MESSAGE"], kept["SYSLOG_FACILITY"], kept["_HOSTNAME"]) == (LOADING, "0", "node-1")
    assert kept["__REALTIME_TIMESTAMP"] == "1700000000801302"
    assert kept["__CURSOR"] == f"s={'0' * 32};i=000000;b={'0' * 32};m=00000000;t=0000000000000;x={'0' * 16}"
    assert kept["_BOOT_ID"] == kept["_MACHINE_ID"] == "0" * 32


def test_placeholders_are_stable_and_keep_the_layout() -> None:
    clean = redact.Redactor(["1654321000005", "1654321000006", "[N/A]"], ["gpu-box.example", "gpu-box"])
    text = (
        "| 1654321000006 | 1654321000005 | [N/A] | 16543210000059 |\n"
        f"{UUID} {UUID.upper()} MIG-11111111-2222-3333-4444-555555555555\n"
        "00000000-0000-0000-0000-000000000000 GPU-BOX gpu-box.example gpu-boxes\n"
        "<serial>1654321000005</serial><chassis_serial_number>0xABC1</chassis_serial_number><process_name>/home/me/a</process_name>\n"
        "    Chassis Serial Number             : 55AA\n"
    )
    found = clean.text(text)
    assert found == clean.text(text)
    assert found.splitlines() == [
        "| 0000000000002 | 0000000000001 | [N/A] | 16543210000059 |",
        "GPU-00000000-0000-0000-0000-000000000001 GPU-00000000-0000-0000-0000-000000000001 "
        "MIG-00000000-0000-0000-0000-000000000002",
        "00000000-0000-0000-0000-000000000000 node-1 node-1 gpu-boxes",
        "<serial>0000000000001</serial><chassis_serial_number>0x0003</chassis_serial_number><process_name>program</process_name>",
        "    Chassis Serial Number             : 0004",
    ]
    assert clean.left("x 1654321000005") == ["1654321000005"]
    assert clean.left(found) == []


def test_a_capture_can_be_replayed(
    machine: tuple[Machine, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = machine
    assert "nvidia-smi" in programs(made.folder, tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    gpus = run.identity()
    assert gpus == [{"name": "NVIDIA H100 80GB HBM3", "driver_version": "550.54.15", "serial": "0000000000001",
                     "uuid": "GPU-00000000-0000-0000-0000-000000000001"}]  # fmt: skip
    found = run.check(gpus[0]["name"], 1, captured(made.folder))
    assert [(row["check"], row["verdict"]) for row in found] == [
        (row["check"], row["verdict"]) for row in made.read(run.VERDICTS)
    ]


def test_a_sick_gpu_is_no_success(tmp_path: Path) -> None:
    made = Machine(tmp_path)
    (made.state / "gpu/0.ecc.errors.uncorrected.volatile.sram").write_text("3\n")
    done = made.run()
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"fail  gpu_ecc_sram_uncorrectable  3 errors  GPU 0", done.stdout)


def test_a_field_that_the_driver_does_not_know_is_left_out_of_the_next_question(tmp_path: Path) -> None:
    made = Machine(tmp_path)
    said = 'Field "clocks_event_reasons.active" is not a valid field to query.'
    refused = f"if [[ $* == *clocks_event_reasons* ]]; then echo '{said}'; exit 2; fi"
    made.program("nvidia-smi", NVIDIA_SMI.read_text().replace("#!/bin/bash\n", f"#!/bin/bash\n{refused}\n", 1))
    done = made.run()
    assert done.returncode == 0, done.stdout + done.stderr
    ends = [(entry["exit"], "clocks_event_reasons" in str(entry["command"])) for entry in made.read(run.INDEX)
            if "temperature.gpu,persistence_mode" in str(entry["command"])]  # fmt: skip
    assert ends == [(2, True), (0, False)]


NO_GPU = [
    ("No devices were found", 6, r"lists no GPU \(exit code 6\); it says: No devices were found"),
    ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, "couldn't communicate"),
    ("", 0, "it says: nothing"),
]


@pytest.mark.parametrize(("said", "code", "words"), NO_GPU)
def test_a_machine_without_a_gpu_is_told_so(said: str, code: int, words: str, tmp_path: Path) -> None:
    made = Machine(tmp_path)
    made.program("nvidia-smi", f'#!/bin/bash\nprintf "%s\\n" "{said}"\nexit {code}\n')
    done = made.run()
    assert done.returncode == 3
    assert re.search(words, done.stderr)
    assert not made.out.exists()


def test_make_says_what_is_missing_and_ends_badly(tmp_path: Path) -> None:
    """The target itself, on a machine without a driver; it installs nothing."""
    (tmp_path / "bin").mkdir()
    for tool in ("make", "bash", "sh", "nproc", "uname"):
        found = shutil.which(tool)
        if found:
            (tmp_path / "bin" / tool).symlink_to(found)
    done = subprocess.run(
        ["make", "--no-print-directory", "test-gpu", f"PYTHON={sys.executable}"],
        cwd=commands.ROOT, env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0
    assert "nvidia-smi is not on PATH: this machine has no NVIDIA driver" in done.stderr
    assert "pip" not in done.stdout
