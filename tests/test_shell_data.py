"""In no script is text expanded twice: as the index of an array, as the name of a variable, or as code.

Bash expands `unset "A[$key]"`, `[[ -v A[$key] ]]` and the index in (( )) a second time, so a key from a file runs what
it holds. tests/projects/test_given_files.py attacks the scripts themselves; here is what a reader would overlook in a
new one.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.command import ROOT

TWICE = {
    "an index of unset, in double quotes or none": r'\bunset\s+(?:-v\s+)?(?:"[^"]*"\s+)*"?\w+\[[^\]]*\$',
    "an index behind -v": r'(?:\[\[|\[|&&|\|\||!)\s+-v\s+"?\w+\[[^\]]*\$|\bprintf\s+-v\s+"?\w+\[[^\]]*\$',
    "an index in arithmetic": r'\(\((?:(?!\)\)).)*(?<![{\w])[A-Za-z_]\w*\[(?:"\$|\$[{A-Za-z_])',
    "text as code": r"(?<![\w-])eval\b",
    "text as a name": r"\$\{!\w+(?![\w@*\[])[^}]*\}|(?<!-)(?<!--output )\b(?:declare|export)\s+(?:-\w+\s+)*\"?\$",
}
ALLOWED = {
    ("runner.sh", "text as code"): "the lines of our own configuration, which root has written: shell, as NHC's are",
    ("run.sh", "text as code"): "start-times: a command of the recipe itself",
    ("common.sh", "text as a name"): "names of settings: literals, or matched as the name of a variable",
    ("collective.sh", "text as a name"): "names of settings: literals",
    ("records.sh", "text as a name"): "names that sed or compgen have matched",
    ("judge.sh", "text as a name"): "a literal, in a shell of its own",
    ("runs.sh", "text as a name"): "the user's own settings, in a shell of their own for sbatch",
}


def scripts() -> list[Path]:
    """Every script that runs on a cluster."""
    listed = subprocess.run(["git", "ls-files", "*.sh"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split() if not name.startswith(("tests/", "benchmarks/"))]


def without_comments(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.parametrize("what", TWICE)
def test_no_text_is_expanded_twice(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in scripts()
        if (path.name, what) not in ALLOWED
        for line in without_comments(path)
        if re.search(TWICE[what], line)
    ]
    assert found == []


def test_no_exception_is_left_over() -> None:
    texts = {path.name: "" for path in scripts()}
    for path in scripts():
        texts[path.name] += "\n".join(without_comments(path)) + "\n"
    assert [key for key in ALLOWED if not re.search(TWICE[key[1]], texts[key[0]])] == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('unset "HOLDS[$1]"', "an index of unset, in double quotes or none"),
        ('unset -v "A[x]" "B[${id}]"', "an index of unset, in double quotes or none"),
        ('if [[ -v seen["${key}"] ]]; then', "an index behind -v"),
        ('printf -v "A[$k]" x', "an index behind -v"),
        ("n=$((COUNT[${name}] + 1))", "an index in arithmetic"),
        ('((SINCE["$1"] < BEFORE))', "an index in arithmetic"),
        ('eval "${line}"', "text as code"),
        ('echo "${!name:-}"', "text as a name"),
        ('export "${line}"', "text as a name"),
    ],
)
def test_each_form_is_seen(line: str, what: str) -> None:
    assert re.search(TWICE[what], line)


@pytest.mark.parametrize(
    "line",
    ["unset -v 'HOLDS[$1]'", '((${SINCE["$1"]} < BEFORE))', 'for name in "${!A[@]}"; do', "((GUARD[nodes] > 1))",
     '[[ -n "${A[${key}]+there}" ]]', "--eval-iters 1", 'n=$((${COUNT[${name}]} + 1))'],
)  # fmt: skip
def test_what_is_expanded_once_is_not_seen(line: str) -> None:
    assert [what for what, form in TWICE.items() if re.search(form, line)] == []
