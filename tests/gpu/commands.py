"""What is run on a GPU node, read out of the scripts: checks, gate, jobs and the set-up of a node.

A form is a call as a script has it, with variables. `asked()` makes commands of forms; `CHANGES` names those that are
not run, and why. A form that neither covers is an error, so that no new call stays without a capture.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .shell import Command, commands_of, constants_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("projects/*/specs/default/cluster-init/*/*.sh", "projects/_lib/*.sh", "recipes/**/*.sh", "bootstrap/**/*.sh")
SOURCES = "generator/**/*.py"
"""`support`, `prove` and the other verbs type their commands for nodes in these."""
TOOLS = ("nvidia-smi", "dcgmi", "nvidia-container-cli", "nvbandwidth")
"""Programs of NVIDIA that the scripts call by name."""
READS = ("journalctl --dmesg", "systemctl show")
"""And what else the checks of GPUs read: the kernel's log and the state of services."""
_READERS = frozenset(read.split()[0] for read in READS)
BY_VARIABLE = {
    "COPY_TOOL[@]} -t ${test} -i 10": "nvbandwidth -t {test} -i 10",
    "${tool} -t ${test} -i 10": "nvbandwidth -t {test} -i 10",
}
"""Calls of a program whose name is a variable; the words after it, and what is called."""
RUNNERS = re.compile(r"^(timeout|run_tool|run_for_result|exec|command|sudo|env|!)$")
REDIRECTION = re.compile(r"^\d*[<>]|^&>|<\(\)")
CHANGES = {
    "-pm": "switches persistence mode", "-ac": "sets clocks", "-lgc": "locks clocks", "-rgc": "resets clocks",
    "-rac": "resets clocks", "-mig": "switches MIG mode", "--gpu-reset": "resets the GPU", "-cgi": "makes MIG slices",
    "-dci": "removes MIG slices", "-dgi": "removes MIG slices",
}  # fmt: skip
"""Words of nvidia-smi that change a GPU."""
READING = re.compile(r"^(--query-\S+|-L|--list-gpus|nvlink|-q)$|^--query-[a-z-]+=")
VALUES: dict[str, tuple[str, ...]] = {
    "REASONS_FIELD": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    "reasons_field": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    "options": ("",),
    "gpu": ("0",),
    "index": ("0",),
    "what": ("1",),
    "test": ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce"),
    "wanted[@]": ("nvidia-persistenced.service nvidia-dcgm.service nvidia-imex.service",),
    "units[@]/%/.service": ("nvidia-persistenced.service nvidia-dcgm.service",),
}
"""What variables of forms stand for on a node with one GPU, where the script does not say it itself."""


@dataclass(frozen=True)
class Form:
    words: tuple[str, ...]
    places: tuple[str, ...]
    """Where it stands: `FILE:LINE`."""


class NotCoveredError(Exception):
    """A call of a GPU tool that the list has no answer for."""


def scripts(root: Path = ROOT) -> list[Path]:
    return sorted(path for pattern in SCRIPTS for path in root.glob(pattern))


def forms(root: Path = ROOT) -> list[Form]:
    """Every call of a tool, each once, with constants of its script filled in."""
    found: dict[tuple[str, ...], list[str]] = {}
    by_folder: dict[Path, list[Path]] = {}
    for path in scripts(root):
        by_folder.setdefault(path.parent, []).append(path)
    for paths in by_folder.values():
        parsed = {path: commands_of(path.read_text(encoding="utf-8")) for path in paths}
        shared: dict[str, str] = {}
        for commands in parsed.values():
            shared.update(
                constants_of([each for each in commands if "readonly" in each.words[:1] or each.array.isupper()])
            )
        for path, commands in parsed.items():
            own = _own_constants(commands)
            others = [each for other, them in parsed.items() if other.parent == path.parent for each in them]
            for line, function, words in _calls(commands, _forwarders(commands, others)):
                known = {**shared, **own.get("", {}), **own.get(function, {})}
                filled = tuple(_fill(word, known) for word in words)
                found.setdefault(filled, []).append(f"{path.relative_to(root)}:{line}")
    return [Form(words, tuple(places)) for words, places in sorted(found.items())]


def _own_constants(commands: list[Command]) -> dict[str, dict[str, str]]:
    """Constants by function: a `local` of one is none of another."""
    by_function: dict[str, list[Command]] = {}
    for command in commands:
        by_function.setdefault(command.function, []).append(command)
    return {function: constants_of(them) for function, them in by_function.items()}


def _fill(word: str, known: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return known.get(match.group(1), match.group(0))

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value, word)


