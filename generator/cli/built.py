"""The deployment that the command line names, its problems shown."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from ..operate import built as building
from ..operate.built import Built
from . import common


def built(args: Namespace) -> Built:
    """The built folder of the definition that `args.name` names, which is what the definition says now."""
    return building.built(common.target_of(args), partial(common.tell, args=args))


def looked_for(args: Namespace, *, quietly: bool = False) -> Built:
    """The same, whether or not anything is built; quietly, only problems that leave no plan are shown."""
    return building.looked_for(common.target_of(args), partial(common.tell, args=args, quietly=quietly))
