"""The hand-written pages name what is there: files, links, commands, exit codes, definitions and make targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generator.cli.parser import full_parser
from generator.errors import exit_codes
from tests.command import ROOT

TOPS = "bicep_templates|benchmarks|bootstrap|cluster_defs|docs|generator|projects|recipes|tests"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += [page for folder in ("docs", "projects", "recipes") for page in sorted((ROOT / folder).rglob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def page_id(page: Path) -> str:
    """Its path in the checkout."""
    return page.relative_to(ROOT).as_posix()


def paths_of(page: Path) -> list[str]:
    """Paths of this repository in backticks; a name with a placeholder or a pattern is not one."""
    return sorted(set(re.findall(rf"`((?:{TOPS})/[\w./-]*)`", page.read_text(encoding="utf-8"))))


def anchors_of(page: Path) -> set[str]:
    """What a link may name after `#`, as GitHub makes it of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CONTRIBUTING.md"], ids=page_id)
def test_every_path_is_there(page: Path) -> None:
    """A page that names a file after a move sends its reader nowhere; examples of CONTRIBUTING.md create theirs."""
    assert [name for name in paths_of(page) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Relative links and their anchors."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        to = (page.parent / target).resolve() if target else page
        assert to.exists(), target
        assert not anchor or anchor in anchors_of(to), f"{target}#{anchor}"


def test_the_messages_of_connect_are_said() -> None:
    """What docs/connecting.md explains is in the code, but for what is filled in."""
    table = (ROOT / "docs/connecting.md").read_text("utf-8").split("| message | why | do |\n", 1)[1].split("\n\n", 1)[0]
    messages = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "generator").glob("*/*.py")))
    parts = [part.strip(" /") for message in messages for part in re.split("…|NAME", message)]
    assert len(messages) > 10
    assert [part for part in parts if part not in code] == []


def column(header: str) -> list[str]:
    """The first column of the README's table with this header, without its backticks."""
    table = README.split(f"{header}\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `?([\w-]+)`? \|", table, re.MULTILINE)


def test_the_readme_lists_every_command() -> None:
    """The verbs of the command, no more and no fewer."""
    actions = [action for action in full_parser()._actions if action.dest == "verb"]
    assert set(column("| command | does |")) == set(actions[0].choices or ())


def test_the_readme_lists_every_exit_code() -> None:
    """In the order of `cycleforge --help`."""
    assert column("| exit code | when |") == [str(code) for code, _ in exit_codes()]


def test_the_readme_lists_every_definition() -> None:
    """What `cluster_defs/` ships."""
    shipped = {path.stem for path in (ROOT / "cluster_defs").glob("*.yaml")}
    assert set(column("| definition | what it is |")) == shipped


def test_the_make_targets_exist() -> None:
    """Each `make NAME` of a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        name for page in PAGES for name in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert named <= targets
