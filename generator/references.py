"""Writes what is derived from model, rules and catalogue: `python -m generator.references`, or `make accept`.

The files are committed, so that editors and readers have them without running anything; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from .files import assets


def documents() -> Mapping[str, Callable[[], str]]:
    """Path in the checkout → the text that belongs there."""
    from .azure.checks import all_checks
    from .blobs.pins import pinned, table
    from .definition.pages.parameters import PAGE
    from .definition.pages.parameters import page as cluster_page
    from .definition.pages.reference import page, reference
    from .definition.pages.schema import schema_text
    from .plan.amd_checks import messages_table
    from .plan.common_checks import common_table, guard_table
    from .plan.health_floors import PAGE as FLOORS
    from .plan.health_floors import page as floors_page
    from .plan.xid_table import xid_table
    from .recipes.versions_page import PAGE as VERSIONS
    from .recipes.versions_page import page as versions_page
    from .rules.page import render

    return {
        "cluster_defs/reference.yaml": reference,
        "cluster_defs/definition.schema.json": schema_text,
        PAGE: cluster_page,
        "docs/definition.md": page,
        FLOORS: floors_page,
        "docs/rules.md": lambda: render(all_checks()),
        VERSIONS: versions_page,
        "projects/slurm_nhc/specs/default/cluster-init/files/common_checks.tsv": common_table,
        "projects/slurm_nhc/specs/default/cluster-init/files/xids.tsv": xid_table,
        "projects/slurm_nhc/specs/default/cluster-init/files/guard.tsv": guard_table,
        "projects/slurm_nhc/specs/default/cluster-init/files/amd-messages.tsv": messages_table,
        **{
            f"projects/{project}/specs/default/cluster-init/files/blobs.tsv": partial(table, project)
            for project in {blob.project: None for blob in pinned().values() if blob.is_for_nodes}
        },
    }


def main() -> None:
    """Write them all."""
    for name, text in documents().items():
        path: Path = assets.root() / name
        path.write_text(text(), encoding="utf-8")
        print(path.relative_to(assets.root()))


if __name__ == "__main__":
    main()
