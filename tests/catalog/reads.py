"""What of the catalogue's data anything looks at: `python -m tests.catalog.reads [PATH…]`, as JSON.

A process of its own, because the package remembers what it has read. It checks and renders every shipped definition,
runs every case of the rules, and writes every listing and every generated page. The data files are read into mappings
that note which of their values are taken out, and the catalogue's classes note which of their fields are asked for.

With PATHs (`limits.json/names/subnet/value`) these leaves have another value; the digests tell whether that shows. The
digests of a run without PATHs, as a JSON list on standard input, let it end with the first result that is another one.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from generator import catalog
from generator.blobs.pins import Blob
from generator.catalog import files
from generator.recipes.models import Model

PROBES = {
    "netapp.yaml": b"""
name: netapp
location: southcentralus
storage:
  mounts:
    - {path: /data, type: anf, size_tib: 20, service_level: Premium}
slurm:
  partitions:
    - {name: gpu, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 16}
jobs:
  training: [opt-175b]
""",
    "mig.yaml": b"""
name: mig
location: southcentralus
slurm:
  healthagent: false
  partitions:
    - {name: slices, vm_size: Standard_NC24ads_A100_v4, max_nodes: 2, mig_profile: 1g.10gb}
    - {name: pairs, vm_size: Standard_NC80adis_H100_v5, max_nodes: 2, default: true}
""",
    "amd.yaml": b"""
name: amd
location: southcentralus
slurm:
  partitions:
    - {name: gpu, vm_size: Standard_ND96isr_MI300X_v5, max_nodes: 2, default: true}
    - {name: cpu, vm_size: Standard_HB176rs_v4, max_nodes: 2}
""",
    "usgov.yaml": b"""
name: usgov
location: usgovvirginia
azure: {cloud: usgov}
storage:
  mounts:
    - {path: /blob, type: blob, storage_account: account, container: data}
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}
""",
}
"""What no shipped definition has: NetApp Files for training, MIG slices, GPUs without a wire at each link, AMD GPUs,
InfiniBand alone, another cloud."""
CLASSES = (
    catalog.VmSize,
    catalog.NcclFigure,
    catalog.NcclTypical,
    catalog.Release,
    catalog.SlurmProject,
    catalog.OperatingSystem,
    catalog.ResourceType,
    Blob,
    Model,
)
SEEN: set[str] = set()
FIELDS: set[str] = set()
CHANGED: set[str] = set()


def is_leaf(value: object) -> bool:
    """A scalar, an empty container, or a list of scalars, which is one figure."""
    if isinstance(value, dict):
        return dict.__len__(value) == 0
    return not (isinstance(value, list) and any(isinstance(item, dict | list) for item in value))


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every leaf with its path, `file/key/key`; items of lists by their number."""
    if is_leaf(value):
        yield path, value
    else:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{path}/{key}")


def another(value: Any) -> Any:
    """A value of the same kind that is not the given one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return value[:-1]
    return f"{value or ''}-changed"


class SeenDict(dict[str, Any]):
    """A mapping that notes which of its leaves are taken out."""

    path = ""

    def __getitem__(self, key: str) -> Any:
        value, path = super().__getitem__(key), f"{self.path}/{key}"
        if not is_leaf(value):
            return value
        SEEN.add(path)
        return another(value) if path in CHANGED else value

    def get(self, key: str, default: Any = None) -> Any:
        """As a dictionary's."""
        return self[key] if dict.__contains__(self, key) else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())  # an own method, so that `**row` asks for each key

    def keys(self) -> Any:
        """As a dictionary's."""
        return dict.fromkeys(dict.keys(self))

    def values(self) -> Any:
        """As a dictionary's."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """As a dictionary's."""
        return [(key, self[key]) for key in self]

    def __or__(self, other: Any) -> Any:
        return {**self, **other}


