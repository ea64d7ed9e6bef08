"""The tutorial cannot lie: it is typed, and what it shows is what is printed."""

from __future__ import annotations

from pathlib import Path

from tests.tutorial.page import told
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
