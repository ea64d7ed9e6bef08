"""`make test-gpu`: what the driver of this machine answers, and what the checks of a node make of it.

Runs each command that our scripts run on a GPU node (`commands.py` reads them out of the scripts) as far as it changes
nothing, keeps the answers without what identifies the machine, then runs the quick checks of a node with these GPUs.
Needs bash, the driver and Python 3.11 (an older one keeps the answers and makes no checks); no network, no root, no
package. Ends with 1 when a check failed, otherwise with 3 when this machine cannot do it or not everything that it can
was done (what was kept has a name of its own then, and is not replayed), with 0 when everything was asked.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import commands, redact

BUDGET_S = 240
LIMITS_S = {"dcgmi": 120, "nvbandwidth": 40}
LIMIT_S = 20
FOR_CHECKS_S = 70
"""What is kept of the time for the checks."""
CAPTURES = Path(__file__).parent / "captures"
PROJECT = commands.ROOT / "projects/slurm_nhc/specs/default/cluster-init/files"
LIBRARY = commands.ROOT / "projects/_lib/cycleforge.sh"
MODE = ("nvidia-smi", "--query-gpu=index,mig.mode.current,mig.mode.pending", "--format=csv,noheader")
SLICES = ("nvidia-smi", "-L")
"""Both are calls of the scripts, too, so that a capture has them."""
WHO = ("nvidia-smi", "--query-gpu=name,driver_version,serial,uuid", "--format=csv,noheader")
NEW_ENOUGH = sys.version_info >= (3, 11)
"""The Python of the machine need not be ours."""
WORDS = ("pass", "warn", "fail", "not_measured", "no_baseline")
INDEX, VERDICTS = "index.json", "verdicts.json"
INCOMPLETE = "-incomplete"
"""Ends the name of a capture that is not replayed: a driver that hangs answers less each time."""
OVER = "the time was over"
MOST = 4_000_000
UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')


class CannotError(Exception):
    """This machine cannot do it; the text says what is missing."""


def run(words: list[str], limit_s: float) -> tuple[int, str, int]:
    """Exit code (127 missing, 124 out of time), what was printed, milliseconds."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s
        )
        code, output = done.returncode, done.stdout
    except FileNotFoundError:
        code, output = 127, b""
    except PermissionError:
        code, output = 126, b""
    except subprocess.TimeoutExpired as late:
        code, output = 124, late.stdout or b""
    text = output.decode("utf-8", "replace")
    return (code if code >= 0 else 128 - code), text, round((time.monotonic() - began) * 1000)


def identity() -> list[dict[str, str]]:
    """Name, driver, serial number and UUID of each GPU; CannotError where there is none."""
    if not shutil.which("nvidia-smi"):
        raise CannotError("nvidia-smi is not on PATH: this machine has no NVIDIA driver, or its programs lie elsewhere")
    code, text, _ = run([*WHO], LIMIT_S)
    fields = WHO[1].partition("=")[2].split(",")
    rows = [line.split(", ") for line in text.splitlines() if line.count(", ") == len(fields) - 1]
    if code or not rows:
        said = " ".join(text.split())[:200] or "nothing"
        raise CannotError(f"nvidia-smi lists no GPU (exit code {code}); it says: {said}")
    return [{field: row[place] for place, field in enumerate(fields)} for row in rows]


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def capture(folder: Path, clean: redact.Redactor, deadline: float) -> list[dict[str, object]]:
    index: list[dict[str, object]] = []
    wanted = [(list(words), places) for words, places in commands.all_commands().items()]
    wanted.insert(0, ([*WHO], ("tests/gpu/run.py:1",)))
    # What belongs to the driver comes first: the time may be over before a tool of somebody else.
    wanted.sort(key=lambda each: LIMITS_S.get(each[0][0], 0))
    while wanted:
        words, places = wanted.pop(0)
        left = deadline - time.monotonic()
        entry: dict[str, object] = {
            "command": words,
            "called_by": sorted({place.rsplit(":", 1)[0] for place in places}),
        }
        if left < 1:
            entry["not_run"] = OVER
        elif not shutil.which(words[0]):
            entry["not_run"] = f"{words[0]} is not on this machine"
        else:
            code, text, ms = run(words, min(left, LIMITS_S.get(words[0], LIMIT_S)))
            if words[0] == "journalctl":
                text = redact.of_kernel(text)
            text = text[:MOST]
            name = f"{len(index) + 1:02d}-{slug(' '.join(words))[:60].strip('-')}.txt"
            (folder / name).write_text(clean.text(text), encoding="utf-8")
            entry.update(exit=code, ms=ms, printed=name, at=int(time.time()))
            unknown = UNKNOWN_FIELD.search(text)
            shorter = _without(words, unknown.group(1)) if code == 2 and unknown else None
            if shorter:
                wanted.insert(0, (shorter, places))
        index.append(entry)
    return index


