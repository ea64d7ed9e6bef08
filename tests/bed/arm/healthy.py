"""A subscription in which gpt3-h100 can be deployed."""

from __future__ import annotations

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

from tests.bed.bicep.place import SUBSCRIPTION

from . import offers
from .state import OWNER, Caller, State

_FILE = Path(__file__).with_name("healthy.json")


@cache
def _content() -> bytes:
    """What is read of the catalogue and of the file, once in each process; every state has a copy of its own."""
    content: dict[str, Any] = json.loads(_FILE.read_text().replace("{subscription}", SUBSCRIPTION))
    return pickle.dumps(content | {"documents": content["documents"] | offers.documents()}, pickle.HIGHEST_PROTOCOL)


def healthy_state() -> State:
    """Everything is registered, offered, accepted and allowed."""
    content: dict[str, Any] = pickle.loads(_content())
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
    state.documents = content["documents"]
    return state