def _called(command: Command) -> tuple[str, ...]:
    """The words from the program on, without what runs it and without redirections."""
    if command.array.isupper():  # a constant
        return ()
    words = [word for word in command.words if not REDIRECTION.match(word)]
    while words and "=" in words[0] and not words[0].startswith("-"):
        words.pop(0)
    while words and RUNNERS.match(words[0]):
        if words[0] == "command" and words[1:2] == ["-v"]:
            return ()
        place = next((at for at, word in enumerate(words[1:], 1) if word in TOOLS or word in _READERS), 0)
        if not place:
            return tuple(words)
        # "run_for_result TOOL SECONDS RESULT COMMAND": its first word names the tool, too.
        if words[0] == "run_for_result":
            place = 4
        words = words[place:]
    return tuple(words)


def _forwarders(commands: list[Command], beside: list[Command]) -> dict[str, tuple[tuple[str, ...], int]]:
    """Functions that hand their words to a tool: what is called, and how many words they take for themselves."""
    known: dict[str, tuple[tuple[str, ...], int]] = {}
    defined = {command.function for command in commands}
    for source in (commands, [each for each in beside if each.function not in defined]):
        for _ in range(3):
            shifts: dict[str, int] = {}
            for command in source:
                if command.words[:1] == ("shift",):
                    count = (*command.words, "1")[1]
                    shifts[command.function] = shifts.get(command.function, 0) + (int(count) if count.isdigit() else 0)
                words = _called(command)
                if not command.function or command.function in known or not words:
                    continue
                if not any(re.search(r"\$\{[@1]\}", word) for word in words):
                    continue
                if words[0] in TOOLS:
                    known[command.function] = (words, shifts.get(command.function, 0))
                elif words[0] in known and words[0] != command.function:
                    known[command.function] = (_handed_on(known[words[0]], words[1:]), shifts.get(command.function, 0))
    return known


def _handed_on(forwarder: tuple[tuple[str, ...], int], given: tuple[str, ...]) -> tuple[str, ...]:
    words, shifted = forwarder
    rest = given[shifted:]
    out: list[str] = []
    for word in words:
        if word == "${@}":
            out += rest
        else:
            out.append(word.replace("${1}", rest[0] if rest else "${1}"))
    return tuple(out)


def _calls(
    commands: list[Command], forwarders: dict[str, tuple[tuple[str, ...], int]]
) -> list[tuple[int, str, tuple[str, ...]]]:
    """Line, function and words of each call of a tool, through forwarders."""
    found = []
    for command in commands:
        words = _called(command)
        text = " ".join(words)
        if not words:
            continue
        if words[0] in forwarders and command.function != words[0]:
            words = _handed_on(forwarders[words[0]], words[1:])
        elif by_variable := next((call for end, call in BY_VARIABLE.items() if text.endswith(end)), None):
            words = tuple(by_variable.replace("{test}", "${test}").split())
        handed_on = any("${@}" in word or "${1}" in word for word in words)
        if (words[0] in TOOLS or text.startswith(READS)) and not handed_on:
            found.append((command.line, command.function, words))
    return found


def why_not_run(form: Form) -> str:
    """Why a form is not run on a machine that must stay as it is; nothing where it is."""
    if "amdgpu" in form.words:
        return "is for AMD's GPUs"
    return next((why for word, why in CHANGES.items() if form.words[0] == "nvidia-smi" and word in form.words), "")


def asked(form: Form) -> list[list[str]]:
    """The commands of a form; NotCoveredError where a variable has no value or nothing says that it only reads."""
    place = form.places[0]
    if form.words[0] == "nvidia-smi" and not any(READING.match(word) for word in form.words[1:]):
        raise NotCoveredError(
            f"{place}: does '{' '.join(form.words)}' read or change? tests/gpu/commands.py has to know it"
        )
    texts = [" ".join(form.words)]
    for name in dict.fromkeys(re.findall(r"\$\{([^}]+)\}", texts[0])):
        values = VALUES.get(name) or _fields(name, place)
        if not values:
            raise NotCoveredError(f"{place}: '{texts[0]}': VALUES in tests/gpu/commands.py has no value for {name}")
        texts = [text.replace("${" + name + "}", value) for text in texts for value in values]
    return [text.split() for text in texts]


def _fields(name: str, place: str) -> tuple[str, ...]:
    """The query of all fields: its list is an array of the same script; the old name of a field is for old drivers."""
    if name != "REPLY" or "/smi.sh:" not in place:
        return ()
    found = commands_of((ROOT / place.rsplit(":", 1)[0]).read_text(encoding="utf-8"))
    fields = constants_of([command for command in found if command.array == "GPU_FIELDS"])["GPU_FIELDS"]
    return (fields.replace("clocks_throttle_reasons.active,", ""),)


def all_commands(root: Path = ROOT) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Each command once, with the places that call it so."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for form in forms(root):
        if why_not_run(form):
            continue
        for command in asked(form):
            found[tuple(command)] = (*found.get(tuple(command), ()), *form.places)
    return found
