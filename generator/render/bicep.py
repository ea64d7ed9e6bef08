"""`main.bicep`, `main.bicepparam` and the modules in use.

The template only composes: what is present or absent, every name and number is decided in the plan; here they become
literals and expressions of Bicep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from ..files import assets
from ..files.file import File, Files, Json, text
from ..plan.asked import Asked
from ..plan.bicep_modules import BicepValue, Expression
from ..plan.deployment import Plan
from ..plan.flow import SERVER, USERS
from ..plan.network import SecurityRule
from ..plan.resources import resource_id
from .templates import bicep_string, environment

_MODULE = re.compile(r"'(modules/[a-z0-9-]+\.bicep)'")
_IDENTIFIER = re.compile(r"(?!(?:true|false|null)$)[A-Za-z_][A-Za-z0-9_]*")
"""A keyword is none: BCP022, https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-error-codes"""


def bicep_literal(value: Json, indent: int = 0) -> str:
    """A value as a Bicep literal; lists and objects are on several lines, `indent` spaces in."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return bicep_string(value)
    if isinstance(value, float):
        raise TypeError(f"Bicep has no fractions: {value}")
    if isinstance(value, int):
        return str(value)
    pad = " " * (indent + 2)
    if isinstance(value, list):
        items = [f"{pad}{bicep_literal(item, indent + 2)}\n" for item in value]
        return f"[\n{''.join(items)}{' ' * indent}]" if items else "[]"
    items = [f"{pad}{_key(key)}: {bicep_literal(item, indent + 2)}\n" for key, item in value.items()]
    return f"{{\n{''.join(items)}{' ' * indent}}}" if items else "{}"


def _argument(value: BicepValue) -> str:
    return value.text if isinstance(value, Expression) else bicep_literal(value)


def _key(name: str) -> str:
    """A property name; what is not an identifier is in quotes."""
    return name if _IDENTIFIER.fullmatch(name) else bicep_string(name)


def render(
    plan: Plan,
    payload: tuple[str, ...] = (),
    content_hash: str = "",
    payload_sha256: str = "",
    late: Mapping[str, str] | None = None,
) -> Files:
    """The Bicep part of a deployment folder.

    For a new server, `payload` are the paths of the pieces of the archive relative to the folder, in order;
    `content_hash` is what makes the first-boot program run again, `payload_sha256` the digest of the joined pieces,
    which the server checks. For an existing server, where people import the cluster, `late` maps its parameters to the
    fact, or `secret:<name>`, that fills each.
    """
    source = assets.folder("bicep_templates")
    templates = environment(source)
    values = _values(plan, late or {}, payload, content_hash, payload_sha256)
    main = templates.get_template("main.bicep.j2").render(values)
    parameters = templates.get_template("main.bicepparam.j2").render(values)
    files: Files = {PurePosixPath("main.bicep"): text(main), PurePosixPath("main.bicepparam"): text(parameters)}
    written = {piece["module"]: piece for piece in values["payload"]}
    for module in sorted(set(_MODULE.findall(main))):
        if module in written:
            piece = templates.get_template("payload.bicep.j2").render(piece=written[module])
            files[PurePosixPath(module)] = text(piece)
        else:
            files[PurePosixPath(module)] = File((source / module).read_bytes())
    return files