def recording(value: Any, path: str) -> Any:
    """The same content, noting what is read of it."""
    if isinstance(value, list):
        return [recording(item, f"{path}/{number}") for number, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    seen = SeenDict({key: recording(item, f"{path}/{key}") for key, item in value.items()})
    seen.path = path
    return seen


def record_fields(of: type) -> None:
    """Objects of the class note which fields are asked for, but not by what a dataclass itself generates."""

    def asked(self: object, name: str) -> Any:
        if sys._getframe(1).f_code.co_filename not in ("<string>", __file__):
            FIELDS.add(f"{of.__name__}.{name}")
        return object.__getattribute__(self, name)

    of.__getattribute__ = asked  # type: ignore[method-assign, assignment]


def results() -> Iterator[str]:
    """Artefacts and messages of definitions and cases, listings, generated pages, fleet statistics."""
    from generator import pipeline, recipes, references
    from generator.azure.actions import assigned_roles, needs
    from generator.azure.checks.deployment import oldest_bicep
    from generator.azure.clouds import cloud_of
    from generator.cli import listing
    from generator.health import fleet
    from generator.plan.billed import billed
    from generator.recipes import models
    from generator.rules import check_files
    from generator.rules.base import Rendered
    from tests.rules.annotations import CASES, problems_of, site_of

    root = Path(files.FOLDER).parent.parent
    definitions = {path.name: path.read_bytes() for path in sorted((root / "cluster_defs").glob("*.yaml"))}
    for name, text in {**PROBES, **definitions}.items():
        checked = pipeline.check(text, name, {}, root / "cluster_defs")
        yield repr(checked.problems)
        if checked.plan is not None:
            yield repr((billed(checked.plan), needs(checked.plan, {}), assigned_roles(checked.plan)))
            rendered = pipeline.render(checked.plan, root / "cluster_defs")
            yield repr(sorted((str(path), file.content) for path, file in rendered.items()))
            site = site_of(checked.source, {})
            assert site is not None
            yield repr(list(check_files(Rendered(site, rendered))))
    for case in sorted(CASES.glob("*.yaml")):
        yield repr(problems_of(case.read_text(encoding="utf-8"))[1])
    for rows in listing._LISTS.values():
        yield repr(list(rows()))
    for page in references.documents().values():
        yield page()
    for recipe in recipes.recipe_names():
        found = recipes.recipe(recipe)
        yield repr([models.model(preset) for preset in (found.models if found else ())])
    yield repr(fleet.limits())
    yield from meters()
    yield from azure_says()
    yield oldest_bicep()
    yield repr([cloud_of(name, {}) for name in ("public", "usgov", "china", "germany")])


def meters() -> Iterator[str]:
    """What is asked of the price list for each meter, and which items of it are the meter's."""
    from generator.prices import costs, price

    yield repr((costs.currencies(), costs.hours_per_month()))
    words = {"size": "Standard_D4as_v5", "tier": "40", "level": "Premium"}
    for name, meter in catalog.meters()["meters"].items():
        asked = price.query(name, tuple(words.items()), "southcentralus", "USD")
        fields = {
            each["field"]: text.format(**words)
            for each in meter.get("keep", ())
            for kind, text in each.items()
            if kind != "field"
        }
        item = {"type": "Consumption", "retailPrice": 1.0, "unitOfMeasure": "1/Month"} | fields
        item |= {"productName": item.get("productName", ""), "meterName": item.get("meterName", "")}
        yield repr((asked.address, [price.price_of([each], 1) for each in price.own_items(asked, [item])]))


def azure_says() -> Iterator[str]:
    """Azure's error codes in plain words, what it shows although it does not happen, and what holds data."""
    from generator.azure import failures, progress_text, what_if
    from generator.azure.deletion import text
    from generator.azure.deletion.seen import Thing
    from generator.azure.refusals import Cause
    from generator.azure.requests import declared
    from generator.cyclecloud import reasons

    for row in catalog.azure_failures():
        causes = [Cause(code, "message") for code in row["codes"]]
        yield repr(failures.explained(causes, name="lab", group="lab-rg"))
    for kind in catalog.resource_types():
        thing = Thing("", kind, "x")
        yield repr((progress_text.usual(kind), catalog.holds_data(kind), thing.is_machine, text.kept([thing])))
    yield repr(list(declared()))
    yield repr(reasons.explained("something that no row has", "lab"))
    for row in catalog.cyclecloud_failures():
        yield repr(reasons.explained(row["pattern"].split("|")[0].replace(".*", "x"), "lab"))
    for row in catalog.what_if()["noise"]["rows"]:
        provider, *kinds = row["type"].split("/")
        place = "/".join(["/subscriptions/s/providers", provider, *(f"{kind}/x" for kind in kinds)])
        delta = [
            {"path": path, "propertyChangeType": kind, "children": []} for path in row["paths"] for kind in row["kinds"]
        ]
        yield repr(what_if.read({"changes": [{"resourceId": place, "changeType": "Modify", "delta": delta}]}))


def digests_of(texts: Iterable[str], usual: Sequence[str]) -> list[str]:
    """The digest of each text, as far as they are the usual ones; of every text if none are given."""
    found: list[str] = []
    for text in texts:
        found.append(hashlib.sha256(text.encode()).hexdigest())
        if usual and found != list(usual[: len(found)]):
            break
    return found


def main(changed: Sequence[str], usual: Sequence[str]) -> None:
    """Print leaves and fields that were read, and the digest of each result."""
    CHANGED.update(changed)
    read = files.read
    files.read = lambda name: recording(read(name), name)
    for each in CLASSES:
        record_fields(each)
    digests = digests_of(results(), usual)
    json.dump({"leaves": sorted(SEEN), "fields": sorted(FIELDS), "digests": digests}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:], json.load(sys.stdin))
