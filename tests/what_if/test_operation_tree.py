"""A deployment's operations as a tree, and its failures in plain words.

Bodies as in the examples of Azure/azure-rest-api-specs (DeploymentOperation) and of
https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/find-error-code
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator import catalog
from generator.azure import failures
from generator.azure.operation_tree import Part, State, Tree, duration, failed, news, seconds_of, tree_lines
from generator.azure.refusals import Cause, causes
from generator.azure.resource_ids import resource

GROUP = "/subscriptions/1/resourceGroups/lab-rg/providers"
MAIN = "/subscriptions/1/providers/Microsoft.Resources/deployments/lab"
NETWORK = f"{GROUP}/Microsoft.Resources/deployments/cycleforge-network"
SERVER = f"{GROUP}/Microsoft.Resources/deployments/cycleforge-server"


def operation(path: str, state: str, minute: int = 0, **more: Any) -> dict[str, Any]:
    target = {"id": path, "resourceType": "ignored", "resourceName": "ignored"}
    return {
        "properties": {
            "provisioningOperation": "Create",
            "provisioningState": state,
            "duration": "PT1M2.5S",
            "timestamp": f"2026-11-23T12:{minute:02}:00.1234567Z",
            "targetResource": target,
        }
        | more
    }


class Answers:
    """The operations of each deployment; counts what is asked."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self.answers: dict[str, list[dict[str, Any]]] = {"lab": [], "network": [], "server": []} | answers
        self.asked: list[str] = []

    def __call__(self, path: str) -> list[dict[str, Any]]:
        self.asked.append(path)
        return self.answers[path.rpartition("/")[2].removeprefix("cycleforge-")]


def usual() -> Answers:
    return Answers(
        lab=[
            operation("", "Succeeded", provisioningOperation="EvaluateDeploymentOutput"),
            operation(SERVER, "Failed", 9),
            operation(NETWORK, "Running"),
            {"properties": {"provisioningOperation": "Create", "provisioningState": "Running"}},
        ],
        network=[operation(f"{GROUP}/Microsoft.Network/virtualNetworks/v", "Succeeded")],
        server=[
            operation(
                f"{GROUP}/Microsoft.Compute/virtualMachines/s", "Failed", 8,
                statusMessage={"status": "Failed", "error": {"code": "SkuNotAvailable", "message": "not in eastus"}},
            ),
            operation(f"{GROUP}/Microsoft.Network/networkInterfaces/n", "Succeeded"),
        ],
    )  # fmt: skip


def test_the_tree_shows_what_runs_and_what_failed() -> None:
    assert tree_lines(Tree(usual()).of(MAIN)) == [
        "  … cycleforge-network     running  1 min 2 s",
        "    ✓ virtualNetworks v    done     1 min 2 s",
        "  ✗ cycleforge-server      failed   1 min 2 s",
        "    ✓ networkInterfaces n  done     1 min 2 s",
        "    ✗ virtualMachines s    failed   1 min 2 s",
    ]


def test_a_module_that_ended_well_is_not_asked_again() -> None:
    answers = usual()
    tree = Tree(answers)
    tree.of(MAIN)
    answers.answers["lab"][2] = operation(NETWORK, "Succeeded")
    shown = tree_lines(tree.of(MAIN))
    assert "  ✓ cycleforge-network     done    1 min 2 s" in shown
    assert not any("virtualNetworks" in line for line in shown)
    answers.asked.clear()
    tree.of(MAIN)
    assert answers.asked == [MAIN, SERVER]


def test_a_second_try_counts_not_the_first() -> None:
    path = f"{GROUP}/Microsoft.Compute/virtualMachines/s"
    tree = Tree(Answers(lab=[operation(path, "Succeeded", 5), operation(path, "Failed", 4)]))
    assert [part.state for part in tree.of(MAIN)] == ["done"]


def test_lines_say_only_what_is_new() -> None:
    said: dict[str, str] = {}
    answers = usual()
    tree = Tree(answers)
    assert news(tree.of(MAIN), said) == [
        "cycleforge-network: running", "virtualMachines s: failed after 1 min 2 s",
        "cycleforge-server: failed after 1 min 2 s",
    ]  # fmt: skip
    assert news(tree.of(MAIN), said) == []
    answers.answers["lab"][2] = operation(NETWORK, "Succeeded")
    assert news(tree.of(MAIN), said) == ["cycleforge-network: done after 1 min 2 s"]


def test_the_innermost_failure_is_found() -> None:
    (part,) = failed(Tree(usual()).of(MAIN))
    assert (part.title, part.causes) == ("virtualMachines s", (Cause("SkuNotAvailable", "not in eastus"),))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT4M12.5S", 252.5), ("P1DT2H", 93600.0), ("PT0S", 0.0), ("P", None), (None, None), ("1 h", None)],
)
def test_durations(text: object, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(None, ""), (12.9, "12 s"), (252.5, "4 min 12 s"), (3800, "1 h 3 min")])
def test_durations_in_words(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def nested() -> dict[str, Any]:
    """Three levels, as `az deployment sub create` prints them."""
    inner = {"error": {"code": "ScopeLocked", "message": "The scope is locked."}}
    middle = {"error": {"code": "Conflict", "message": json.dumps(inner)}}
    return {"error": {"code": "DeploymentFailed", "message": "At least one …", "details": [middle["error"]]}}


def test_a_failure_is_one_cause_in_plain_words() -> None:
    assert failures.text(failures.explained(causes(nested()), part="the network", name="lab", group="lab-rg")) == (
        "the network: a lock forbids it\n"
        "  Azure: ScopeLocked: The scope is locked.\n"
        "  hint: `az lock list --resource-group lab-rg --output table` shows it; whoever set it must remove it\n"
    )


def test_a_cause_that_nobody_knows_keeps_its_own_words() -> None:
    found = failures.explained([Cause("Odd", "so \x1b[2J it is")], name="lab", group="lab-rg")
    assert failures.text((*found, *found)) == "so \\x1b[2J it is\n  Azure's code: Odd\n"


def test_each_code_is_explained_once() -> None:
    codes = [code.lower() for row in catalog.azure_failures().failures.rows for code in row.codes]
    assert len(codes) == len(set(codes))
    for row in catalog.azure_failures().failures.rows:
        found = failures.explained([Cause(row.codes[0].upper(), "x")], name="lab", group="lab-rg")[0]
        assert found.words == row.words
        assert "{" not in str(found.fix).replace("{name: ", "")


@pytest.mark.parametrize(
    ("kind", "state", "text"),
    [
        ("Microsoft.Network/bastionHosts", "running", "usually about 10 min"),
        ("Microsoft.StorageCache/amlFilesystems", "running", "usually 10 min or more"),
        ("Microsoft.Network/bastionHosts", "done", ""),
        ("Microsoft.Network/natGateways", "running", ""),
    ],
)
def test_what_usually_takes_how_long(kind: str, state: State, text: str) -> None:
    part = Part(resource(f"{GROUP}/{kind}/x"), state, 61.0, (), (), 0.0)
    assert tree_lines([part])[0].endswith(f"1 min 1 s, {text}" if text else "1 min 1 s")
    (line,) = news([part], {}) or [""]
    assert text in line
    assert ("usually" in line) == bool(text)
