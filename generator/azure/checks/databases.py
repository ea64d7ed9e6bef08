"""The accounting database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...plan.types import Plan
from ..check import Check, Finding
from ..findings import mysql
from ..reader import Reader
from ..refusals import NotAsked
from ..requests.services import MYSQL_OFFERS


class _OfDatabase(Check):
    path = ("slurm", "accounting")
    question = "whether the region offers the database's size and version"

    def needed(self, plan: Plan) -> bool:
        """Whether one is created."""
        return mysql.database(plan) is not None

    @staticmethod
    def answer(plan: Plan, reader: Reader) -> Mapping[str, Any]:
        """What the region offers to this subscription."""
        found = reader.get(MYSQL_OFFERS(region=plan.location))
        if not isinstance(found.get("properties"), dict):
            raise NotAsked("the answer about MySQL in the region says nothing")
        return found


class DatabaseClosed(_OfDatabase):
    id = "E4707"
    summary = "The region offers this subscription no MySQL flexible server."
    why = "The accounting database is refused. Regions are closed to some subscriptions for want of capacity."
    fix = "Open a support request for the region, or use an existing database."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/how-to-request-quota-increase"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """It has no edition."""
        yield from (self.finding(*found) for found in mysql.closed(plan, self.answer(plan, reader)))


class DatabaseNotOffered(_OfDatabase):
    id = "E4708"
    summary = "The region does not offer the size or the version of the accounting database."
    why = "The database server is refused."
    fix = "Choose a size or a version that the message names."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-service-tiers-storage"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Size and version."""
        answer = self.answer(plan, reader)
        yield from (self.finding(*found) for found in mysql.not_offered(plan, answer))
        if not mysql.says_versions(answer):
            yield self.not_known("Azure names no versions")
