"""What verbs that ask Azure share: flags, signing in, and what to say when Azure does not answer."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import AzureRefused
from . import azure, common

if TYPE_CHECKING:
    from ..plan.types import Plan


def add_arguments(parser: ArgumentParser) -> None:
    """The flags that all of them have."""
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    common.add_all(parser)
    azure.add_subscription(parser)
    parser.add_argument(
        "--print", action="store_true", dest="lines", help="print the az lines that do the same; ask nothing"
    )


@contextmanager
def refusals(plan: Plan, otherwise: str = "nothing was changed; try again when Azure can be reached") -> Iterator[None]:
    """What Azure refuses, and that it could not be asked, as an error of the command; `otherwise` is the usual hint."""
    from ..azure import failures
    from ..azure.refusals import NotAsked, Refused

    try:
        yield
    except NotAsked as error:
        raise AzureRefused(error.reason, error.hint or otherwise) from None
    except Refused as refused:
        found = failures.explained(refused.causes, name=plan.definition_name, group=plan.resource_group)
        text = failures.text(found).rstrip() or f"{refused.code}: {refused.message}"
        raise AzureRefused(f"Azure refused\n{text}") from None
