"""Metrics into an Azure Monitor workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..problems.problem import Problem
from .azure_names import ID_FORM, resource_id_fault
from .base import DefinitionRule, Site, quoted
from .releases import os_row
from .roles import image_users
from .vm_images import image_facts

_REMOTE_WRITE = "https://learn.microsoft.com/azure/azure-monitor/metrics/prometheus-remote-write"


class MonitoringId(DefinitionRule):
    id = "E1401"
    summary = "An id of the monitoring section is malformed or names another kind of resource."
    why = "The deployment gives the nodes' identity a role on the data collection rule; a wrong id stops it."
    fix = "Copy the ids from the workspace's overview in the portal (JSON view)."
    source = _REMOTE_WRITE

    def check(self, site: Site) -> Iterator[Problem]:
        monitoring = site.definition.monitoring
        if monitoring is None:
            return
        for key, provider, kind in (
            ("workspace_id", "Microsoft.Monitor", "accounts"),
            ("data_collection_rule_id", "Microsoft.Insights", "dataCollectionRules"),
        ):
            value = getattr(monitoring, key)
            fault = resource_id_fault(value, provider, kind)
            if fault:
                yield self.problem(("monitoring", key), f"{key} {quoted(value)} {fault}", ID_FORM)


_PATH = re.compile(
    r"/dataCollectionRules/dcr-[0-9a-fA-F]{32}/streams/Microsoft-PrometheusMetrics/api/v1/write\?api-version=\d{4}-\d{2}-\d{2}(?:-preview)?"
)


class IngestionEndpoint(DefinitionRule):
    id = "E1402"
    summary = "The ingestion endpoint is not the remote-write address of a workspace."
    why = (
        "Prometheus on the nodes sends to it unchanged; with another address every metric is lost without a message on "
        "the cluster."
    )
    fix = "Copy `Metrics ingestion endpoint` from the workspace's overview in the portal."
    source = _REMOTE_WRITE

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.monitoring is None:
            return
        value, path = site.definition.monitoring.ingestion_endpoint, ("monitoring", "ingestion_endpoint")
        host, slash, rest = value.removeprefix("https://").partition("/")
        hint = "copy `Metrics ingestion endpoint` from the workspace's overview in the portal"
        if not value.startswith("https://"):
            yield self.problem(path, f"the ingestion endpoint {quoted(value)} does not begin with https://", hint)
        elif not any(host.endswith(f".{end}") for end in catalog.rule_figures().monitoring_hosts.values.values()):
            yield self.problem(
                path, f"the host {quoted(host)} of the ingestion endpoint is not one of Azure Monitor", hint
            )
        elif len(rest) > 400 or not _PATH.fullmatch(slash + rest):
            yield self.problem(path, f"the ingestion endpoint {quoted(value)} is not a remote-write address", hint)


class MonitoringOfOtherCloud(DefinitionRule):
    id = "E1403"
    summary = "The monitoring workspace belongs to another Azure cloud."
    why = "The nodes' identity cannot get a token for another cloud."
    fix = "Use a workspace of the deployment's cloud."
    source = _REMOTE_WRITE

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.monitoring is None:
            return
        host = site.definition.monitoring.ingestion_endpoint.removeprefix("https://").partition("/")[0]
        ends, cloud = catalog.rule_figures().monitoring_hosts.values, site.definition.azure.cloud
        other = next((name for name, end in ends.items() if host.endswith(f".{end}") and name != cloud), None)
        if other:
            text = f"the ingestion endpoint belongs to the cloud '{other}', azure.cloud is '{cloud}'"
            yield self.problem(("monitoring", "ingestion_endpoint"), text)


class NotMonitored(DefinitionRule):
    id = "W1404"
    summary = "Nodes of a role send no metrics."
    why = "cyclecloud-slurm has no monitoring for the operating system of their image."
    fix = "Choose another image, or silence this rule."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.monitoring is None:
            return
        for node in image_users(site):
            facts = image_facts(node.image)
            row = os_row(site, facts.os) if facts else None
            if facts is not None and row is not None and not row.monitoring:
                yield self.problem(
                    node.image_path, f"{node.label}: no metrics, because there is no monitoring for {facts.os}"
                )
