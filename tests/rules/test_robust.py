"""Rules see repaired and odd definitions: they never raise, whatever the values are."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.definition.model.definition import Definition
from generator.definition.read import read_model
from generator.plan.network import layout_of
from generator.projects.local import LocalProject
from generator.rules import check_definition, check_findings
from generator.rules.base import Site, quoted
from generator.rules.secrets import secret_kind
from tests.bed.yaml_data import yaml_data
from tests.rules.test_good import EVERYTHING, EXISTING, PUBLIC

BASES: tuple[dict[str, Any], ...] = tuple(yaml_data(text) for text in (EVERYTHING, PUBLIC, EXISTING))
MONITORING = {"workspace_id": "x", "ingestion_endpoint": "y", "data_collection_rule_id": "z"}
SILENCE = [{"rule": "W0502", "reason": "none"}]
ODD = (
    "", " ", "/", "//", ":", "::", "=", ".", "-", "_", "\x00", "a\nb", "é", "１０.0.0.0/8", "0/0", "10.0.0.0/33",
    "-1", "null", "'", '"', "10.0.0.0/0", "1.2.3.4/0.0.0.255", "255.255.255.255/32", "ssh-rsa ====", "https://",
    "a" * 100_000, "ssh-ed25519 AAAAB3NzaC1yc2E=",
    "/subscriptions/" + "/" * 50, "$x", "${x}", "{}", "%s", "\u202e", "\U0001f600",
)  # fmt: skip


def leaves(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path


def put(data: Any, path: tuple[str | int, ...], value: object) -> None:
    for step in path[:-1]:
        data = data[step]
    data[path[-1]] = value


def check(data: dict[str, Any], read: Definition | None = None) -> int:
    """How many findings there are, if need be after reading the data; an exception fails the test."""
    definition = read or read_model(data).definition
    if definition is None:
        return 0
    local = {
        project.name: LocalProject(project.name, "1.0.0", ("default",), 10, None)
        for project in definition.projects
        if project.path is not None
    }
    site = Site(definition, data, layout_of(definition), local, ("secret-value",))
    found = list(check_definition(site))
    return len(found) + len(list(check_findings(site, found)))


@settings(max_examples=150, deadline=5000, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_values_never_raise(data: st.DataObject) -> None:
    base = copy.deepcopy(data.draw(st.sampled_from(BASES)))
    base["monitoring"], base["silence"] = dict(MONITORING), copy.deepcopy(SILENCE)
    paths = list(leaves(base))
    texts = st.one_of(st.sampled_from(ODD), st.text(max_size=40))
    for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=6, unique=True)):
        put(base, path, data.draw(st.one_of(texts, texts, st.integers(-1, 10**12), st.booleans())))
    for section in ("tags", "slurm.settings", "jobs.settings"):
        values = data.draw(st.dictionaries(texts, texts, max_size=2))
        if section == "tags":
            base["tags"] = values
        elif section == "slurm.settings":
            base["slurm"]["settings"] = values
        elif "jobs" in base:
            base["jobs"]["training"] = [{"recipe": "mpt", "settings": values}]
    check(base)


@cache
def base_and_places() -> tuple[dict[str, Any], list[tuple[str | int, ...]]]:
    """A definition with a value at almost every place, and these places."""
    base = copy.deepcopy(BASES[0])
    base["monitoring"], base["silence"] = dict(MONITORING), copy.deepcopy(SILENCE)
    return base, [path for path in leaves(base) if path[-1] != "type"]


def having(text: str, *paths: tuple[str | int, ...]) -> dict[str, Any]:
    """The definition with this text at these places."""
    changed = copy.deepcopy(base_and_places()[0])
    for path in paths:
        put(changed, path, text)
    return changed


REPAIRED: dict[tuple[str | int, ...], Definition] = {}
"""By place, the first definition that was checked with a text there."""


def cpu_s_everywhere(text: str) -> float:
    """CPU seconds for checking a definition with this text at one place after the other.

    Where the reader takes no text, rules have seen the definition that it makes of any, and see nothing new but the
    text itself, in the data beside it: that is checked for all of these places at once.
    """
    refused = []
    started = time.process_time()
    for path in base_and_places()[1]:
        changed = having(text, path)
        read = read_model(changed).definition
        assert read is not None
        first = REPAIRED.setdefault(path, read)
        if first is not read and first == read:
            refused.append(path)
        else:
            check(changed, read)
    if refused:
        check(having(text, *refused))
    return time.process_time() - started


@cache
def usual_cpu_s() -> float:
    """The same for a short text, once in a process."""
    return cpu_s_everywhere("x")


@pytest.mark.parametrize("odd", ODD, ids=[repr(odd)[:20] for odd in ODD])
def test_every_text_may_be_odd(odd: str) -> None:
    assert cpu_s_everywhere(odd) < 20 * usual_cpu_s(), "a text of some hundred characters must not stop the reader"


def test_the_time_for_many_bad_partitions_grows_with_their_number() -> None:
    def cpu_s(count: int) -> float:
        base = copy.deepcopy(BASES[1])
        base["slurm"]["partitions"] = [
            {"name": f"p{index}", "vm_size": f"Standard_Odd{index % 7}", "max_nodes": 10, "default": index == 0}
            for index in range(count)
        ]
        started = time.process_time()
        assert check(base) >= count
        return time.process_time() - started

    # Four times the partitions: 4 if linear, 16 if quadratic.
    assert cpu_s(400) < 9 * min(cpu_s(100) for _ in range(3))


@given(st.text(max_size=300))
def test_shown_values_stay_on_one_line(text: str) -> None:
    shown = quoted(text)

    assert shown.isprintable()
    assert len(shown) <= 62 * 10


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("password", "hunter2", True),
        ("site.dbPassword", "hunter2", True),
        ("HF_TOKEN", "abc", True),
        ("AccountKey", "abc", True),
        ("connection_string", "abc", True),
        ("tokenizer", "gpt2", False),
        ("max_tokens", "2048", False),
        ("TOKENS", "1", False),
        ("key", "value", False),
        (
            "ssh_public_key",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f a@b",
            False,
        ),
        ("password", "", False),
        ("note", "-----BEGIN RSA PRIVATE KEY-----", True),
        ("url", "https://user:pass@example.com/x", True),
        ("url", "ab://u:p@", True),
        ("note", "PuTTY-User-Key-File-3", True),
        ("url", "https://example.com:8080/x@y", False),
        ("url", "https://x.blob.core.windows.net/c?sv=1&sig=abcdefghijklmnopqrstuv%3D", True),
        ("commit", "878d65f", False),
        ("digest", "a" * 64, False),
    ],
)
def test_secrets_are_told_from_other_values(key: str, value: str, *, found: bool) -> None:
    assert (secret_kind(key, value) is not None) is found


def test_no_secret_is_ever_echoed() -> None:
    base = copy.deepcopy(BASES[0])
    base["slurm"]["partitions"][0]["configuration"] = {"site.password": "hunter2-very-secret"}
    base["admin"]["ssh_public_key"] = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----"
    definition = read_model(base).definition
    assert definition is not None

    problems = list(check_definition(Site(definition, base, layout_of(definition), {})))

    assert [problem.rule_id for problem in problems] == ["E1301", "E1301"]
    assert all(problem.hide_value for problem in problems)
    assert not any(word in repr(problems) for word in ("hunter2", "c2VjcmV0"))
