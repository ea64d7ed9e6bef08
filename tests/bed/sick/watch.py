"""The scheduler's watch (guard-watch.sh) in a folder of its own, as 10-hooks.sh installs it."""

from __future__ import annotations

from pathlib import Path

from generator.files import assets

FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
LIBRARY = assets.folder("projects") / "_lib/cycleforge.sh"
PROGRAM = "opt/cycleforge/slurm_nhc/guard-watch.sh"
PARTS = ("guard-watch.sh", "guard-slurm.sh", "guard-record.sh", "guard-rule.sh", "guard.tsv")


def install_watch(root: Path, results: str) -> None:
    """Programs and settings below this root; `results` is the folder of results, as the definition names it."""
    target = (root / PROGRAM).parent
    for folder in (target, root / "etc/cycleforge"):
        folder.mkdir(parents=True)
    for name in PARTS:
        (target / name).write_bytes((FILES / name).read_bytes())
    (target / "cycleforge.sh").write_bytes(LIBRARY.read_bytes())
    (root / "etc/cycleforge/guard.conf").write_text(f"results={results}\n")
