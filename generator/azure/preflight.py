"""Runs the checks, all at once, and applies what their findings offer: registers providers, accepts terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..login import LOGIN
from ..plan.deployment import Plan
from .check import Check, Finding, Local, LocalCheck, Remedy
from .checks import checks
from .checks.sign_in import NotSignedIn
from .reader import Reader
from .refusals import ODD, NotAsked, Refused
from .session import cloud_of_az
from .writer import Writer

Outcome = Literal["ok", "found", "not known", "not needed"]


class Report(Struct, frozen=True):
    """What preflight found. `outcomes` has every check, by number."""

    findings: tuple[Finding, ...]
    outcomes: tuple[tuple[Check, Outcome], ...]
    cloud: str
    subscription: str
    lines: tuple[str, ...]
    """What was asked, each once, as lines for `az`."""

    @property
    def is_known(self) -> bool:
        """Whether everything could be asked."""
        return all(finding.is_known for finding in self.findings)

    @property
    def fails(self) -> bool:
        """Whether the deployment or a job would fail."""
        return any(each.is_known and each.level == "error" for each in self.findings)


def preflight(plan: Plan, reader: Reader, local: Local, chosen: Sequence[Check] | None = None) -> Report:
    """Ask everything that this plan needs to know; changes nothing and raises nothing that Azure could cause."""
    every = checks() if chosen is None else tuple(chosen)
    needed = [check for check in every if check.needed(plan)]
    try:
        reader.session.get_token()
    except NotAsked as reason:
        # Nobody is signed in: said once, and everything else is not known either.
        finding = NotSignedIn.not_known(reason.reason, _hint(reason, reader, local))
        unknown = tuple((check, _outcome([finding] if check in needed else None)) for check in every)
        return _report((finding,), unknown, reader)
    with ThreadPoolExecutor(max(len(needed), 1)) as pool:
        found = dict(zip(needed, pool.map(lambda check: _run(check, plan, reader, local), needed), strict=True))
    outcomes = tuple((check, _outcome(found.get(check))) for check in every)
    return _report(_folded(each for one in found.values() for each in one), outcomes, reader)


def _report(findings: Iterable[Finding], outcomes: tuple[tuple[Check, Outcome], ...], reader: Reader) -> Report:
    lines = tuple(sorted(reader.lines))
    return Report(tuple(findings), outcomes, reader.session.cloud.name, reader.subscription, lines)


def _hint(reason: NotAsked, reader: Reader, local: Local) -> str | None:
    """What to type to be signed in: az asks the cloud that was set last, whatever the deployment's."""
    wanted = reader.session.cloud.name
    if cloud_of_az(local.environment) == wanted:
        return reason.hint
    return f"az cloud set --name {wanted}, then {LOGIN}"


def _run(check: Check, plan: Plan, reader: Reader, local: Local) -> tuple[Finding, ...]:
    try:
        if isinstance(check, LocalCheck):
            return tuple(check.run_here(plan, reader, local))
        return tuple(check.run(plan, reader))
    except NotAsked as not_asked:
        return (check.not_known(not_asked.reason, not_asked.hint),)
    except Refused as refused:
        return (check.not_known(f"Azure refused to answer: {refused}"),)
    except ODD as error:
        return (check.not_known(f"Azure's answer does not have the documented form ({type(error).__name__})"),)


def _outcome(found: Sequence[Finding] | None) -> Outcome:
    if found is None:
        return "not needed"
    if not found:
        return "ok"
    return "found" if any(each.is_known for each in found) else "not known"


def _folded(found: Iterable[Finding]) -> Iterable[Finding]:
    """The findings; what is not known for one reason is said in full once, and briefly after that."""
    first: dict[str, str] = {}
    for each in found:
        if each.is_known or first.setdefault(each.reason, each.rule_id) == each.rule_id:
            yield each
        else:
            short = f"{each.message.removesuffix(f': {each.reason}')}, for the reason of {first[each.reason]}"
            yield replace(each, message=short, hint=None)


Show = Callable[["Fixed"], None]


class Fixed(Struct, frozen=True):
    """What became of one fix; `reason` says why it was not done."""

    text: str
    reason: str | None

    def as_json(self) -> dict[str, str | bool | None]:
        return {"what": self.text, "done": self.reason is None, "reason": self.reason}


def remedies(findings: Iterable[Finding]) -> tuple[Remedy, ...]:
    """What can be done about them, each once."""
    return tuple({each.remedy.text: each.remedy for each in findings if each.remedy is not None}.values())


def fix(wanted: Sequence[Remedy], writer: Writer, show: Show) -> tuple[Fixed, ...]:
    """Do all of it at once, and show each as it ends; one that fails keeps no other from being done."""

    def one(remedy: Remedy) -> Fixed:
        try:
            remedy.apply(writer)
            done = Fixed(remedy.text, None)
        except NotAsked as not_asked:
            done = Fixed(remedy.text, "; ".join(filter(None, (not_asked.reason, not_asked.hint))))
        except Refused as refused:
            done = Fixed(remedy.text, f"Azure refuses: {refused}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            done = Fixed(remedy.text, f"Azure's answer does not have the documented form ({type(error).__name__})")
        show(done)
        return done

    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        return tuple(pool.map(one, wanted))
