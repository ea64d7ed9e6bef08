"""Options that take a list add up where they are repeated."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from generator.cli import prove
from generator.cli.parser import full_parser
from generator.errors import CannotRead

LISTS = {"GATE,GATE", "RULE", "N|LIST", "NODES", "NODE", "STATE", "K=V"}
"""What stands for the values of options that take several."""


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def options(*words: str) -> list[str]:
    return prove._options(full_parser().parse_args(["prove", "lab", *words]))


def test_no_list_of_any_verb_forgets_its_first_values() -> None:
    every = [action for parser in parsers(full_parser()) for action in parser._actions if action.option_strings]
    added = {str(action.metavar) for action in every if isinstance(action, argparse._AppendAction)}
    assert added == LISTS
    for action in every:
        takes_several = str(action.metavar) in LISTS or "," in str(action.metavar or "")
        if takes_several and action.nargs is None:
            assert isinstance(action, argparse._AppendAction), action


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
        (["--nodes", "4", "--nodes", "gpu-1"], "--nodes is given more than once; a number stands alone"),
        (["--skip", "a", "--skip="], "--skip needs a value"),
    ],
)
def test_what_cannot_add_up_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(CannotRead) as caught:
        options(*words)
    assert caught.value.message == says


def test_nodes_that_must_have_results_add_up() -> None:
    words = ["health", "report", "results", "--expect", "hpc-[1-2]", "--expect", "gpu-1"]
    assert full_parser().parse_args(words).expect == ["hpc-[1-2]", "gpu-1"]
