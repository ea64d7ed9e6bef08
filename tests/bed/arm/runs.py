"""Deployments that run: each resource begins when those that it depends on are there, and takes a few ticks.

The clock ticks once whenever somebody asks about a deployment from outside (`State.pace` ticks). Nothing goes on in
between, so a test sees every step, and a client that is killed finds the deployment where it left it.

Sources: https://learn.microsoft.com/azure/azure-resource-manager/templates/resource-dependency (order),
https://learn.microsoft.com/rest/api/resources/deployments/get and
https://learn.microsoft.com/rest/api/resources/deployment-operations/list (the records),
https://learn.microsoft.com/azure/azure-resource-manager/templates/deployment-modes (a failure leaves what is there).
"""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.bed.bicep.template import evaluated
from tests.bed.bicep.values import EvaluationError

from .exchange import RefusedError
from .live import DEPLOYMENT, Live, Piece, body_of, invalid, shown_parameters
from .resources import create, group_exists, unlocked
from .state import State, kind_of

FINAL = ("Succeeded", "Failed", "Canceled")
_USAGE = (
    "At least one resource deployment operation failed. Please list deployment operations for details. Please see "
    "https://aka.ms/arm-deployment-operations for usage details."
)


@dataclass
class Part:
    """One resource of a deployment."""

    piece: Piece
    needs: set[int] = field(default_factory=set)
    """Places of the parts that come before."""
    state: str = "Waiting"
    ticks: int = 1
    inner: Run | None = None
    error: dict[str, Any] | None = None
    status: str = "OK"
    began: int = 0
    ended: int = 0
    number: str = field(default_factory=lambda: uuid.uuid4().hex[:16].upper())


