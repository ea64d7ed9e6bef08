"""From the checked definition to the plan: every name, number and choice is decided here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from ..definition.model.definition import Definition
from ..definition.model.fields import plain_values, values_of
from ..projects.local import AvailableProject
from . import names
from .access import Ends, kind_of
from .cleanup import cleanup_plan
from .cluster import SlurmPlan, slurm_plan
from .created_types import created_types
from .deployment import Plan, SecurityPlan
from .egress import egress_plan
from .file_systems.registry import late_addresses, modules, node_settings, requirements
from .fleet import fleet
from .flows import with_flows
from .generations import with_generations
from .image_terms import image_terms, unknown_images
from .jobs import job_plans
from .ledger import ledgers
from .network import NetworkPlan, layout_of, network_plan
from .parameters import asked_values, secret_plans, variables_read
from .projects import carried_projects
from .quota import quota_plan
from .resources import MonitoringPlan, providers, resource_names, slow_resources
from .server import (
    ExistingServerPlan,
    ServerPlan,
    admin_plan,
    existing_server_plan,
    server_plan,
)
from .storage import file_systems, locker_plan, requested


def make_plan(
    definition: Definition,
    definition_file: str,
    variables: Sequence[tuple[str, str | None]],
    projects: Mapping[str, AvailableProject],
    certificate: str | None = None,
) -> Plan:
    """The plan of a definition without errors.

    `variables` are the environment variables that the file names, with their defaults; `projects` are the shipped and
    local projects by name; `certificate` is that of the accounting database's authority, in PEM.
    """
    versions = {name: project.version for name, project in projects.items()} | _staged_versions(definition)
    shared = file_systems(definition) if definition.slurm else None
    all_mounts = shared.all if shared else requested(definition)
    slurm = (
        slurm_plan(definition, definition.slurm, versions, shared, certificate) if definition.slurm and shared else None
    )
    accounting = slurm.accounting if slurm else None
    server, existing_server = server_plan(definition), existing_server_plan(definition)
    admin = admin_plan(definition)
    # A new server sets the password of any database in the cluster; without one only the deployment needs it.
    needs_database_password = accounting is not None and (server is not None or accounting.is_new)
    secrets = secret_plans(
        admin.username,
        has_server=server is not None,
        has_jumpbox=definition.server.jumpbox is not None,
        has_accounting=needs_database_password,
        database_user=accounting.user if accounting else "",
        has_new_database=accounting is not None and accounting.is_new,
    )
    monitoring = _monitoring(definition)
    network = with_flows(
        network_plan(definition, layout_of(definition)),
        kind_of(definition),
        server or existing_server,
        all_mounts,
        accounting,
        monitoring,
        public_nodes=slurm is not None and slurm.public_addresses != "none",
    )
    security = SecurityPlan(**values_of(definition.security))
    if slurm is not None and shared is not None:
        slurm = with_generations(slurm, shared.mounts, security, network, monitoring)
    asked = asked_values(admin, network)
    access = kind_of(definition).planned(_ends(definition, network, server, existing_server, slurm))
    locker = locker_plan(definition)
    jobs = job_plans(definition, slurm, shared) if slurm and shared else ()
    machines = tuple(each for each in fleet(definition) if each.most)
    terms, created = image_terms(server, slurm, machines), created_types(definition)
    azure_names = resource_names(names.prefix(definition), definition.name, network.vnet_name, definition.azure.cloud)
    return Plan(
        name=definition.name,
        definition=definition_file,
        deployment_name=names.deployment_name(definition.name, definition.location),
        location=definition.location,
        cloud=definition.azure.cloud,
        cli_cloud=names.cli_cloud(definition.azure.cloud),
        subscription_id=definition.azure.subscription_id,
        resource_group=names.resource_group(definition),
        creates_resource_group=names.creates_resource_group(definition),
        names=azure_names,
        tags=names.tags_of(definition),
        admin=admin,
        network=network,
        access=access,
        server=server,
        existing_server=existing_server,
        locker=locker,
        security=security,
        mounts=shared.mounts if shared else all_mounts,
        slurm=slurm,
        monitoring=monitoring,
        projects=carried_projects(projects, slurm),
        jobs=jobs,
        ledgers=ledgers(jobs, shared.all) if shared else (),
        asked=asked,
        secrets=secrets,
        variables=variables_read(variables, asked, secrets),
        modules=modules(all_mounts),
        late_addresses=late_addresses(all_mounts),
        node_settings=node_settings(shared.mounts) if shared else (),
        providers=providers(created, monitoring, terms),
        image_terms=terms,
        unknown_images=unknown_images(server, slurm, machines),
        fleet=machines,
        quota=quota_plan(machines),
        requirements=requirements(all_mounts),
        slow_resources=slow_resources(all_mounts, accounting, access),
        egress=egress_plan(definition.azure.cloud, network, server, slurm, all_mounts, monitoring, jobs),
        cleanup=cleanup_plan(
            network,
            all_mounts,
            accounting,
            monitoring,
            server or existing_server,
            locker,
            azure_names,
            definition.azure.subscription_id,
        ),
        silenced=tuple(sorted((entry.rule, entry.reason) for entry in definition.silence)),
        created_types=created,
        resolved=resolved(definition),
    )


def resolved(definition: Definition) -> dict[str, object]:
    """The definition with its defaults as plain data; what the deployment asks for stands as `{ask: VARIABLE}`."""
    dumped = _plain(plain_values(definition))
    return dumped if isinstance(dumped, dict) else {}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str | int | float) or value is None:
        return value
    return {"ask": getattr(value, "name", str(value))}


def _staged_versions(definition: Definition) -> dict[str, str]:
    return {project.name: project.version for project in definition.projects if project.version is not None}


def _ends(
    definition: Definition,
    network: NetworkPlan,
    server: ServerPlan | None,
    existing: ExistingServerPlan | None,
    slurm: SlurmPlan | None,
) -> Ends:
    if existing is not None:
        name, arguments = existing.vm_name, f"--ids {quote(existing.vm_id)}"
    else:
        name = server.vm_name if server else ""
        arguments = f"--resource-group {quote(names.resource_group(definition))} --name {quote(name)}"
    return Ends(
        username=definition.admin.username,
        server=name,
        server_arguments=arguments,
        scheduler=slurm.scheduler.host_name if slurm else None,
        network_is_new=network.is_new,
        server_is_new=server is not None,
        allowed_sources=network.allowed_sources,
    )


def _monitoring(definition: Definition) -> MonitoringPlan | None:
    monitoring = definition.monitoring
    if monitoring is None:
        return None
    return MonitoringPlan(monitoring.workspace_id, monitoring.ingestion_endpoint, monitoring.data_collection_rule_id)
