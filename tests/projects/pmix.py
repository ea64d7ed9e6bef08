"""Nodes with and without PMIx: Slurm's plugin, and the repository that has the package."""

from __future__ import annotations

from pathlib import Path

from tests.bed.scripts.node import Node

SLURM_LIB = "usr/lib/x86_64-linux-gnu/slurm"
MICROSOFT = "\0/opt/pmix/4.2.9/lib\0libpmix.so\0../../src/plugins/mpi/pmix/x.c\0"
BARE = "\0/pmix.\0libpmix.so\0stepd.slurm.pmix.\0"
DISTRIBUTION = "\0/usr/lib/x86_64-linux-gnu/pmix2/lib\0libpmix.so.2\0"


def plugin(node: Node, text: str = MICROSOFT, folder: str = SLURM_LIB) -> None:
    node.write(f"{folder}/mpi_pmix_v4.so", f"\x7fELF{text}")
    node.fake("ldconfig", 'if [[ "$1" == -p ]]; then cat "$FAKE_STATE/ld" 2>/dev/null; fi; exit 0')


def repository(node: Node, tool: str, *packages: str, brings: str = "opt/pmix/4.2.9/lib/libpmix.so") -> None:
    """A package manager that has these packages; each brings one file."""
    node.fake(
        tool,
        f"""for name; do :; done
case "$*" in *update*|*makecache*) exit 0 ;; esac
[[ " {" ".join(packages)} " == *" $name "* ]] || exit 100
mkdir -p "$CYCLEFORGE_ROOT/{Path(brings).parent}"; touch "$CYCLEFORGE_ROOT/{brings}" """,
    )