def _values(
    plan: Plan, late: Mapping[str, str], payload: tuple[str, ...], content_hash: str, payload_sha256: str
) -> dict[str, Any]:
    """Everything that the two templates print."""
    network = plan.network
    key = plan.admin.ssh_public_key
    return {
        "plan": plan,
        "literal": bicep_literal,
        "argument": _argument,
        "tags": dict(plan.tags),
        "ssh_key": bicep_string(key) if isinstance(key, str) else None,
        "ssh_key_name": key.parameter if isinstance(key, Asked) else "sshPublicKey",
        "compute_subnet": _compute_subnet(plan),
        "subnets": _subnets(plan),
        "subnet_names": {subnet.role: subnet.name for subnet in network.subnets},
        "more_subnets": [subnet.name for subnet in network.compute_subnets[1:]],
        "more_prefixes": "".join(f",{subnet.prefix}" for subnet in network.compute_subnets[1:]),
        "property": _key,
        "security_rule": _security_rule,
        "user_ports": list(_user_ports(plan)),
        "no_proxy": _no_proxy(plan),
        "vnet": resource_id(network.vnet_id) if network.vnet_id else None,
        "hub": _hub(plan),
        # Azure refuses a subnet of a network that is being changed, and a peering changes both networks.
        # https://github.com/pulumi/pulumi-azure-native/issues/4340
        "after_network": partial(_depends_on, ("peering",) if _hub(plan) else ()),
        "dns_zone": _dns_zone(plan),
        "existing_locker": resource_id(plan.locker.account_id) if plan.locker.account_id else None,
        "cluster_parameters": _cluster_parameters(plan, late),
        "locker_account": _unique(plan.locker.account_name, plan.names.locker_account_stem),
        "database": _database(plan),
        "without_facts": _without_facts(plan),
        "metrics_rule": resource_id(plan.monitoring.data_collection_rule_id) if plan.monitoring else None,
        "server_image": _image(plan),
        "payload": [
            {
                "symbol": f"payload{i:02}",
                "name": f"{plan.nested_stem}-payload-{i:02}",
                "module": f"modules/payload-{i:02}.bicep",
                "path": path,
            }
            for i, path in enumerate(payload)
        ],
        "content_hash": content_hash,
        "payload_sha256": payload_sha256,
    }


def _without_facts(plan: Plan) -> list[str]:
    """The modules of file systems from which the first boot gets no address, so that it must be told to wait."""
    waited_for = {symbol for _, symbol in plan.late_addresses}.union(*(module.after for module in plan.modules))
    return [module.symbol for module in plan.modules if module.symbol not in waited_for]


def _depends_on(always: tuple[str, ...], also: tuple[str, ...] = ()) -> str:
    """The line of a module that waits for others by their symbols; empty where it waits for none."""
    symbols = (*always, *also)
    return f"  dependsOn: [{', '.join(symbols)}]\n" if symbols else ""


def _no_proxy(plan: Plan) -> str | None:
    """What is reached without a proxy, as an expression: the deployment knows the domain of its cloud itself."""
    proxy = plan.network.proxy
    if proxy is None:
        return None
    return bicep_string(",".join(proxy.no_proxy)).removesuffix("'") + ",.blob.${environment().suffixes.storage}'"


def _cluster_parameters(plan: Plan, late: Mapping[str, str]) -> list[tuple[str, str]]:
    """(parameter of the cluster, expression) for what only the deployment knows; passwords stay out of outputs."""
    facts = {
        "subnetId": bicep_string(_compute_subnet(plan)),
        "lockerIdentityId": "nodeIdentity.outputs.id",
        "lockerIdentityClientId": "nodeIdentity.outputs.clientId",
        "databaseHost": "database.outputs.host",
    } | {fact: f"{symbol}.outputs.address" for fact, symbol in plan.late_addresses}
    return [(name, facts[fact]) for name, fact in late.items() if not fact.startswith("secret:")]


def _compute_subnet(plan: Plan) -> str:
    network = plan.network
    return "/".join((network.vnet_resource_group, network.vnet_name, _compute(plan)))


def _compute(plan: Plan) -> str:
    """Name of the compute subnet, which every network has; ValueError says that the plan is not final."""
    subnet = plan.network.subnet("compute")
    if subnet is None:
        raise ValueError("the network has no compute subnet")
    return subnet.name


def _subnets(plan: Plan) -> list[Json]:
    network = plan.network
    subnets: list[Json] = []
    for subnet in network.subnets:
        role, dash, name = subnet.role.partition("-")
        value: dict[str, Json] = {"role": role, "name": subnet.name, "prefix": subnet.prefix}
        if name:
            value["suffix"] = dash + name
        if subnet.delegation:
            value["delegation"] = subnet.delegation
        subnets.append(value | {"usesNat": subnet.uses_nat} | ({"isRouted": True} if subnet.is_routed else {}))
    return subnets


