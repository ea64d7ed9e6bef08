"""Every figure of the catalogue has a declared place, and something reads it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

import msgspec
import pytest

from generator import catalog
from generator.catalog.azure_facts import Limits
from generator.catalog.files import FOLDER, Fact
from generator.catalog.size_files import SizeFile

PROVENANCE = re.compile(r"(?:\w+_)?(?:source|note)|unit|meaning|license|recovery_words")
"""Where a figure comes from and what it means are beside it for readers; `cycleforge list sources` has the keys."""

BY_GENERATION_OR_CHECK = {"GemmTypes", "TypicalRow"}
"""Their fields are looked up by what a GPU or a check is called."""


def structs(above: type[msgspec.Struct] = Fact) -> Iterator[type[msgspec.Struct]]:
    for each in above.__subclasses__():
        yield each
        yield from structs(each)


def named() -> set[str]:
    """Attributes that the code asks for, by their names or by words for `getattr`."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in FOLDER.parent.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    templates = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.parent.rglob("*.j2"))
    return asked | words | set(re.findall(r"\.(\w+)", templates))


def test_every_field_is_asked_for() -> None:
    asked = named()
    declared = {(each.__name__, name) for each in structs() for name in each.__struct_fields__}
    declared |= {("VmSize", name) for name in catalog.VmSize.__struct_fields__}
    assert len(declared) > 300
    unread = {(of, name) for of, name in declared if name not in asked and not PROVENANCE.fullmatch(name)}
    unread = {(of, name) for of, name in unread if of not in BY_GENERATION_OR_CHECK}
    assert unread == set()
    assert "display_name_of_a_region" not in asked


def test_every_table_has_its_declared_content() -> None:
    """What is read decodes; a file that nothing declares would be left over."""
    read = {name for name in vars(catalog) if (FOLDER / f"{name}.json").is_file()}
    for name in read:
        getattr(catalog, name)()
    assert catalog.mig_profiles("A100", 80)
    catalog.cloud("public")
    indirectly = {"clouds", "mig", "other_vm_sizes"}
    assert {path.stem for path in FOLDER.glob("*.json")} == read | indirectly


@pytest.mark.parametrize("size", ["Standard_ND96isr_H100_v5"])
def test_a_misspelt_key_is_refused(size: str) -> None:
    for path, kind in ((FOLDER / "limits.json", Limits), (FOLDER / "vm_sizes" / f"{size}.json", SizeFile)):
        content = json.loads(path.read_text(encoding="utf-8"))
        msgspec.convert(content, kind)
        with pytest.raises(msgspec.ValidationError, match="unknown field `valeu`"):
            msgspec.convert(content | {"valeu": 1}, kind)
