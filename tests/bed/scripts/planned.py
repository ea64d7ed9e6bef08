"""A node whose checks say what the test plans, so that only what follows from a verdict is tested."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from tests.bed.scripts.healthy import SLURM_USER, Healthy

CHECK = """
check_planned() {
    local line found=false
    local -a words=()
    while IFS= read -r line; do
        eval "words=(${line})"
        record "${words[@]}"
        found=true
    done < <(cat "${FAKE_STATE}/planned.${GIVEN[kind]}" 2>/dev/null || true)
    printf '%s' "${CYCLEFORGE_SINCE_S:-}" >"${FAKE_STATE}/since"
    if [[ "${found}" == false ]]; then record pass planned; fi
}
"""
OTHER_CHECKS = re.compile(r'^\. ".*/(?:checks-[a-z-]+|smi|container)\.sh"$', re.MULTILINE)
"""What is read for checks that these nodes do not make."""
VM_A, VM_B = "0ad2c2d8-0001-4b5c-9d3e-a00000000001", "0ad2c2d8-0001-4b5c-9d3e-b00000000002"


class Planned:
    def __init__(self, node: Healthy) -> None:
        self.node = node
        checks = node.root / "opt/cycleforge/slurm_nhc/checks.sh"
        checks.write_text(OTHER_CHECKS.sub("", checks.read_text()) + CHECK)
        for kind in ("quick", "deep"):
            conf = node.root / f"etc/cycleforge/nhc/{kind}.conf"
            first = next(line for line in conf.read_text().splitlines() if line.startswith("* || ."))
            conf.write_text(f"{first}\n* || cycleforge planned kind={kind}\n")
        for left in ("deep.json", "quick.json", "standing"):
            (node.root / "var/lib/cycleforge/health" / left).unlink(missing_ok=True)

    def says(self, kind: Literal["quick", "deep"], *records: tuple[str, str, str]) -> None:
        """What its runs of this kind record from now on: verdict or cure, check, detail. Nothing: they pass."""
        lines = [shlex.join((verdict, check, "", "", "", "", detail)) for verdict, check, detail in records]
        (self.node.state / f"planned.{kind}").write_text("".join(f"{line}\n" for line in lines))

    def finds(self, *records: tuple[str, str, str], code: int = 0) -> None:
        """A quick run that records this, and so do the next ones."""
        self.says("quick", *records)
        self.runs("quick", code=code)

    def configure(self, old: str, new: str) -> None:
        path = "etc/cycleforge/health.conf"
        text = self.node.read(path)
        assert f"{old}\n" in text, text
        self.node.write(path, text.replace(f"{old}\n", f"{new}\n"))

    def vm(self, vm_id: str | None, product_uuid: str = "") -> None:
        """Which VM this is: instance metadata answers `vm_id`, or with None nobody answers (curl's exit code 28)."""
        self.node.fake("curl", f"printf %s {vm_id.upper()}" if vm_id else "exit 28")
        if product_uuid:
            self.node.write("sys/class/dmi/id/product_uuid", product_uuid + "\n")

    def reboot(self, boot_id: str) -> None:
        """Another boot: /run is empty."""
        self.node.write("proc/sys/kernel/random/boot_id", boot_id + "\n")
        for path in sorted((self.node.root / "run").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()

    def boots(self, boot_id: str) -> None:
        self.reboot(boot_id)
        self.runs("deep", "boot")

    def runs(self, *words: str, code: int = 0) -> str:
        found, output = self.node.health(*words)
        assert found == code, output
        return output

    def passes(self, times: int) -> None:
        """So many quick runs without a failure."""
        for _ in range(times):
            self.says("quick")
            self.runs("quick")

    def in_slurm(self, state: str, reason: str = "", by: str = SLURM_USER) -> None:
        """What Slurm itself, or somebody else, did there."""
        (self.node.state / "slurm_by").write_text(by + "\n")
        (self.node.state / "slurm_state").write_text(state + "\n")
        (self.node.state / "slurm_reason").write_text(reason)

    def standing(self) -> dict[str, str]:
        """The note of what stands, of several lines of one key the last; empty when there is none."""
        return dict(self._note())

    def stands(self) -> list[str]:
        return sorted(" ".join(value.split()[:2]) for key, value in self._note() if key == "found")

    def _note(self) -> list[tuple[str, str]]:
        for place in ("run/cycleforge/standing", "var/lib/cycleforge/health/standing"):
            file = self.node.root / place
            if file.exists():
                return [
                    (key, value) for key, _, value in (line.partition("=") for line in file.read_text().splitlines())
                ]
        return []

    @property
    def state(self) -> str:
        file = self.node.state / "slurm_state"
        return file.read_text().strip() if file.exists() else "IDLE"

    @property
    def reason(self) -> str:
        return self.node.reason()