def _security_rule(rule: SecurityRule) -> str:
    """A rule on one line, as `modules/network.bicep` takes it."""
    sources = rule.sources.text if isinstance(rule.sources, Expression) else _inline(rule.sources)
    values = {
        "name": bicep_string(rule.name),
        "priority": str(rule.priority),
        "direction": bicep_string(rule.direction),
        "access": bicep_string(rule.access),
        "protocol": bicep_string(rule.protocol),
        "sources": sources,
        "destinations": _inline(rule.destinations),
        "ports": _inline(rule.ports),
        "description": bicep_string(rule.description),
    }
    return f"{{ {', '.join(f'{name}: {value}' for name, value in values.items())} }}"


def _inline(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(map(bicep_string, texts))}]"


def _user_ports(plan: Plan) -> tuple[str, ...]:
    """Ports of the server's own public address."""
    flows = plan.network.flows if plan.network.allowed_sources else ()
    found = (port for flow in flows if (flow.source, flow.destination) == (USERS, SERVER) for port in flow.ports)
    return tuple(dict.fromkeys(found))


def _hub(plan: Plan) -> dict[str, object] | None:
    """Scope and id of the hub as Bicep expressions; None without a peering (an existing network is left as it is)."""
    hub = plan.network.hub
    if hub is None or not plan.network.is_new:
        return None
    if isinstance(hub.vnet_id, Asked):
        parameter = hub.vnet_id.parameter
        subscription, group, name = (f"split({parameter}, '/')[{position}]" for position in (2, 4, 8))
        return _hub_values(parameter, subscription, group, name, use_gateway=hub.use_remote_gateway)
    parts = resource_id(hub.vnet_id)
    literals = (bicep_string(part) for part in (hub.vnet_id, parts.subscription, parts.resource_group, parts.name))
    return _hub_values(*literals, use_gateway=hub.use_remote_gateway)


def _hub_values(vnet_id: str, subscription: str, group: str, name: str, *, use_gateway: bool) -> dict[str, object]:
    return {
        "id": vnet_id,
        "subscription": subscription,
        "resource_group": group,
        "name": name,
        "use_gateway": use_gateway,
    }


def _dns_zone(plan: Plan) -> dict[str, object]:
    """How the name of the locker is resolved: `kind` new, existing or none, and the zone as Bicep expressions."""
    wanted = plan.network.blob_dns_zone
    name = "'privatelink.blob.${environment().suffixes.storage}'"
    if wanted in ("new", "none"):
        scope = "subscription().subscriptionId, resourceGroupName"
        return {"kind": wanted, "name": name, "id": f"resourceId({scope}, 'Microsoft.Network/privateDnsZones', {name})"}
    parts = resource_id(wanted)
    scope = ", ".join((bicep_string(parts.subscription), bicep_string(parts.resource_group)))
    # The zone's name follows from the cloud, and a literal one would tie the deployment to it.
    return {
        "kind": "existing",
        "name": name,
        "scope": scope,
        "id": f"resourceId({scope}, 'Microsoft.Network/privateDnsZones', {name})",
    }


def _unique(given: str | None, stem: str) -> str:
    """A Bicep expression: the given name, or the stem and 13 characters of subscription and resource group."""
    return bicep_string(given) if given else f"'{stem}${{unique}}'"


def _database(plan: Plan) -> dict[str, object] | None:
    """The new database server: its name as an expression, and what the plan says of it."""
    accounting = plan.slurm.accounting if plan.slurm else None
    if accounting is None or not accounting.is_new:
        return None
    return {
        "name": _unique(accounting.server_name, plan.names.database_server_stem),
        "zone": _database_zone(plan),
        "plan": accounting,
    }


def _database_zone(plan: Plan) -> dict[str, object]:
    wanted = plan.network.mysql_dns_zone
    if wanted == "new":
        return {"kind": wanted, "name": bicep_string(plan.names.database_zone)}
    parts = resource_id(wanted)
    scope = ", ".join((bicep_string(parts.subscription), bicep_string(parts.resource_group)))
    return {"kind": "existing", "name": bicep_string(parts.name), "scope": scope, "id": bicep_string(wanted)}


def _image(plan: Plan) -> Json:
    image = plan.server.image if plan.server else None
    if image is None:
        return None
    return {"publisher": image.publisher, "offer": image.offer, "sku": image.sku, "version": image.version}
