"""What the stand-in knows: plain data that a test reads and changes.

    arm.state.documents["/providers/microsoft.compute/locations/eastus/usages"][0]["limit"] = 0
    arm.state.providers["Microsoft.NetApp"]["registrationState"] = "NotRegistered"
    arm.state.caller.roles = [(arm.state.scope, READER)]

`documents` has what is only read, by its path below the subscription in lower case; a list is answered as `value` with
pages, a function is asked (`state`, `asked`). `resources` has what was created, by id in lower case.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.bed.bicep.place import SUBSCRIPTION

from .exchange import Answer, Asked, RefusedError

if TYPE_CHECKING:
    from .runs import Run

OWNER: dict[str, Any] = {"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}
"""https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/privileged#owner"""
CONTRIBUTOR: dict[str, Any] = OWNER | {
    "notActions": [
        "Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write",
        "Microsoft.Authorization/elevateAccess/Action", "Microsoft.Blueprint/blueprintAssignments/write",
        "Microsoft.Blueprint/blueprintAssignments/delete", "Microsoft.Compute/galleries/share/action",
        "Microsoft.Purview/consents/write", "Microsoft.Purview/consents/delete",
        "Microsoft.Resources/deploymentStacks/manageDenySetting/action",
    ],
}  # fmt: skip
"""https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/privileged#contributor"""
READER: dict[str, Any] = OWNER | {"actions": ["*/read"]}
"""https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/general#reader"""
TENANT = "99999999-8888-7777-6666-555555555555"
Document = Any | Callable[["State", Asked], Any]


@dataclass
class Caller:
    """A service principal, and its roles: pairs of a scope and the permissions of a role."""

    client_id: str
    secret: str
    object_id: str
    roles: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    methods: tuple[str, ...] | None = None
    """How a user has signed in (`amr`); None: it is no user."""


@dataclass
class Operation:
    """Something that takes time: it is finished by the poll that makes `polls` zero."""

    id: str
    finish: Callable[[], Answer]
    polls: int
    result: Answer | None = None
    may_end: Callable[[], bool] = lambda: True

    def polled(self) -> Answer | None:
        """The result, None while it runs."""
        if self.result is None and self.may_end():
            self.polls -= 1
            if self.polls <= 0:
                try:
                    self.result = self.finish()
                except RefusedError as refused:
                    self.result = refused.answer
        return self.result


