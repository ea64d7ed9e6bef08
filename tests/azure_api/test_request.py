"""What is declared about requests, and what a call makes of it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from azure.mgmt.resource import deployments, features, locks, resources, subscriptions

import generator
from generator.azure.clouds import Cloud
from generator.azure.reader import Reader
from generator.azure.request import Call, Request
from generator.azure.requests import resource_manager
from generator.azure.requests.rights import DENY_ASSIGNMENTS, PERMISSIONS
from generator.azure.session import Session
from tests.azure_api.declared import declared
from tests.azure_api.small import ME, Credential

DECLARED = dict(declared())
CLIENTS = (deployments, features, locks, resources, subscriptions)
MANAGER = "https://management.azure.com"
HERE, OTHER = f"/subscriptions/{ME}", "/subscriptions/subscription_id-"
THING = f"{HERE}/resourceGroups/g/providers/Microsoft.Compute/disks/x"
RECORD = f"{HERE}/providers/Microsoft.Resources/deployments/x"
READER = Reader(Session(Cloud("AzureCloud", MANAGER, MANAGER, False), Credential(), ME))


def written(call: Call) -> tuple[str, str]:
    """Method, and the address without the host."""
    request = READER._clients.written(call.write)
    assert request.url.startswith(MANAGER)
    return request.method, request.url.removeprefix(MANAGER)


def test_every_request_is_declared_once() -> None:
    """Two declarations of one path could name two versions of it."""
    paths = [(each.method, each.path.casefold(), each.query) for each in DECLARED.values()]
    assert len(paths) == len(set(paths))
    assert len(paths) > 5


@pytest.mark.parametrize("request_", DECLARED.values(), ids=DECLARED)
def test_every_request_names_its_source(request_: Request) -> None:
    assert request_.source.startswith("https://")
    assert request_.path.startswith("/")
    assert not request_.changes_nothing or request_.method == "POST"


OPERATIONS = {
    "subscription": ("GET", HERE, "2022-12-01"),
    "locations": ("GET", f"{HERE}/locations", "2022-12-01"),
    "providers": ("GET", f"{HERE}/providers", "2021-04-01"),
    "provider": ("GET", f"{HERE}/providers/namespace-", "2021-04-01"),
    "register": ("POST", f"{HERE}/providers/namespace-/register", "2021-04-01"),
    "feature": ("GET", f"{HERE}/providers/Microsoft.Features/providers/namespace-/features/name-", "2021-07-01"),
    "group": ("GET", f"{HERE}/resourcegroups/name-", "2021-04-01"),
    "delete_group": ("DELETE", THING, "2021-04-01"),
    "resources_in": ("GET", f"{HERE}/resourcegroups/group_name-/resources", "2021-04-01"),
    "tagged": ("GET", f"{HERE}/resources", "2021-04-01"),
    "tag": ("PATCH", f"{THING}/providers/Microsoft.Resources/tags/default", "2021-04-01"),
    "locks": ("GET", f"{OTHER}/providers/Microsoft.Authorization/locks", "2016-09-01"),
    "deployment": ("GET", f"{HERE}/providers/Microsoft.Resources/deployments/name-", "2025-04-01"),
    "deployments": ("GET", f"{HERE}/providers/Microsoft.Resources/deployments", "2025-04-01"),
    "what_if": ("POST", f"{HERE}/providers/Microsoft.Resources/deployments/name-/whatIf", "2025-04-01"),
    "validate": ("POST", f"{HERE}/providers/Microsoft.Resources/deployments/name-/validate", "2025-04-01"),
    "deploy": ("PUT", f"{HERE}/providers/Microsoft.Resources/deployments/name-", "2025-04-01"),
    "operations": ("GET", f"{RECORD}/operations", "2025-04-01"),
    "by_id": ("GET", THING, "2025-01-02"),
    "delete_by_id": ("DELETE", THING, "2025-01-02"),
    "stack": (
        "GET",
        "/subscriptions/subscription_id-/providers/Microsoft.Resources/deploymentStacks/name-",
        "2024-03-01",
    ),
    "delete_stack": ("DELETE", THING, "2024-03-01"),
}
"""What the clients of the pinned packages write: a new release must not send anything else."""
GIVEN = {
    "tags": {"a": "b"},
    "body": {},
    "resource_id": THING,
    "group_id": THING,
    "stack_id": THING,
    "deployment_id": RECORD,
}
ASK_BY_POST = {"what_if", "validate"}


def call_of(name: str) -> Call:
    operation = getattr(resource_manager, name)
    words = inspect.signature(operation).parameters
    made: Call = operation(*(GIVEN.get(word, f"{word}-") for word in words))
    return made


def test_every_operation_is_known() -> None:
    own = {
        name
        for name, each in vars(resource_manager).items()
        if inspect.isfunction(each) and each.__module__ == resource_manager.__name__ and not name.startswith("_")
    }
    assert own == OPERATIONS.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_written_as_before_and_says_whether_it_only_asks(name: str) -> None:
    call = call_of(name)
    method, address = written(call)
    parts = urlsplit(address)
    query = dict(each.split("=", 1) for each in unquote(parts.query).split("&"))
    assert (method, parts.path, query["api-version"]) == OPERATIONS[name]
    assert call.only_asks == (method == "GET" or name in ASK_BY_POST)


def test_values_are_quoted_and_cannot_leave_their_segment() -> None:
    path = f"{HERE}/providers/a%20b%2Fc?api-version=2021-04-01"
    assert written(resource_manager.provider("a b/c")) == ("GET", path)
    for wrong in ("", ".", ".."):
        with pytest.raises(ValueError, match="not a path"):
            written(resource_manager.provider(wrong))
    for call in (PERMISSIONS(scope=f"{HERE}/../y"), resource_manager.delete_stack(f"{HERE}/../y")):
        with pytest.raises(ValueError, match="not a path"):
            written(call)
    assert "%3Fx" in written(resource_manager.delete_stack(f"{HERE}/y?x"))[1]
    with pytest.raises(TypeError, match="no namespace"):
        DENY_ASSIGNMENTS(scope=HERE, namespace="x")


def test_text_in_a_filter_does_not_end_it() -> None:
    roles = Request("GET", "/x", "1", "https://x", query=(("$filter", "principalId eq '{who}'"),))
    assert "principalId eq 'o''x'" in unquote(written(roles(who="o'x"))[1])
    assert "tagName eq 't' and tagValue eq 'o''x'" in unquote(written(resource_manager.tagged("t", "o'x"))[1])


def test_the_line_for_az_does_the_same() -> None:
    assert READER.line(resource_manager.register("Microsoft.X y")) == (
        f"az provider register --namespace 'Microsoft.X y' --wait --subscription {ME}"
    )
    assert READER.line(DENY_ASSIGNMENTS(scope="/subscriptions/{subscription}")) == (
        f"az rest --method get --url '{MANAGER}/subscriptions/{ME}/providers/Microsoft.Authorization/denyAssignments"
        "?api-version=2022-04-01&$filter=atScope()'"
    )
    post = Request("POST", "/subscriptions/{subscription}/x", "1", "https://x", changes_nothing=True)
    assert READER.line(post(body={"a": "b c"})).endswith("""x?api-version=1' --body '{"a": "b c"}'""")


def shape(path: str) -> str:
    """A path without the names in it."""
    return re.sub(r"\{[^}]*\}", "{}", path).strip("/").casefold()


def operations_of_the_packages() -> set[str]:
    """Paths that Microsoft's clients write, but for those of any resource by its id."""
    texts = [Path(str(client.__file__)).with_name("operations") / "_operations.py" for client in CLIENTS]
    found = {shape(path) for text in texts for path in re.findall(r'"(/[^"\s]*\{[^"\s]*)"', text.read_text("utf-8"))}
    return {each for each in found if "microsoft." in each or "/providers/" not in each} - {"{}"}


def test_no_path_of_the_clients_is_declared_once_more() -> None:
    known = operations_of_the_packages()
    assert len(known) > 40
    assert shape("/subscriptions/{s}/providers/Microsoft.Resources/deployments/{name}/whatIf") in known
    assert {name for name, each in DECLARED.items() if shape(each.path) in known} == set()


def test_only_the_clients_module_knows_the_packages() -> None:
    own = Path(generator.__file__).parent
    assert {path.name for path in own.rglob("*.py") if "azure.mgmt" in path.read_text("utf-8")} == {"clients.py"}
