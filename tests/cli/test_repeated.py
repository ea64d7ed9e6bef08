"""Options that are given more than once: lists add up, and of anything else a second, different value is refused."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from generator.cli import prove
from generator.cli.parser import _Once, full_parser
from generator.errors import CannotRead

WITHOUT_VALUE = (
    argparse._StoreTrueAction,
    argparse._HelpAction,
    argparse._VersionAction,
    argparse._SubParsersAction,
)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def options(*words: str) -> list[str]:
    return prove._options(full_parser().parse_args(["prove", "lab", *words]))


def test_no_option_of_any_verb_forgets_its_first_value() -> None:
    found = [action for parser in parsers(full_parser()) for action in parser._actions]
    assert sum(isinstance(action, _Once) for action in found) > 40
    for action in found:
        assert isinstance(action, (_Once, argparse._AppendAction, *WITHOUT_VALUE)), action


def test_gates_and_nodes_add_up() -> None:
    assert options("--skip", "links", "--skip", "node,sweep") == ["quick", "--skip=links,node,sweep"]
    assert options("--nodes", "gpu-[1-2]", "--skip=node", "--nodes=gpu-7") == [
        "quick",
        "--nodes=gpu-[1-2],gpu-7",
        "--skip=node",
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--partition", "a", "--partition", "b"], "argument --partition: given twice, with different values"),
        (["--max-hours=1", "--max-hours", "2"], "argument --max-hours: given twice, with different values"),
        (["--nodes", "4", "--nodes", "gpu-1"], "--nodes is given more than once; a number stands alone"),
        (["--skip", "a", "--skip="], "--skip needs a value"),
    ],
)
def test_what_cannot_add_up_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(CannotRead) as caught:
        options(*words)
    assert caught.value.message == says


def test_the_same_value_twice_is_one() -> None:
    assert options("--partition", "a", "--partition", "a") == ["quick", "--partition=a"]


def test_a_parser_begins_anew_each_time() -> None:
    parser = full_parser()
    for name in ("a", "b"):
        assert parser.parse_args(["prove", "lab", "--partition", name]).partition == name


def test_nodes_that_must_have_results_add_up() -> None:
    words = ["health", "report", "results", "--expect", "hpc-[1-2]", "--expect", "gpu-1"]
    assert full_parser().parse_args(words).expect == ["hpc-[1-2]", "gpu-1"]