@dataclass
class State:
    """A subscription."""

    subscription: str = SUBSCRIPTION
    tenant: str = TENANT
    subscription_tenant: str = TENANT
    """Another one makes every token that of a wrong tenant."""
    others: tuple[str, ...] = ()
    """Further subscriptions of the tenant: a hub's, that of private DNS zones."""
    subscription_state: str = "Enabled"
    quota_id: str = "EnterpriseAgreement_2014-09-01"
    url: str = ""
    authority: str = ""
    callers: dict[str, Caller] = field(default_factory=dict)
    deny_assignments: list[dict[str, Any]] = field(default_factory=list)
    policies: dict[str, list[tuple[str, str, Any]]] = field(default_factory=dict)
    """Assignment → its conditions, see policies.py."""
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)
    locations: list[dict[str, Any]] = field(default_factory=list)
    documents: MutableMapping[str, Document] = field(default_factory=dict)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    what_if: dict[str, Any] = field(default_factory=dict)
    """What what-if answers, instead of comparing: `changes`, `potentialChanges`, `diagnostics`, or an `error`."""
    runs: dict[str, Run] = field(default_factory=dict)
    """Deployments, nested ones too, by id in lower case."""
    breakages: list[tuple[str, RefusedError]] = field(default_factory=list)
    """Resources, by a pattern of their id, that a deployment fails to create; see failures.py."""
    refusals: list[tuple[str, RefusedError]] = field(default_factory=list)
    """Resources, by a pattern of their id, that validation refuses, before anything is deployed."""
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)
    """Of key vaults, by id of the vault in lower case and name."""
    ticks: dict[str, int] = field(default_factory=dict)
    """How many ticks resources take, by a pattern of their id; others take one."""
    pace: int = 1
    """Ticks that pass when somebody asks about a deployment."""
    now: int = 1
    tick_s: int = 20
    began_at: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(datetime.UTC))
    shell: Callable[[str, str], tuple[str, str]] = lambda machine, script: ("", "")
    """What a machine's shell writes, by id of the machine and script."""
    is_agent_busy: bool = True
    """Whether a run command waits for the extensions that are being created."""
    console: Callable[[State, str], str] = lambda state, machine: ""
    """What a machine has written to its serial console, by its id."""
    boot: Callable[[State, dict[str, Any]], None] = lambda state, extension: first_boot(state, extension)
    """What happens when the extension that runs the first boot is created."""
    power: dict[str, str] = field(default_factory=dict)
    """Of machines that do not run, by id: `deallocated`, `stopped`."""
    said: dict[str, str] = field(default_factory=dict)
    """What an extension's instance view has as its message, by id."""
    commands_running: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    """Ids of machines that are deallocated, in lower case."""
    page_size: int = 1000
    polls: int = 2
    """How often a long operation is asked before it has ended."""
    retry_after: str = "0"
    """Sent with what is not finished."""
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def scope(self) -> str:
        """Id of the subscription."""
        return f"/subscriptions/{self.subscription}"

    @property
    def caller(self) -> Caller:
        """The one whose secret is in `Arm.environment`."""
        return next(iter(self.callers.values()))

    def begin(self, finish: Callable[[], Answer], polls: int | None = None) -> Operation:
        """Start a long operation."""
        operation = Operation(str(uuid.uuid4()), finish, self.polls if polls is None else polls)
        self.operations[operation.id] = operation
        return operation

    # ---- deployments

    def passes(self, ticks: int | None = None) -> None:
        """Time passes for all deployments; nested ones go with theirs."""
        nested = {part.inner.id.lower() for run in self.runs.values() for part in run.parts if part.inner is not None}
        left = self.pace if ticks is None else ticks
        while left > 0 and any(run.running for key, run in self.runs.items() if key not in nested):
            left, self.now = left - 1, self.now + 1
            for key, run in list(self.runs.items()):
                if key not in nested:
                    run.tick()
        self.now += left  # nothing runs any more

    def deployment_document(self, resource_id: str) -> dict[str, Any] | None:
        """The record of a deployment."""
        run = self.runs.get(resource_id.lower())
        return None if run is None else run.document()

    # ---- resources

    def resource(self, resource_id: str) -> dict[str, Any] | None:
        """A resource, also one that stands in its parent's properties: a subnet, a rule, a peering."""
        found = self.resources.get(resource_id.lower())
        if found is not None:
            return found
        parent_id, kind, name = [*resource_id.rsplit("/", 2), "", ""][:3]
        parent = self.resources.get(parent_id.lower())
        listed = next(
            (value for key, value in (parent or {}).get("properties", {}).items() if key.lower() == kind.lower()), None
        )
        if not isinstance(listed, list):
            return None
        return next((each for each in listed if str(each.get("name", "")).lower() == name.lower()), None)

    def put(self, resource_id: str, **fields: Any) -> dict[str, Any]:
        """A resource that is there before the test begins; type and name follow from the id."""
        kind, name = kind_of(resource_id)
        body = {"id": resource_id, "name": name, "type": kind, "properties": {}} | fields
        self.resources[resource_id.lower()] = body
        return body

    def below(self, scope: str) -> Iterator[dict[str, Any]]:
        """Every resource below a scope, itself not among them."""
        start = f"{scope.lower().rstrip('/')}/"
        for key in list(self.resources):
            if key.startswith(start):
                yield self.resources[key]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Every resource of a type."""
        return [each for each in self.resources.values() if each["type"].lower() == kind.lower()]


def first_boot(state: State, extension: dict[str, Any]) -> None:
    """The server leaves its fingerprints as outputs of a deployment, which modules/server-fingerprints.bicep reads."""
    group = extension["id"].partition("/providers/")[0]
    keys = ["ssh-ed25519 SHA256:" + "A" * 43]
    outputs = {
        "certificateSha256": {"type": "String", "value": ":".join(["AB"] * 32)},
        "sshHostKeys": {"type": "Array", "value": keys},
    }
    record = f"{group}/providers/Microsoft.Resources/deployments/cycleforge-fingerprints"
    state.put(record, properties={"provisioningState": "Succeeded", "mode": "Incremental", "outputs": outputs})


def kind_of(resource_id: str) -> tuple[str, str]:
    """Type and name of a resource id: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"""
    before, providers, rest = resource_id.rpartition("/providers/")
    if not providers:
        return "Microsoft.Resources/resourceGroups", before.rpartition("/")[2] or rest.rpartition("/")[2]
    namespace, *parts = rest.split("/")
    return "/".join([namespace, *parts[::2]]), parts[-1]
