"""`cycleforge completion`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK
from . import common

SHELLS = ("bash", "zsh", "tcsh")
DESCRIPTION = """\
Print a completion script.

  bash   cycleforge completion bash > ~/.local/share/bash-completion/completions/cycleforge
  zsh    cycleforge completion zsh > "${fpath[1]}/_cycleforge"
  tcsh   cycleforge completion tcsh > ~/.cycleforge.csh; source it in ~/.tcshrc
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(args: Namespace) -> int:
    import shtab

    from .parser import full_parser

    common.emit(shtab.complete(full_parser(), shell=args.shell))
    return OK
