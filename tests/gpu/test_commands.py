"""The list of what is run on a GPU node comes from the scripts, and no call of theirs is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gpu import commands, run
from tests.gpu.shell import commands_of, constants_of

CALL = re.compile(
    r"(?:^\s*|[|;(!]\s*|\b(?:if|then|do|timeout [^|;]*?|run_tool \S+)\s+)"
    r"(?:nvidia-smi|dcgmi|nvbandwidth|nvidia-container-cli)\s+(?:\"?-|[a-z])"
)
"""A call by name, as a search for lines finds it: coarser than the reader of scripts, and written apart from it."""


def test_every_call_is_run_or_has_a_reason_not_to_be() -> None:
    for form in commands.forms():
        assert commands.why_not_run(form) or commands.asked(form)
    words = [" ".join(command) for command in commands.all_commands()]
    assert len(words) == len(set(words))
    assert not [text for text in words if "${" in text or "$(" in text]
    assert len([text for text in words if text.startswith("nvidia-smi")]) > 20


@pytest.mark.parametrize("read", commands.READS)
def test_what_else_is_read_is_in_the_list(read: str) -> None:
    """The kernel's log above all: without it a capture cannot be replayed."""
    assert [words for words in commands.all_commands() if " ".join(words).startswith(read)]


@pytest.mark.parametrize("words", [run.MODE, run.SLICES])
def test_what_the_run_itself_asks_is_in_the_list(words: tuple[str, ...]) -> None:
    assert words in commands.all_commands()


def test_a_search_for_lines_finds_no_call_that_the_list_lacks() -> None:
    known = {place for form in commands.forms() for place in form.places}
    missing = []
    for path in commands.scripts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{path.relative_to(commands.ROOT)}:{number}"
            hands_on = '"$@"' in line or "$1" in line
            if CALL.search(line) and not line.lstrip().startswith("#") and not hands_on and place not in known:
                missing.append(f"{place}: {line.strip()}")
    assert missing == []


def test_no_verb_types_a_command_of_a_gpu_tool_that_no_script_has() -> None:
    """`support`, `prove` and others write commands for nodes in Python."""
    typed = re.compile(rf"(?:{'|'.join(commands.TOOLS)})\s+-[\w-]+")
    found = {
        match.group()
        for path in commands.ROOT.glob(commands.SOURCES)
        for match in typed.finditer(path.read_text(encoding="utf-8"))
    }
    listed = {" ".join(command) for command in commands.all_commands()}
    shown = {"nvbandwidth -i"}  # a table that says how a floor was measured
    assert {call for call in found - shown if not any(text.startswith(call) for text in listed)} == set()


def project(root: Path, text: str) -> Path:
    folder = root / "projects/p/specs/default/cluster-init/files"
    folder.mkdir(parents=True)
    (folder / "new.sh").write_text(text)
    return root


SMI = 'ask() {\n    local kind="$1"\n    shift\n    timeout 20 nvidia-smi "$@"\n}\n'


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("nvidia-smi --query-gpu=new.field --format=csv", "nvidia-smi --query-gpu=new.field --format=csv"),
        (SMI + "if ! ask kind --query-gpu=a,b; then :; fi", "nvidia-smi --query-gpu=a,b"),
        (SMI + 'other() { REPLY="$(ask x "$@" 2>&1)"; }\nother -L', "nvidia-smi -L"),
        (
            'one() { nvidia-smi "--query-gpu=index,$1" --format=csv; }\none temperature.gpu >file',
            "nvidia-smi --query-gpu=index,temperature.gpu --format=csv",
        ),
        ('readonly F=x,y\nshown="$(nvidia-smi "--query-gpu=${F}" 2>/dev/null)"', "nvidia-smi --query-gpu=x,y"),
        ("bash -c 'nvidia-smi nvlink -s | head'", "nvidia-smi nvlink -s"),
        ("case $1 in\n    a) x=$(case y in y) nvidia-smi -q ;; esac) ;;\nesac", "nvidia-smi -q"),
        ("readonly P='set -e; nvidia-smi -q | cat'\nrun_tool 5 bash -c \"${P}\" x", "nvidia-smi -q"),
        ("local -a command=(journalctl --dmesg --new)", "journalctl --dmesg --new"),
    ],
)
def test_a_new_call_is_found_however_it_is_written(text: str, command: str, tmp_path: Path) -> None:
    assert " ".join(next(iter(commands.all_commands(project(tmp_path, text + "\n"))))) == command


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nvidia-smi --new-switch", "read or change"),
        ("nvidia-smi mig -new", "read or change"),
        ('nvidia-smi "--query-gpu=${new}"', "no value for new"),
    ],
)
def test_a_call_that_nobody_has_thought_of_is_an_error(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(commands.NotCoveredError, match=why):
        commands.all_commands(project(tmp_path, text + "\n"))


def test_what_changes_a_gpu_is_never_run() -> None:
    asked = commands.all_commands()
    assert not [words for words in asked if set(words) & set(commands.CHANGES)]
    left_out = [form for form in commands.forms() if commands.why_not_run(form)]
    assert {word for form in left_out for word in form.words} > {"-pm", "-ac", "-lgc", "-mig", "--gpu-reset", "-cgi"}


def test_words_are_read_as_bash_reads_them() -> None:
    text = """
# a comment with 'a quote
a "b c" 'd $e' f\\ g $'h\\'i' "$(j k)" ${l:-"m n"} >file 2>&1 # n
cat <<EOF
o 'p
EOF
q <<<"$r" && s | t
readonly U=1 V="${W}"
X=(1 2)
"""
    found = [command.words for command in commands_of(text)]
    assert found[0] == ("j", "k")
    assert found[1][:7] == ("a", "b c", "d $e", "f g", "h\\'i", "$()", '${l:-"m n"}')
    assert found[2:6] == [("cat",), ("q", "${r}"), ("s",), ("t",)]
    assert constants_of(commands_of(text)) == {"U": "1", "X": "1,2"}
