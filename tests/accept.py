"""Writes anew what is compared word by word: `make accept`, the one way to do it.

Pages and tables that are written from model, rules and catalogue, and the snapshots. What changed is printed, to be
read before it is committed. A recorded version of a project is not among it: a project that changed gets its next
version by `cycleforge project bump`, and here only the command is said.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from generator.files import assets
from generator.projects import lock
from tests.jobs import option_names
from tests.tutorial import tell

ROOT = assets.root()


def pages() -> Sequence[Path]:
    """The tutorial, and the files that `generator.references` writes, asked of another process: a page may be new."""
    names = "from generator.references import documents; print(*documents(), sep='\\n')"
    found = subprocess.run([sys.executable, "-c", names], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (*(ROOT / name for name in found.splitlines()), tell.PAGE)


def snapshots() -> Iterator[Path]:
    """All files below a folder of snapshots."""
    return (path for path in sorted((ROOT / "tests").glob("**/__snapshots__/**/*")) if path.is_file())


def tests_with_snapshots() -> Iterator[Path]:
    """The test files that compare with a snapshot."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "SnapshotAssertion" in path.read_text():
            yield path


def accepted() -> dict[str, str]:
    """Path in the checkout → text, of all pages and snapshots."""
    return {str(path.relative_to(ROOT)): path.read_text() if path.exists() else "" for path in (*pages(), *snapshots())}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """A line per file whose text is another one, with the number of lines that came and went."""
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        steps = [line[:1] for line in list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]]
        if old != new or (name in before) != (name in after):
            how = "" if name in before and name in after else " (new)" if name in after else " (gone)"
            lines.append(f"{name}: +{steps.count('+')} -{steps.count('-')} lines{how}")
    return lines


def sizes(texts: Mapping[str, str]) -> str:
    """How long the snapshots are: what nobody can read, nobody checks."""
    snapped = ((text.count("\n"), name) for name, text in texts.items() if "__snapshots__" in name)
    lengths = sorted(snapped, reverse=True)
    longest = ", ".join(f"{Path(name).name} {lines:,}" for lines, name in lengths[:3])
    return f"snapshots: {sum(lines for lines, _ in lengths):,} lines in {len(lengths)} files; longest: {longest}"


def main() -> int:
    """Write, compare, tell; 1 when a test fails for another reason than its snapshot."""
    before = accepted()
    subprocess.run([sys.executable, "-m", "generator.references"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    option_names.main()
    tell.main()
    command = [sys.executable, "-m", "pytest", "-q", "--snapshot-update", *map(str, tests_with_snapshots())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout)
    after = accepted()
    print("\n".join(changes(before, after) or ["nothing changed"]))
    print(sizes(after))
    for problem in lock.shipped_problems(
        sorted(path.parent.name for path in (ROOT / "projects").glob("*/project.ini"))
    ):
        print(f"{problem.message}: {problem.fix}")
    return min(done.returncode, 1)


if __name__ == "__main__":
    sys.exit(main())
