"""CONTRIBUTING.md: each worked example is carried out in a copy of the checkout, and touches no more than it says.

The page is prose to a reader; these lines of it are what is executed:

* "`path`, new:", "edited:" or "to try it:" before a block. A `diff` replaces the lines that it shows, which must be
  there exactly once, so that it needs no line numbers.
* Blocks in `bash` after no such line are the commands. `make accept` writes the pages here and lets the tests that
  follow write their snapshots; all of its tests would take minutes.
* "Files by hand: N" counts the new and the edited ones.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.bicep import compilers
from tests.command import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LIMITS = {
    "A VM size": 2,
    "A rule": 2,
    "A key that reaches the cluster template": 6,
    "A health check": 5,
    "A recipe": 4,
    "A kind of file system": 8,
}
"""Files by hand, at most."""
VERSIONED = {"A health check": "slurm_nhc"}
"""The project that gets a new version; no other example changes one."""
_BLOCK = re.compile(r"(?:^`([^`\n]+)`, (new|edited|to try it):\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BY_HAND = re.compile(r"^Files by hand: (\d+)$", re.MULTILINE)


@dataclass
class Example:
    """One section of the page."""

    title: str
    stated: int
    new: dict[str, str] = field(default_factory=dict)
    edited: dict[str, str] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)


def examples(page: str) -> dict[str, Example]:
    """The worked examples by title."""
    found = {}
    for section in page.split("\n## Worked examples\n", 1)[1].split("\n### ")[1:]:
        title, text = section.split("\n", 1)
        stated = _BY_HAND.search(text)
        assert stated, title
        example = found[title] = Example(title, int(stated[1]))
        kinds = {"new": example.new, "edited": example.edited, "to try it": example.tried}
        for path, how, language, content in _BLOCK.findall(text):
            if how:
                assert (language == "diff") == (how == "edited"), path
                kinds[how][path] = content
            else:
                assert language == "bash", title
                example.commands += content.splitlines()
    return found


def changed(text: str, diff: str) -> str:
    """The text with the hunks of the diff, which `@@` separates; AssertionError where their lines do not fit once."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        lines = [line or " " for line in hunk.splitlines()]
        assert {line[0] for line in lines} <= {" ", "-", "+"}, hunk
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] != left) for left in "+-")
        assert text.startswith(old) + text.count("\n" + old) == 1, f"not there exactly once:\n{old}"
        text = text.replace(old, new, 1) if text.startswith(old) else text.replace("\n" + old, "\n" + new, 1)
    return text


EXAMPLES = examples(PAGE)


class Checkout:
    """A copy of this checkout, with the programs of its environment."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        self.files = sorted(name for name in listed.split("\0") if (ROOT / name).is_file())
        for name in self.files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            # With its time, so that what is compiled already counts here, too.
            shutil.copy2(ROOT / name, self.root / name)
        for parent in {Path(name).parent for name in self.files if name.endswith(".py")}:
            if (ROOT / parent / "__pycache__").is_dir():
                shutil.copytree(ROOT / parent / "__pycache__", self.root / parent / "__pycache__")
        self.accepts = False

    def write(self, example: Example) -> None:
        """All files that the example touches by hand, and those to try it; Python among them is clean."""
        for path, content in (example.new | example.tried).items():
            assert not (self.root / path).exists(), f"{path} is not new"
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(content, encoding="utf-8")
        for path, diff in example.edited.items():
            text = (self.root / path).read_text(encoding="utf-8")
            (self.root / path).write_text(changed(text, diff), encoding="utf-8")
        python = [path for path in (*example.new, *example.edited) if path.endswith(".py")]
        for action in (["check"], ["format", "--check"]) if python else ():
            self.call([sys.executable, "-m", "ruff", *action, "--no-cache", "--quiet", *python])

    def run(self, line: str) -> None:
        """One command of the page."""
        words = shlex.split(line)
        if words == ["make", "accept"]:
            self.accepts = True
            words = [sys.executable, "-m", "generator.references"]
        elif words[0] == "cycleforge":
            words = [sys.executable, "-m", "generator", *words[1:]]
        elif words[:3] == ["python", "-m", "pytest"]:
            if compilers.program() is None and words[3] == "tests/bicep/test_compile.py":
                return  # all that is in it is not tried then
            own = ["-q", "-p", "no:cacheprovider", "--basetemp", str(self.root.parent / "tests")]
            words = [sys.executable, *words[1:], *own, *(["--snapshot-update"] if self.accepts else [])]
        else:
            assert words[0] in ("grep", "shellcheck"), f"not a command that the page may have: {line}"
        self.call(words)

    def call(self, words: list[str]) -> None:
        """Run a program here; AssertionError with what it says when it fails."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        environment["BICEP"] = compilers.program() or ""
        done = subprocess.run(
            words, cwd=self.root, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"$ {shlex.join(words)}\n{done.stdout}{done.stderr}"

    def changes(self) -> set[str]:
        """What differs from the real checkout, but for what is built or compiled."""
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}
        passing = re.compile(r"output/|(.*/)?__pycache__/|(.*/)?\.\w+/")
        names = {name for name in found | set(self.files) if not passing.match(name)}
        return {name for name in names if _content(ROOT / name) != _content(self.root / name)}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def written_by_programs(root: Path) -> set[str]:
    """The pages of `generator.references` in a checkout, asked of a process of its own: a page may be new."""
    line = "from generator.references import documents; print(*documents(), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", line], cwd=root, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_page_has_the_examples_that_have_a_limit() -> None:
    assert list(EXAMPLES) == list(LIMITS)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda example: example.title)
def test_an_example_touches_as_few_files_as_it_says(example: Example) -> None:
    assert len(example.new) + len(example.edited) == example.stated <= LIMITS[example.title]


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda example: example.title)
def test_an_example_works(example: Example, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.write(example)
    for line in example.commands:
        checkout.run(line)
    by_hand = {*example.new, *example.edited}
    others = {name for name in checkout.changes() - by_hand - set(example.tried) if "__snapshots__" not in name}
    versions = set()
    if example.title in VERSIONED:
        versions = {f"projects/{VERSIONED[example.title]}/project.ini", "projects/projects.lock.json"}
    assert versions <= others <= versions | written_by_programs(checkout.root)
    if not versions:
        assert not [name for name in by_hand | others if name.startswith("projects/")]


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (" a\n+x\n b\n", "a\nx\nb\nc\nb\n"),
        ("-a\n+x\n@@\n-c\n", "x\nb\nb\n"),
        (" c\n b\n+x\n", "a\nb\nc\nb\nx\n"),
    ],
)
def test_a_diff_is_applied_where_its_lines_are(diff: str, expected: str) -> None:
    assert changed("a\nb\nc\nb\n", diff) == expected


@pytest.mark.parametrize("diff", [" b\n+x\n", "-gone\n+x\n", "b\n"])
def test_a_diff_whose_lines_are_not_there_once_is_refused(diff: str) -> None:
    with pytest.raises(AssertionError):
        changed("a\nb\nc\nb\n", diff)
