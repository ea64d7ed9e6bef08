"""What a check reports, and the kinds there are."""

from __future__ import annotations

from dataclasses import dataclass

KINDS: dict[str, str] = {
    "unknown-section": "The kind of a section is not one that CycleCloud reads.",
    "misplaced-section": "A section lies where CycleCloud does not look for it.",
    "duplicate-section": "Two sections of one kind and name lie side by side; the second silently wins or merges.",
    "cluster-count": "A file describes exactly one cluster.",
    "unknown-attribute": "An attribute or configuration key that nothing reads, usually a misspelling.",
    "misplaced-attribute": "A node attribute in [[[configuration]]], or a configuration key outside of it: no effect.",
    "duplicate-attribute": "An attribute is set twice for the same object.",
    "unknown-function": "An expression calls a function that is not documented.",
    "duplicate-parameter": "A parameter is declared twice.",
    "undeclared-parameter": "A $Parameter is used that no [[[parameter]]] declares; the import fails.",
    "unused-parameter": "A declared parameter has no effect.",
    "unknown-value": "The parameter file sets a parameter that the template does not declare.",
    "missing-value": "A required parameter has no value.",
    "value-type": "A value in the parameter file is not of the parameter's type.",
    "secret-value": "A password stands in the parameter file.",
    "late-value": "A parameter that is filled in on the server is not declared or already has a value.",
    "unknown-base": "Extends names a node that does not exist.",
    "circular-base": "A node inherits from itself.",
    "missing-attribute": "A node lacks one of the attributes without which it cannot start.",
    "node-name": "The name of a node array breaks host names; only a-z, 0-9 and '-' work.",
    "missing-role": "A node has no slurm.role; without Chef nothing configures it.",
    "missing-spec": "A node lacks a spec of the Slurm project that its role needs.",
    "missing-hpc": "slurm.hpc is not set explicitly, which breaks `azslurm scale` for the whole cluster.",
    "contradicting-hpc": "slurm.hpc = true with autoscale.is_hpc = false breaks `azslurm scale` for the whole cluster.",
    "hidden-partition": "An execute array that azslurm skips: its partition does not appear.",
    "shared-partition": "Two static node arrays name the same partition; azslurm disables both.",
    "default-partition": "Exactly one partition is the default one.",
    "scale-set-size": "An array in one placement group cannot grow beyond Azure.MaxScalesetSize.",
    "unknown-project": "A cluster-init reference that neither the folder nor CycleCloud can satisfy; nodes fail.",
    "missing-version": "A reference to an own project without a version.",
    "mixed-versions": "References to one built-in project name different versions, or only some name one.",
}


@dataclass(frozen=True)
class Finding:
    """One problem; `line` counts from 1 in the template, 0 where the parameter file is at fault."""

    kind: str
    line: int
    message: str
    hint: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of finding")

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{self.message} [{self.kind}]" + (f"; {self.hint}" if self.hint else "")
