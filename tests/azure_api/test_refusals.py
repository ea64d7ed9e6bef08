"""The innermost cause of what Azure answers; bodies as Azure's documentation and public issues show them."""

from __future__ import annotations

import json

import pytest

from generator.azure.refusals import Refused, causes

QUOTA = {"code": "QuotaExceeded", "message": "Operation could not be completed."}


def failed(message: str, *details: object) -> dict[str, object]:
    return {"error": {"code": "DeploymentFailed", "message": message, "details": list(details)}}


@pytest.mark.parametrize(
    "body",
    [
        {"error": QUOTA},
        {"status": "Failed", "error": QUOTA},
        failed("At least one resource deployment operation failed.", QUOTA),
        # https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
        failed("x", {"code": "Conflict", "message": json.dumps({"status": "Failed", "error": QUOTA}, indent=2)}),
        failed("x", {"code": "BadRequest", "message": json.dumps(failed("y", QUOTA))}),
        {"error": {"code": "Outer", "message": "x", "innererror": QUOTA}},
    ],
)
def test_the_innermost_cause_is_found(body: object) -> None:
    refused = Refused(400, body)
    assert (refused.code, refused.message) == ("QuotaExceeded", "Operation could not be completed.")
    assert len(refused.causes) == 1


def test_all_causes_are_kept_and_equal_ones_once() -> None:
    other = {"code": "SkuNotAvailable", "message": "not\r\n  here", "target": "vm"}
    found = causes(failed("x", QUOTA, other, QUOTA))
    assert [(each.code, each.message, each.target) for each in found] == [
        ("QuotaExceeded", "Operation could not be completed.", ""),
        ("SkuNotAvailable", "not here", "vm"),
    ]


@pytest.mark.parametrize("body", [{}, [], None, "text", {"error": None}, {"error": {}}])
def test_a_body_without_reason_gives_the_status(body: object) -> None:
    assert Refused(503, body).code == "HTTP 503"


def test_only_azure_says_that_something_is_missing() -> None:
    gone = {"error": {"code": "ResourceGroupNotFound", "message": "x"}}
    assert Refused(404, gone).is_missing
    assert not Refused(404, {}).is_missing
    assert not Refused(404, {"error": {"code": "InvalidResourceType", "message": "x"}}).is_missing
    assert not Refused(400, gone).is_missing


def test_endless_nesting_ends() -> None:
    body: dict[str, object] = {"code": "x", "message": "y"}
    for _ in range(500):
        body = {"error": {"code": "x", "message": "y", "details": [body]}}
    assert causes(body)[0].code == "x"
