"""What a rule is, and the register of all rules: a class with an id enters it by being defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeVar, get_args

from .problem import KeyPath, Level, Place, Problem, Related

Stage = Literal["text", "model", "definition", "plan", "files", "findings", "run", "template", "azure"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""When a rule looks: at the text of a definition, its keys and types, the read definition, the finished plan, the
rendered files, what all others found, the other definitions of the run; and, apart from definitions, at a cluster
template, and at what Azure answers (`generator.azure`). A stage runs when nothing before it stopped the build."""

SUBJECTS = {
    "00": "the file",
    "01": "keys and types",
    "02": "names",
    "03": "network",
    "04": "VM sizes and scale sets",
    "05": "partitions",
    "06": "storage",
    "07": "releases and images",
    "08": "containers",
    "09": "slurm.conf",
    "10": "accounting",
    "11": "high availability",
    "12": "spot",
    "13": "secrets",
    "14": "monitoring",
    "15": "projects",
    "16": "jobs",
    "17": "silence",
    "18": "size budgets",
    "19": "an existing server, and definitions without a cluster",
    "20": "cluster template: the file",
    "21": "cluster template: sections and attributes",
    "22": "cluster template: parameters",
    "23": "cluster template: nodes",
    "24": "cluster template: Slurm",
    "25": "hardening and landing zones",
    "30": "scheduling policy",
    "31": "several VM sizes in one partition",
    "32": "drained nodes",
    "33": "IMEX",
    "34": "settings of health checks",
    "35": "tools of deep health checks",
    "37": "programs that check nodes",
    "40": "Azure: sign-in, subscription, region",
    "41": "Azure: rights",
    "42": "Azure: providers and features",
    "43": "Azure: VM sizes and quota",
    "44": "Azure: images and terms",
    "45": "Azure: names",
    "46": "Azure: networks and DNS zones",
    "47": "Azure: file systems and databases",
    "48": "Azure: the deployment as a whole",
    "49": "Azure: policies on nodes",
}
"""First two digits of a rule's id → its subject."""

_LEVELS: dict[str, Level] = {"E": "error", "W": "warning", "I": "info"}


class Rule:
    """One check. The class attributes are what `cycleforge explain` and docs/rules.md print.

    A class below this one that gives an `id` is a rule, and `registered` knows it as soon as its module is imported.
    How a stage's rules look is declared by the class for that stage; rules of the stages `text` and `model` are found
    by the readers themselves.
    """

    id: ClassVar[str]
    summary: ClassVar[str]
    why: ClassVar[str]
    fix: ClassVar[str]
    source: ClassVar[str] = ""
    """Where the fact is documented; empty for what is our own decision."""
    stage: ClassVar[Stage]
    level: ClassVar[Level]
    """The first letter of the id decides."""
    subject: ClassVar[str]
    """The two digits after it decide."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "id" in cls.__dict__:
            _register(cls)

    @classmethod
    def problem(
        cls,
        path: KeyPath,
        message: str,
        hint: str | None = None,
        *,
        on_key: bool = False,
        place: Place | None = None,
        related: tuple[Related, ...] = (),
        hide_value: bool = False,
    ) -> Problem:
        """A finding of this rule; every problem is made here. `Problem` says what the parameters mean."""
        return Problem(cls.id, cls.level, path, message, hint, on_key, place, related, hide_value)


_registered: dict[str, type[Rule]] = {}


def _register(rule: type[Rule]) -> None:
    known = _registered.get(rule.id)
    if known is not None and (known.__module__, known.__qualname__) != (rule.__module__, rule.__qualname__):
        raise TypeError(f"{rule.__qualname__} and {known.__qualname__} both have the id {rule.id}")
    rule.level, rule.subject = _LEVELS[rule.id[0]], SUBJECTS[rule.id[1:3]]
    _registered[rule.id] = rule


def registered(stages: Sequence[Stage] = STAGES) -> tuple[type[Rule], ...]:
    """The rules of some stages that are imported by now, by number."""
    found = (rule for rule in _registered.values() if rule.stage in stages)
    return tuple(sorted(found, key=lambda rule: (rule.id[1:], rule.id[0])))


_Kind = TypeVar("_Kind", bound=Rule)


def instances(kind: type[_Kind]) -> tuple[_Kind, ...]:
    """One of each registered rule below a class, by number."""
    return tuple(rule() for rule in registered() if issubclass(rule, kind))
