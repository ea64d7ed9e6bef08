"""VM sizes that the definition describes itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.sizes import CustomVmSize
from ..plan.custom_sizes import described
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site, given, quoted
from .roles import machines

_SKUS = "https://learn.microsoft.com/rest/api/compute/resource-skus/list"
_NAMES = "https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions"
_NAME = re.compile(r"(Standard|Basic)_[A-Za-z0-9]+([_-][A-Za-z0-9]+)*", re.ASCII)
_TEXT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9])?", re.ASCII)
_LONGEST = 60
_FIGURES = (
    ("vcpus", "vCPUs"),
    ("memory_gib", "GiB of memory"),
    ("arch", "as architecture"),
    ("gpu_count", "GPUs"),
    ("gpu_vendor", "as vendor of its GPUs"),
    ("infiniband_nics", "InfiniBand ports"),
    ("infiniband_gbps_per_nic", "Gb/s per InfiniBand port"),
)
"""What both must agree on; a model is written in more ways than one, and the rest is often not published."""


def _blocks(site: Site) -> Iterator[tuple[Path, CustomVmSize]]:
    for index, block in enumerate(site.definition.custom_vm_sizes):
        yield ("custom_vm_sizes", index), block


class KnownSize(DefinitionRule):
    id = "W0417"
    summary = "A custom VM size is in the catalogue with the same figures."
    why = "The catalogue's figures are used: they include health floors, NCCL figures and launch masks."
    fix = "Remove the block."
    source = _SKUS

    def check(self, site: Site) -> Iterator[Problem]:
        for path, block in _blocks(site):
            size = catalog.vm_size(block.name)
            if size.known and not _differences(described(block), size):
                text = f"the catalogue has the VM size {quoted(block.name)} with the same figures, and more of them"
                yield self.problem((*path, "name"), text, "remove this block")


class OtherFigures(DefinitionRule):
    id = "E0418"
    summary = "A custom VM size is in the catalogue with other figures."
    why = "One of the two is wrong; the catalogue's figures would be used, and the block would be ignored."
    fix = (
        "Compare both with `az vm list-skus`. If the catalogue is right, remove the block; if it is wrong, correct it "
        "there (CONTRIBUTING.md says how), or silence this rule to build with it for now."
    )
    source = _SKUS

    def check(self, site: Site) -> Iterator[Problem]:
        for path, block in _blocks(site):
            size = catalog.vm_size(block.name)
            found = _differences(described(block), size) if size.known else []
            if found:
                text = f"the catalogue has other figures of the VM size {quoted(block.name)}: {', '.join(found)}"
                yield self.problem((*path, "name"), text, f"cycleforge list vm-sizes {block.name}")


def _differences(block: VmSize, size: VmSize) -> list[str]:
    """What the catalogue says otherwise; a figure that it does not have contradicts nothing."""
    found = []
    for field, words in _FIGURES:
        mine, theirs = getattr(block, field), getattr(size, field)
        if theirs is not None and not _agree(mine, theirs):
            found.append(f"{_figure(theirs)} {words} (here {_figure(mine)})")
    return found


def _agree(mine: object, theirs: object) -> bool:
    """Memory is documented, sold and seen in the guest with up to 7 % between them."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return abs(mine - theirs) <= 0.1 * theirs
    return mine == theirs


def _figure(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


class DescribedTwice(DefinitionRule):
    id = "E0419"
    summary = "A custom VM size is described twice."
    why = "Only one of the two can be right."
    fix = "Remove one of the blocks."
    source = _SKUS

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[str, Path] = {}
        for path, block in _blocks(site):
            first = seen.setdefault(block.name.casefold(), path)
            if first != path:
                text = f"the VM size {quoted(block.name)} is described twice"
                yield self.second((*path, "name"), text, (*first, "name"))


class NotUsed(DefinitionRule):
    id = "W0420"
    summary = "A custom VM size is not used."
    why = "A block under a misspelt name describes nothing."
    fix = "Write the name as the machine's vm_size has it, or remove the block."
    source = _SKUS

    def check(self, site: Site) -> Iterator[Problem]:
        used = {machine.vm_size for machine in machines(site)}
        by_case = {name.casefold(): name for name in used}
        for path, block in _blocks(site):
            if block.name not in used:
                near = by_case.get(block.name.casefold())
                hint = f"did you mean '{near}'?" if near else None
                yield self.problem((*path, "name"), f"no machine has the VM size {quoted(block.name)}", hint)


class UnusableText(DefinitionRule):
    id = "E0421"
    summary = "A text of a custom VM size is not usable."
    why = "It becomes part of the cluster template, of node attributes and of a command of the README."
    fix = "Write the name and the quota family as `az vm list-skus` prints them, the model in letters and digits."
    source = _NAMES

    def check(self, site: Site) -> Iterator[Problem]:
        for path, block in _blocks(site):
            if not _NAME.fullmatch(block.name) or len(block.name) > _LONGEST:
                text = f"{quoted(block.name)} is not a valid name of a VM size"
                yield self.problem((*path, "name"), text, "for example Standard_ND96isr_H200_v5")
            texts: list[tuple[Path, str, str | None]] = [(("quota_family",), "quota family", block.quota_family)]
            if block.gpus is not None:
                texts.append((("gpus", "model"), "GPU model", block.gpus.model))
            for below, label, value in texts:
                if value is not None and (not _TEXT.fullmatch(value) or len(value) > _LONGEST):
                    text = (
                        f"the {label} {quoted(value)} of {quoted(block.name)} must be 1 to {_LONGEST} letters, "
                        "digits, spaces, ., _ and -, with a letter or digit at both ends"
                    )
                    yield self.problem((*path, *below), text)


class NameSaysMore(DefinitionRule):
    id = "W0422"
    summary = "The name of a custom VM size says that it has more than the block describes."
    why = (
        "Sizes of the families NC, ND, NG and NV have GPUs, and an r before the version stands for InfiniBand; without "
        "them in the block, nodes get neither GPU checks nor a placement group."
    )
    fix = "Describe gpus and infiniband, or silence this rule if the size has neither."
    source = _NAMES

    def check(self, site: Site) -> Iterator[Problem]:
        for path, block in _blocks(site):
            for key in _missing(block) if given(site, (*path, "name")) else ():
                text = f"the block of {quoted(block.name)} has no {key}, which its name stands for"
                yield self.problem((*path, key), text)


def _missing(block: CustomVmSize) -> Iterator[str]:
    """Keys that the name stands for and the block lacks: Standard_ND96isr_H100_v5 has GPUs and an r."""
    found = re.match(r"Standard_(?P<family>[A-Z]+)[0-9]+(-[0-9]+)?(?P<features>[a-z]*)", block.name)
    if found and found["family"][:2] in ("NC", "ND", "NG", "NV") and block.gpus is None:
        yield "gpus"
    if found and "r" in found["features"] and block.infiniband is None:
        yield "infiniband"