def _without(words: list[str], field: str) -> list[str] | None:
    """The same query without a field that this driver does not know, as the checks ask it then."""
    start, _, fields = words[1].partition("=")
    rest = [each for each in fields.split(",") if each != field]
    return [words[0], f"{start}={','.join(rest)}", *words[2:]] if len(rest) > 1 else None


def divided() -> list[list[str]] | None:
    """The profiles of the MIG slices of each GPU; None where no GPU is in MIG mode."""
    _, modes, _ = run([*MODE], LIMIT_S)
    if not any(line.split(", ")[1:2] == ["Enabled"] for line in modes.splitlines()):
        return None
    found: list[list[str]] = []
    _, listed, _ = run([*SLICES], LIMIT_S)
    for line in listed.splitlines():
        slice_of = re.match(r"\s+MIG\s+(\S+)\s", line)
        if line.startswith("GPU "):
            found.append([])
        elif slice_of and found:
            found[-1].append(slice_of.group(1))
    return found


def lines_of_checks(model: str, gpus: int, slices: list[list[str]] | None) -> list[str]:
    """The lines of the quick configuration that are about GPUs, for a size that has these, divided as they are.

    Slices of several profiles are nothing that a partition has, and have no line.
    """
    from generator import catalog
    from generator.catalog.sizes import VmSize
    from generator.plan import health_checks
    from generator.plan.mig import MigPlan

    words = model.upper().split()
    same = [
        size
        for size in map(catalog.vm_size, catalog.vm_size_names())
        if size.gpu_vendor == "NVIDIA" and (size.gpu_model or "none").split()[0] in words
    ]
    limits = {
        key: row for size in same[:1] for key, row in size.health.items() if key in ("gpu_memory_errors", "gpu_pages")
    }
    size = VmSize(
        name="this machine", known=True, custom=True, gpu_count=gpus, gpu_vendor="NVIDIA",
        gpu_model=same[0].gpu_model if same else model, health=limits,
    )  # fmt: skip
    mig = None
    if slices is not None:
        alike = bool(slices) and bool(slices[0]) and len({profile for each in slices for profile in each}) == 1
        alike = alike and all(len(each) == len(slices[0]) for each in slices)
        profile, per_gpu = (slices[0][0], len(slices[0])) if alike else ("", 0)
        mig = MigPlan(profile=profile, per_gpu=per_gpu, slices=per_gpu * gpus, devices="")
    starts = ("gpu_", "mig_") if mig and mig.slices else ("gpu_",)
    own = [line.text for line in health_checks.quick(size, mig) if line.text.startswith(starts)]
    rows = (line.split("\t") for line in (PROJECT / "common_checks.tsv").read_text(encoding="utf-8").splitlines())
    return [row[1] for row in rows if row[0] == "nvidia"] + own


def this_machine(root: Path) -> dict[str, str]:
    """What the checks read beside their tools. Not /dev: no capture has a kernel log that journalctl does not show."""
    for part in ("proc", "sys"):
        (root / part).symlink_to(f"/{part}")
    return {}


