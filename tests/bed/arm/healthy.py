"""A subscription in which gpt3-h100 can be deployed."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.bed.bicep.place import SUBSCRIPTION

from . import offers
from .state import OWNER, Caller, Document, State

_FILE = Path(__file__).with_name("healthy.json")


class Documents(MutableMapping[str, Document]):
    """What is only read, by path: the state's own, copied when it is first looked at, which most tests do with few."""

    def __init__(self, kept: dict[str, bytes]) -> None:
        """`kept` has each as pickle writes it."""
        self._kept, self._own = dict(kept), dict[str, Document]()

    def __getitem__(self, path: str) -> Document:
        if path in self._kept:
            self._own[path] = pickle.loads(self._kept[path])
            del self._kept[path]
        return self._own[path]

    def __setitem__(self, path: str, document: Document) -> None:
        self._kept.pop(path, None)
        self._own[path] = document

    def __delitem__(self, path: str) -> None:
        del (self._kept if path in self._kept else self._own)[path]

    def __contains__(self, path: object) -> bool:
        return path in self._kept or path in self._own

    def __iter__(self) -> Iterator[str]:
        return iter((*self._kept, *self._own))

    def __len__(self) -> int:
        return len(self._kept) + len(self._own)


@cache
def _content() -> tuple[bytes, dict[str, bytes]]:
    """What is read of the catalogue and of the file, once in each process; every state has a copy of its own."""
    content: dict[str, Any] = json.loads(_FILE.read_text().replace("{subscription}", SUBSCRIPTION))
    documents = content.pop("documents") | offers.documents()
    return _pickled(content), {path: _pickled(each) for path, each in documents.items()}


def _pickled(content: object) -> bytes:
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def healthy_state() -> State:
    """Everything is registered, offered, accepted and allowed."""
    kept, documents = _content()
    content: dict[str, Any] = pickle.loads(kept)
    state = State()
    state.callers = {
        name: Caller(name, secret, object_id, [(state.scope, OWNER)])
        for name, secret, object_id in (
            ("aaaaaaaa-0000-0000-0000-000000000001", "the-secret-of-the-first", "bbbbbbbb-0000-0000-0000-000000000001"),
            (
                "aaaaaaaa-0000-0000-0000-000000000002",
                "the-secret-of-the-second",
                "bbbbbbbb-0000-0000-0000-000000000002",
            ),
        )
    }
    state.locations = content["locations"]
    state.providers = {
        name: {"registrationState": "Registered", "resourceTypes": [
            {"resourceType": kind, "locations": ["East US", "South Central US"], "apiVersions": versions,
             "zoneMappings": [{"location": "East US", "zones": ["1", "2", "3"]}]}
            for kind, versions in kinds.items()
        ]}
        for name, kinds in content["providers"].items()
    }  # fmt: skip
    state.documents = Documents(documents)
    return state
