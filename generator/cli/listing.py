"""`cycleforge list`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead
from ..operate.definitions import read_at_most
from ..words.counts import counted
from ..words.suggestions import suggestion
from ..words.terminal import columns
from . import common

if TYPE_CHECKING:
    from ..definition.skus import Sku
    from ..recipes import Recipe

DESCRIPTION = """\
List the catalogue, the recipes of jobs, or the rules. FILTER keeps the rows that contain it; case does not matter.

For a VM size that is not in the catalogue, save Azure's description of it, and paste the block that --from prints into
the definition:

    az vm list-skus -l REGION --size SIZE --all -o json > skus.json
    cycleforge list vm-sizes --from skus.json
"""
Rows = list[dict[str, object]]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(_LISTS), help="what to list")
    parser.add_argument("filter", metavar="FILTER", nargs="?", default="", help="for example A100, or ND96")
    parser.add_argument(
        "--from",
        dest="skus",
        nargs="+",
        metavar=("FILE", "SIZE"),
        help="vm-sizes: print the block `custom_vm_sizes` for all sizes in FILE, the JSON of `az vm list-skus` (- for "
        "standard input), or for those whose name contains a SIZE",
    )
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    if args.skus is not None:
        return _blocks(args)
    wanted = args.filter.casefold()
    rows = [row for row in _LISTS[args.what]() if wanted in " ".join(str(value) for value in row.values()).casefold()]
    if args.json:
        common.emit_json(rows)
    elif rows:
        head = [name.replace("_", " ") for name in rows[0]]
        common.emit(columns([head, *([_cell(value) for value in row.values()] for row in rows)]))
    else:
        common.emit(f"no {args.what.replace('-', ' ')} contain '{args.filter}'")
    return OK


def _blocks(args: Namespace) -> int:
    from ..definition.pages.custom_sizes import block_data, blocks_text
    from ..definition.skus import MAX_BYTES, read_skus

    if args.what != "vm-sizes":
        raise CannotRead(f"--from belongs to `list vm-sizes`, not to `list {args.what}`")
    word, *sizes = args.skus
    wanted = [*sizes, args.filter] if args.filter else sizes
    name = "<stdin>" if word == "-" else word
    content = read_at_most(word, MAX_BYTES)
    if len(content) > MAX_BYTES:
        raise CannotRead(f"{name} is too large for what az vm list-skus prints", "name one region and one size")
    skus = read_skus(content, name)
    for each in wanted:
        if not any(each.casefold() in sku.name.casefold() for sku in skus):
            hint = suggestion(each, [sku.name for sku in skus])
            raise CannotRead(f"{name} has no VM size that contains '{each}'", hint or _some(skus))
    chosen = [sku for sku in skus if not wanted or any(each.casefold() in sku.name.casefold() for each in wanted)]
    if args.json:
        common.emit_json([block_data(sku) for sku in chosen])
    else:
        common.emit(blocks_text(chosen))
    return OK


def _some(skus: Sequence[Sku]) -> str:
    more = f" and {len(skus) - 8} more" if len(skus) > 8 else ""
    return f"it has {', '.join(sku.name for sku in skus[:8])}{more}"


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else value


def _vm_sizes() -> Rows:
    from .. import catalog

    return [
        {
            "name": size.name,
            "vcpus": size.vcpus,
            "memory_gib": size.memory_gib,
            "arch": size.arch,
            "gpus": size.gpu_count,
            "gpu": size.gpu_model,
            "infiniband_nics": size.infiniband_nics,
            "quota_family": size.quota_family,
        }
        for size in map(catalog.vm_size, catalog.vm_size_names())
    ]


def _releases() -> Rows:
    from .. import catalog

    return [
        {
            "cyclecloud": row.cyclecloud,
            "date": row.release_date,
            "slurm": row.slurm,
            "slurm_project": row.slurm_project,
            "server_image": row.image_version,
            "status": row.status.replace("_", " "),
        }
        for row in catalog.releases()
    ]


def _images() -> Rows:
    from .. import catalog

    newest = catalog.release(catalog.default_versions().cyclecloud)
    with_containers = {row.os for row in newest.os if row.enroot_pyxis} if newest else set()
    return [
        {
            "name": name,
            "title": row.title,
            "os": row.os,
            "arch": row.arch,
            "containers": row.os in with_containers,
        }
        for name, row in catalog.images().node_images.items()
    ]


def _recipes() -> Rows:
    from .. import recipes

    found = (recipes.recipe(name) for name in recipes.recipe_names())
    return [
        {"name": each.name, "kind": each.kind, "title": each.title, "needs": _needs(each), "models": list(each.models)}
        for each in found
        if each is not None
    ]


def _needs(wanted: Recipe) -> list[str]:
    """Return what a partition must have for the recipe; the lowest number of nodes comes first."""
    needs = [counted(wanted.min_nodes, "node")]
    if wanted.needs_gpu:
        needs.append(f"{' or '.join(wanted.gpu_vendors)} GPUs".strip())
    if wanted.needs_infiniband:
        needs.append("InfiniBand")
    if wanted.needs_no_gpu:
        needs.append("no GPU")
    needs.append(" or ".join(wanted.architectures))
    if wanted.containers:
        needs.append("containers")
    return needs


def _sources() -> Rows:
    from .. import catalog

    return [
        {"source": key, "commit": row.commit, "date": row.date, "title": row.title, "url": row.url}
        for key, row in catalog.sources().items()
    ]


def _rules() -> Rows:
    from ..azure.checks import all_checks
    from ..rules import all_rules

    return [
        {"id": rule.id, "level": rule.level, "subject": rule.subject, "summary": rule.summary}
        for rule in (*all_rules(), *all_checks())
    ]


_LISTS: dict[str, Callable[[], Rows]] = {
    "vm-sizes": _vm_sizes,
    "releases": _releases,
    "images": _images,
    "recipes": _recipes,
    "rules": _rules,
    "sources": _sources,
}