def check(model: str, gpus: int, machine: Callable[[Path], dict[str, str]] = this_machine) -> list[dict[str, str]]:
    """The records of the quick checks, run by the node's own engine in a folder that stands for the machine.

    `machine` fills the folder and returns variables for the checks.
    """
    with tempfile.TemporaryDirectory(prefix="test-gpu-") as name:
        root = Path(name)
        here = root / "opt/cycleforge/slurm_nhc"
        shutil.copytree(PROJECT, here)
        shutil.copy(LIBRARY, here)
        variables = machine(root)
        conf = root / "quick.conf"
        asked = lines_of_checks(model, gpus, divided())
        lines = ['* || . "${CYCLEFORGE_CHECKS}"', *(f"* || cycleforge {line}" for line in asked)]
        conf.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command = ["bash", str(Path(__file__).with_name("one_gpu.sh")), str(here), str(conf), str(root / "records")]
        done = subprocess.run(
            command,
            env={**os.environ, "CYCLEFORGE_ROOT": str(root), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode or not (root / "records").exists():
            raise CannotError(
                f"the checks themselves ended with {done.returncode}: {(done.stdout + done.stderr)[-400:]}"
            )
        return [json.loads(line) for line in (root / "records").read_text(encoding="utf-8").splitlines()]


def versions() -> dict[str, str]:
    found = {"kernel": platform.release(), "machine": platform.machine(), "python": platform.python_version()}
    try:
        release = Path("/etc/os-release").read_text(encoding="utf-8")
        found["system"] = dict(re.findall(r'^(\w+)="?([^"\n]*)', release, re.M)).get("PRETTY_NAME", "")
    except OSError:
        pass
    for name, words in {"bash": ["bash", "--version"], "nvidia-smi": ["nvidia-smi", "--version"]}.items():
        code, text, _ = run(words, LIMIT_S)
        if code == 0:
            found[name] = text.strip() if name == "nvidia-smi" else text.splitlines()[0]
    return found


README = """# {name}, driver {driver}

Captured by `make test-gpu` on {date} on a machine with {gpus} × {name}.
`index.json` has each command with its exit code and the time in milliseconds, the files what was printed,
`verdicts.json` what the quick checks of a node made of it. UUIDs, serial numbers, the names of the machine and of
programs are replaced by placeholders of the same form; of the kernel's log only records about GPUs are kept.
{missing}
{versions}
"""


def main(arguments: list[str]) -> int:
    """Ask, redact, check, and put the folder in its place."""
    parser = argparse.ArgumentParser(prog="make test-gpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=CAPTURES, help="folder of the captures")
    parser.add_argument("--budget-s", type=float, default=BUDGET_S, help="time for everything (seconds)")
    given = parser.parse_args(arguments)
    deadline = time.monotonic() + given.budget_s
    try:
        gpus = identity()
        return ask(gpus, given.out, deadline)
    except (CannotError, commands.NotCoveredError) as why:
        print(f"test-gpu: {why}", file=sys.stderr)
        return 3


def ask(gpus: list[dict[str, str]], out: Path, deadline: float) -> int:
    """Capture and check; the folder takes its place when nothing in it names the machine."""
    name, driver = gpus[0]["name"], gpus[0]["driver_version"]
    spoken = [name, *(path.read_text(encoding="utf-8") for path in commands.scripts())]
    hosts = redact.names_to_hide(redact.host_names(), spoken)
    clean = redact.Redactor([gpu["serial"] for gpu in gpus], hosts)
    slices = divided()
    for gpu in gpus:
        clean.text(gpu["uuid"])  # in the order of the GPUs
    with tempfile.TemporaryDirectory(prefix="test-gpu-") as work:
        folder = Path(work) / "capture"
        folder.mkdir()
        index = capture(folder, clean, deadline - FOR_CHECKS_S)
        records: list[dict[str, str]] = []
        if NEW_ENOUGH:
            found = check(name, len(gpus))
            records = [{key: clean.text(str(value)) for key, value in record.items()} for record in found]
        lines = {key: " / ".join(clean.text(value).splitlines()) for key, value in versions().items()}
        shown = "\n".join(f"* {key}: {line}" for key, line in lines.items())
        date = time.strftime("%Y-%m-%d", time.gmtime())
        missing = not_done(index, records)
        about = README.format(
            name=name, driver=driver, gpus=len(gpus), date=date, versions=shown,
            missing="".join(f"\nNot complete, and not replayed: {each}.\n" for each in missing),
        )  # fmt: skip
        (folder / "README.md").write_text(about, encoding="utf-8")
        for file, content in ((INDEX, index), (VERDICTS, records)):
            if content:
                (folder / file).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        left = {word for file in folder.iterdir() for word in clean.left(file.read_text(encoding="utf-8"))}
        if left:
            raise CannotError(
                f"{len(left)} words that identify this machine are still in the capture; nothing was kept"
            )
        mode = "" if slices is None else "-mig"
        place = out / f"{slug(name)}-{driver}-x{len(gpus)}{mode}{INCOMPLETE if missing else ''}"
        out.mkdir(parents=True, exist_ok=True)
        if place.exists():
            shutil.rmtree(place)
        shutil.copytree(folder, place)
    return report(place, index, records, missing)


def not_done(index: list[dict[str, object]], records: list[dict[str, str]]) -> list[str]:
    """What this machine can do and was not done, in words."""
    found = []
    late = [entry for entry in index if entry.get("exit") == 124 or entry.get("not_run") == OVER]
    if late:
        found.append(f"{len(late)} commands did not end in time")
    if not NEW_ENOUGH:
        found.append(f"the checks need Python 3.11, this is {platform.python_version()}")
    elif any(record["verdict"] == "not_measured" and record["check"] == "nvidia_smi" for record in records):
        found.append("the checks got no answer from nvidia-smi")
    elif not records:
        found.append("no check was made")
    return found


def report(place: Path, index: list[dict[str, object]], records: list[dict[str, str]], missing: list[str]) -> int:
    for entry in index:
        end = entry.get("not_run") or f"exit {entry['exit']}, {entry['ms']} ms"
        print(f"{end:>40}  {' '.join(map(str, entry['command']))[:150]}")  # type: ignore[call-overload]
    print()
    for record in records:
        measured = f"{record['value']} {record['unit']}".strip()
        print(f"{record['verdict']:>12}  {record['check']}  {measured}  {record['detail']}".rstrip())
    counted = {word: [record["verdict"] for record in records].count(word) for word in WORDS}
    run_here = sum("exit" in entry for entry in index)
    print(
        f"\n{run_here} of {len(index)} commands run; checks: {', '.join(f'{n} {word}' for word, n in counted.items())}"
    )
    print(f"kept in {place}")
    for each in missing:
        print(f"test-gpu: {each}", file=sys.stderr)
    if counted["fail"]:
        return 1
    return 3 if missing or not counted["pass"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