@dataclass
class Run:
    """One deployment."""

    id: str
    live: Live
    location: str | None
    correlation_id: str
    tags: dict[str, str] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    state: str = "Accepted"
    outputs: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    began: int = 0
    ended: int = 0

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.state not in FINAL

    def begin(self) -> None:
        """Expand the template and find out the order."""
        world = self.live.state
        group_exists(world, f"{self.live.scope.id}/x")
        self.began = world.now
        pieces = list(self.live.pieces())
        self.parts = [Part(each, ticks=_ticks(world, each.id)) for each in pieces]
        for part in self.parts:
            for text in part.piece.raw.get("dependsOn", []):
                part.needs |= self._named(evaluated(text, part.piece.at))
        world.runs[self.id.lower()] = self

    def _named(self, wanted: str) -> set[int]:
        """The parts that an entry of `dependsOn` means: a symbol, the name of a loop, an id, a name."""
        found = {
            place
            for place, part in enumerate(self.parts)
            if wanted in (part.piece.symbol.partition("[")[0], part.piece.copy_name, part.piece.name)
            or part.piece.id.lower() == wanted.lower()
        }
        declared = {symbol for symbol, _ in self.live.declared()}
        if not found and wanted not in declared and not self._left_out(wanted):
            raise invalid(f"The resource '{wanted}' is not defined in the template.")
        return found

    def _left_out(self, wanted: str) -> bool:
        """Whether it is declared, but its condition is false."""
        return any(self.live.placed(raw, self.live)[2].lower() == wanted.lower()
                   for _, raw in self.live.declared() if "copy" not in raw)  # fmt: skip

    # ---- time

    def tick(self) -> None:
        """One step of everything that runs, then whatever can begin."""
        if not self.running:
            return
        self.state = "Running"
        for part in self.parts:
            if part.state == "Running":
                self._step(part)
        self._start()
        if not any(part.state == "Running" for part in self.parts):
            self._end()

    def _start(self) -> None:
        if any(part.state in ("Failed", "Canceled") for part in self.parts):
            return
        for part in self.parts:
            if part.state == "Waiting" and all(self.parts[place].state == "Succeeded" for place in part.needs):
                part.state, part.began = "Running", self.live.state.now
                if part.piece.kind == DEPLOYMENT:
                    self._nested(part)

    def _nested(self, part: Part) -> None:
        try:
            inner = self.live.nested(part.piece)
            location = evaluated(part.piece.raw.get("location"), part.piece.at)
            part.inner = Run(part.piece.id, inner, location, self.correlation_id)
            part.inner.begin()
        except (RefusedError, EvaluationError) as error:
            self._failed(part, error)

    def _step(self, part: Part) -> None:
        if part.inner is not None:
            part.inner.tick()
            if not part.inner.running:
                part.state, part.ended = part.inner.state, self.live.state.now
                part.error = part.inner.error
                part.status = "OK" if part.state == "Succeeded" else "Conflict"
            return
        part.ticks -= 1
        if part.ticks > 0:
            return
        try:
            self._effect(part)
        except (RefusedError, EvaluationError) as error:
            self._failed(part, error)

    def _effect(self, part: Part) -> None:
        world, piece = self.live.state, part.piece
        for pattern, refused in list(world.breakages):
            if fnmatchcase(piece.id.lower(), pattern.lower()):
                raise refused
        existed = world.resource(piece.id) is not None
        unlocked(world, piece.id, {"ReadOnly"})
        create(world, piece.id, body_of(piece))
        part.state, part.ended, part.status = "Succeeded", world.now, "OK" if existed else "Created"

    def _failed(self, part: Part, error: RefusedError | EvaluationError) -> None:
        if isinstance(error, EvaluationError):
            error = RefusedError(400, "InvalidTemplate", f"Unable to process template language expressions: '{error}'")
        names = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict"}
        part.state, part.ended = "Failed", self.live.state.now
        part.error, part.status = error.error, names.get(error.status, "Conflict")

    def _end(self) -> None:
        """Outputs, or what went wrong."""
        self.ended = self.live.state.now
        failed = [part for part in self.parts if part.state == "Failed"]
        if failed:
            self.state = "Failed"
            details = [part.error | {"target": part.piece.id} for part in failed if part.error is not None]
            self.error = {"code": "DeploymentFailed", "target": self.id, "message": _USAGE, "details": details}
        elif any(part.state in ("Canceled", "Waiting") for part in self.parts):
            self.state = "Canceled"
            self.error = {"code": "DeploymentCanceled", "message": "The deployment was canceled."}
        else:
            self._outputs()

    def _outputs(self) -> None:
        try:
            self.outputs = {
                name: {"type": one["type"].capitalize(), "value": evaluated(one["value"], self.live)}
                for name, one in self.live.template.get("outputs", {}).items()
                if not one["type"].lower().startswith("secure") and evaluated(one.get("condition", True), self.live)
            }
            self.state = "Succeeded"
        except (RefusedError, EvaluationError) as error:
            self.state = "Failed"
            text = f"Unable to evaluate template outputs: {error}"
            self.error = {"code": "DeploymentOutputEvaluationFailed", "message": text, "target": self.id}

    def cancel(self) -> None:
        """Nothing further begins; what a provider is doing goes on."""
        for part in self.parts:
            if part.state == "Waiting":
                part.state = "Canceled"
            if part.inner is not None and part.inner.running:
                part.inner.cancel()

    # ---- records

    def document(self) -> dict[str, Any]:
        """As `GET` of the deployment answers."""
        world = self.live.state
        fields: dict[str, Any] = {
            "templateHash": "0",
            "parameters": shown_parameters(self.live.template, self.live.given),
            "mode": "Incremental",
            "provisioningState": self.state,
            "timestamp": timestamp(world, self.ended or world.now),
            "duration": duration((self.ended or world.now) - self.began),
            "correlationId": self.correlation_id,
            "providers": [],
            "dependencies": [],
        }
        if self.state == "Succeeded":
            fields |= {"outputs": self.outputs, "outputResources": [{"id": each} for each in self.created()]}
        if self.error is not None:
            fields["error"] = self.error
        place = {"location": self.location} if self.location else {}
        tags = {"tags": self.tags} if self.tags else {}
        found = {"id": self.id, "name": self.live.name, "type": DEPLOYMENT}
        return found | place | tags | {"properties": fields}

    def created(self) -> list[str]:
        """Ids of what it created, nested deployments' too."""
        found: list[str] = []
        for part in self.parts:
            found += part.inner.created() if part.inner is not None else [part.piece.id]
        return found

    def operations(self) -> list[dict[str, Any]]:
        """One record for each resource that has begun, and one for the outputs."""
        found = [self._operation(part) for part in self.parts if part.began or part.state in FINAL]
        if self.state == "Succeeded" and self.live.template.get("outputs"):
            found.append(self._record("EvaluateDeploymentOutput", self.began, self.ended, "Succeeded", "OK"))
        return found

    def _operation(self, part: Part) -> dict[str, Any]:
        record = self._record("Create", part.began, part.ended, part.state, part.status, part.number)
        kind, _ = kind_of(part.piece.id)
        target = {"id": part.piece.id, "resourceType": kind, "resourceName": part.piece.name}
        record["properties"]["targetResource"] = target
        if part.error is not None:
            record["properties"]["statusMessage"] = {"status": "Failed", "error": part.error}
        return record

    def _record(
        self, what: str, began: int, ended: int, state: str, status: str, number: str = "08586000000000000000"
    ) -> dict[str, Any]:
        world = self.live.state
        fields = {
            "provisioningOperation": what, "provisioningState": state,
            "timestamp": timestamp(world, ended or world.now), "duration": duration((ended or world.now) - began),
            "trackingId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.id}/{number}")), "serviceRequestId": None,
        }  # fmt: skip
        if state in FINAL:
            fields["statusCode"] = status
        return {"id": f"{self.id}/operations/{number}", "operationId": number, "properties": fields}


def _ticks(state: State, resource_id: str) -> int:
    for pattern, ticks in state.ticks.items():
        if fnmatchcase(resource_id.lower(), pattern.lower()):
            return ticks
    return 1


def timestamp(state: State, ticks: int) -> str:
    """The time of a tick."""
    at = state.began_at + datetime.timedelta(seconds=ticks * state.tick_s)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def duration(ticks: int, tick_s: int = 20) -> str:
    """ISO 8601, as Azure writes it."""
    minutes, seconds = divmod(ticks * tick_s, 60)
    return f"PT{f'{minutes}M' if minutes else ''}{seconds}S"
