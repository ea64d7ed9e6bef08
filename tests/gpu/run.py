"""`make test-gpu`: what the driver of this machine answers, and what the checks of a node make of it.

Runs each command that our scripts run on a GPU node (`commands.py` reads them out of the scripts) as far as it changes
nothing, keeps the answers without what identifies the machine, then runs the quick checks of a node with these GPUs.
Needs bash, the driver and Python 3.11 (an older one keeps the answers and says that it makes no checks); no network, no
root, no package. Ends with 0 when everything was asked and no check failed, 1 when a check failed, 3 when this machine
cannot do it.
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
WHO = ("nvidia-smi", "--query-gpu=name,driver_version,serial,uuid", "--format=csv,noheader")
NEW_ENOUGH = sys.version_info >= (3, 11)
"""The Python of the machine need not be ours."""
WORDS = ("pass", "warn", "fail", "not_measured", "no_baseline")
INDEX, VERDICTS = "index.json", "verdicts.json"
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
    text = output[:4_000_000].decode("utf-8", "replace")
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
    """Run each command once; the index of what was kept."""
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
            entry["not_run"] = "the time was over"
        elif not shutil.which(words[0]):
            entry["not_run"] = f"{words[0]} is not on this machine"
        else:
            code, text, ms = run(words, min(left, LIMITS_S.get(words[0], LIMIT_S)))
            if words[0] in ("journalctl", "dmesg"):
                text = redact.of_kernel(text)
            name = f"{len(index) + 1:02d}-{slug(' '.join(words))[:60].strip('-')}.txt"
            (folder / name).write_text(clean.text(text), encoding="utf-8")
            entry.update(exit=code, ms=ms, printed=name)
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


def lines_of_checks(model: str, gpus: int) -> list[str]:
    """The lines of the quick configuration that are about GPUs, for a size that has these."""
    from generator import catalog
    from generator.catalog.sizes import VmSize
    from generator.plan import health_checks

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
    own = [line.text for line in health_checks.quick(size) if line.text.startswith("gpu_")]
    rows = (line.split("\t") for line in (PROJECT / "common_checks.tsv").read_text(encoding="utf-8").splitlines())
    return [row[1] for row in rows if row[0] == "nvidia"] + own


def check(model: str, gpus: int) -> list[dict[str, str]]:
    """The records of the quick checks, run by the node's own engine in a folder that stands for the machine."""
    with tempfile.TemporaryDirectory(prefix="test-gpu-") as name:
        root = Path(name)
        here = root / "opt/cycleforge/slurm_nhc"
        shutil.copytree(PROJECT, here)
        shutil.copy(LIBRARY, here)
        for part in ("proc", "sys", "dev"):
            (root / part).symlink_to(f"/{part}")
        conf = root / "quick.conf"
        lines = ['* || . "${CYCLEFORGE_CHECKS}"', *(f"* || cycleforge {line}" for line in lines_of_checks(model, gpus))]
        conf.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command = ["bash", str(Path(__file__).with_name("one_gpu.sh")), str(here), str(conf), str(root / "records")]
        done = subprocess.run(
            command,
            env={**os.environ, "CYCLEFORGE_ROOT": str(root)},
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
    """Of what has a say in the answers."""
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
programs are replaced by placeholders of the same form; of the kernel's log only lines about GPUs are kept.

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
    clean = redact.Redactor([gpu["serial"] for gpu in gpus], redact.host_names())
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
        about = README.format(name=name, driver=driver, gpus=len(gpus), date=date, versions=shown)
        (folder / "README.md").write_text(about, encoding="utf-8")
        for file, content in ((INDEX, index), (VERDICTS, records)):
            (folder / file).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        left = {word for file in folder.iterdir() for word in clean.left(file.read_text(encoding="utf-8"))}
        if left:
            raise CannotError(
                f"{len(left)} words that identify this machine are still in the capture; nothing was kept"
            )
        place = out / f"{slug(name)}-{driver}"
        out.mkdir(parents=True, exist_ok=True)
        if place.exists():
            shutil.rmtree(place)
        shutil.copytree(folder, place)
    return report(place, index, records)


def report(place: Path, index: list[dict[str, object]], records: list[dict[str, str]]) -> int:
    """Print what was asked and found, and return the exit code."""
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
    if not NEW_ENOUGH:
        print(
            f"test-gpu: the checks need Python 3.11, this is {platform.python_version()}; none was made",
            file=sys.stderr,
        )
        return 3
    return 1 if counted["fail"] or not counted["pass"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
