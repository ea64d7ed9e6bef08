"""The tutorial cannot lie: it is typed, and what it shows is what is printed."""

from __future__ import annotations

from pathlib import Path

from tests.tutorial.page import told
from tests.tutorial.shown import shown
from tests.tutorial.tell import PAGE
from tests.tutorial.user import at_a_shell


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    with at_a_shell(tmp_path) as typed:
        assert told(page, typed) == page, "make accept writes what is printed now"


def test_a_page_is_typed_block_by_block() -> None:
    page = (
        "# A\n\n```console\n$ one\nold\n$ two\n```\n\ntext\n\n```bash\n$ not typed\n```\n\n```console\n$ three\n```\n"
    )
    asked = []

    def typed(command: str) -> str:
        asked.append(command)
        return "" if command == "two" else f"said {command}\n\n"

    assert told(page, typed) == page.replace("$ one\nold", "$ one\nsaid one").replace("$ three", "$ three\nsaid three")
    assert asked == ["one", "two", "three"]


def test_states_on_the_way_are_left_out() -> None:
    """Which of them are seen depends on how busy the machine is."""
    start = "2026-11-24T00:05:15Z prove.sh: smoke: job 3 (smoke) on demo-htc-1, at most 45 minutes\n"
    kept = shown(start)
    assert "job 3 (smoke)" in kept
    states = "job.sbatch: job 2: PENDING (Priority)\n", "2026-11-24T00:05:15Z prove.sh: job 3 RUNNING: Prolog\n"
    assert [shown(start + each) for each in states] == [kept, kept]
