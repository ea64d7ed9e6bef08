"""Templates: a missing name stops the render, and compiled templates are only a shortcut."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from generator.render.compiled import BesideModules


def rendered(source: str, cache: BesideModules) -> str:
    """The template `t` with that text, rendered in an environment of its own."""
    loader = jinja2.DictLoader({"t": source})
    return jinja2.Environment(loader=loader, bytecode_cache=cache, autoescape=False).get_template("t").render(x=1)


def compiled(folder: Path) -> list[Path]:
    """The files of the cache."""
    return sorted(folder.glob("template-*"))


def test_a_compiled_template_is_kept_and_used(tmp_path: Path) -> None:
    assert rendered("a{{ x }}", BesideModules(tmp_path, writes=True)) == "a1"
    (kept,) = compiled(tmp_path)
    before = kept.stat().st_mtime_ns
    assert rendered("a{{ x }}", BesideModules(tmp_path, writes=True)) == "a1"
    assert kept.stat().st_mtime_ns == before


def test_a_changed_template_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    assert rendered("a{{ x }}", BesideModules(tmp_path, writes=True)) == "a1"
    assert rendered("b{{ x }}", BesideModules(tmp_path, writes=True)) == "b1"


@pytest.mark.parametrize("damage", [b"", b"garbage", "cut"])
def test_a_damaged_file_is_compiled_anew(tmp_path: Path, damage: bytes | str) -> None:
    rendered("a{{ x }}", BesideModules(tmp_path, writes=True))
    (kept,) = compiled(tmp_path)
    kept.write_bytes(kept.read_bytes()[:-20] if isinstance(damage, str) else damage)
    assert rendered("a{{ x }}", BesideModules(tmp_path, writes=True)) == "a1"


def test_nothing_is_written_where_python_would_write_nothing(tmp_path: Path) -> None:
    assert rendered("a{{ x }}", BesideModules(tmp_path, writes=False)) == "a1"
    assert rendered("a{{ x }}", BesideModules(tmp_path / "absent", writes=True)) == "a1"
    assert compiled(tmp_path) == []
