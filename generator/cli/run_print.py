"""The lines that do what `cycleforge run` does, as a person types them."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cyclecloud.jobs.prepared import Prepared

_SPECIAL = re.compile(r'([\\"$`])')


def lines(config: Path, prepared: Prepared, begin_at: str | None, args: Namespace) -> list[str]:
    """`scp`, then `ssh` with each `sbatch`, and `scp` back."""
    ssh = shlex.join(["ssh", "-F", str(config), "scheduler"])
    scp = shlex.join(["scp", "-r", "-F", str(config)])
    folder = f"jobs/{prepared.name}-{prepared.key}-1"
    first = prepared.step_names.index(begin_at) if begin_at else 0
    found = [f"{ssh} mkdir -p jobs", f"{scp} {shlex.quote(str(prepared.folder))} scheduler:{folder}"]
    for name, value in sorted(prepared.settings.items()):
        setting = shlex.quote(f"{name}={shlex.quote(value)}")
        found.append(f"{ssh} {_word(f'echo {setting} >>{folder}/settings.env')}")
    before = ""
    for number, (file, *options) in enumerate(prepared.steps[first:], first + 1):
        is_last = number == len(prepared.steps)
        waits = ["--wait"] if is_last and (args.wait or args.fetch) else []
        environment = "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(prepared.environment.items()))
        sbatch = f"{environment}{shlex.join(['sbatch', '--parsable', *waits, *options])}"
        line = f"{ssh} {_word(f'cd {folder} && {sbatch}{before} {shlex.quote(file)}')}"
        found.append(line if is_last else f"step{number}=$({line})")
        before = f" --dependency=afterok:@step{number}@"
    if args.fetch is not None:
        found.append(f"{scp} scheduler:{folder} {shlex.quote(str(args.fetch))}")
    return found


def _word(text: str) -> str:
    """One word of the local shell, which puts the number of an earlier step into it."""
    return '"' + re.sub(r"@(step[0-9]+)@", r"${\1}", _SPECIAL.sub(r"\\\1", text)) + '"'
