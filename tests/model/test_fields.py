"""How the model is declared: what a class refuses, and what its instances are."""

from typing import Any

import pytest

from generator.definition.kinds import kind_of, sections
from generator.definition.model.definition import Definition, Job
from generator.definition.model.fields import Section, Setting, setting
from generator.definition.read import read_model
from generator.definition.walk import setting_at


class Base(Section):
    name: str = setting(text="Name.", example="x")


class Extended(Base):
    """A section for the tests."""

    names: list[str] = setting(list, text="Names.", min_length=1)
    size: int | None = setting(None, text="Size.", unit="GB", ge=1, le=9)


def all_settings(section: type[Section] = Definition) -> dict[str, Setting]:
    """Every key of the model, as `Class.key`."""
    found: dict[str, Setting] = {}
    for name, declared in section.declared_keys.items():
        found[f"{section.__name__}.{name}"] = declared
        for inner in sections(kind_of(declared)):
            found |= all_settings(inner)
    return found


def test_the_keys_of_a_base_class_come_first() -> None:
    assert list(Extended.declared_keys) == ["name", "names", "size"]
    assert Extended.required_keys == ("name",)


def test_a_key_that_is_left_out_has_a_default_of_its_own() -> None:
    first, second = Extended(name="a"), Extended(name="a")
    assert (first.name, first.names, first.size) == ("a", [], None)
    assert first == second
    assert first.names is not second.names
    assert first != Extended(name="b")
    assert repr(first) == "Extended(name='a', names=[], size=None)"


@pytest.mark.parametrize(("values", "message"), [({}, "needs name"), ({"name": "a", "nam": "b"}, "does not know nam")])
def test_only_the_declared_names_make_a_section(values: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Extended(**values)


def test_a_section_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="size"):
        Extended(name="a").size = 3  # type: ignore[misc]


def test_a_field_without_a_declaration_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Bad.name needs"):

        class Bad(Section):
            name: str = "x"


def test_an_annotation_as_text_is_refused() -> None:
    """As `from __future__ import annotations` would make it."""
    with pytest.raises(TypeError, match=r"Bad.name needs"):
        type("Bad", (Section,), {"__annotations__": {"name": "str"}, "name": setting(text="Name.")})


def test_an_annotation_that_nothing_stands_for_is_refused() -> None:
    class Bad(Section):
        name: set[str] = setting(text="Names.")

    with pytest.raises(TypeError, match="no kind"):
        kind_of(Bad.declared_keys["name"])


def test_a_key_may_be_none_where_its_annotation_says_so() -> None:
    settings = all_settings()
    assert len(settings) > 300
    for name, declared in settings.items():
        assert declared.may_be_none == (type(None) in getattr(declared.annotation, "__args__", ())), name


def test_what_is_required_has_an_example_to_stand_in() -> None:
    for name, declared in all_settings().items():
        assert declared.example is not None or not declared.is_required, name


def test_a_text_alone_is_the_short_form_of_a_job() -> None:
    data = {"name": "x", "location": "y", "slurm": {}, "jobs": {"training": ["mpt", {"recipe": "mpt", "nodes": 2}]}}
    definition = read_model(data).definition
    assert definition is not None
    assert definition.jobs.training == [Job(recipe="mpt"), Job(recipe="mpt", nodes=2)]


def test_a_path_finds_its_declaration() -> None:
    data = {"storage": {"mounts": [{"type": "blob"}]}}
    mount = ("storage", "mounts", 0)
    by_type, by_default = setting_at(Definition, (*mount, "container"), data), setting_at(Definition, mount, {})
    assert by_type is not None
    assert by_default is not None
    assert (by_type.example, by_default.text) == ("data", "Further file systems that every node mounts.")
    assert setting_at(Definition, (*mount, "tier"), data) is by_default, "a blob container has none"
    assert setting_at(Definition, (), data) is None
