"""The whole folder of three shipped definitions, as a reviewer reads it, and what differs in the others.

Files that are copied as they stand are named with their source instead of being repeated; everything that is generated
is shown.
"""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.definitions.build import NAMES, checked, rendered
from tests.definitions.folder_text import Folder, difference, whole

WHOLE = ("gpt3-h100", "llm-a100", "minimal")

# A file is compared with its counterpart in the first of these that has one.
NEAREST = {
    "hpc-lab": ("llm-a100", "minimal"),
    "mpt-h100": ("gpt3-h100", "minimal"),
    "reference": ("llm-a100", "gpt3-h100"),
}


class TextFile(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def folder(name: str) -> Folder:
    plan = checked(name).plan
    assert plan is not None, checked(name).problems
    return Folder(plan, rendered(name))


@pytest.mark.parametrize("name", WHOLE)
def test_whole_folder(name: str, snapshot: SnapshotAssertion) -> None:
    assert whole(folder(name)) == snapshot(extension_class=TextFile)


@pytest.mark.parametrize("name", NEAREST)
def test_what_differs(name: str, snapshot: SnapshotAssertion) -> None:
    bases = tuple(folder(base) for base in NEAREST[name])
    assert difference(folder(name), bases) == snapshot(extension_class=TextFile)


def test_every_definition_is_shown() -> None:
    assert sorted((*WHOLE, *NEAREST)) == sorted(NAMES)
    assert {base for bases in NEAREST.values() for base in bases} <= set(WHOLE)
