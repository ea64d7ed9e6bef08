# ruff: noqa: E501 - sentences and commands stand in one line each
"""README sections up to a running server: overview, prerequisites, deploy, watch."""

from __future__ import annotations

from ..catalog.sizes import VmSize
from ..plan.types import MountPlan, NodeArrayPlan, Plan
from .readme_text import (
    CLI_CLOUDS,
    deployment_name,
    paragraphs,
    q,
    shell,
    table,
)

# ---------------------------------------------------------------- overview


def overview(plan: Plan, files_summary: object) -> str:
    """What this folder deploys."""
    del files_summary  # the manifest lists the files; a second list here would change with every build
    slurm = plan.slurm
    rows: list[tuple[str, str]] = [
        ("Resource group", f"`{plan.resource_group}` in `{plan.location}`"),
        ("CycleCloud server", f"`{plan.server.vm_name}`, {plan.server.vm_size}, CycleCloud {plan.server.release}"),
        ("Access", _access_text(plan)),
        ("Network", _network_text(plan)),
        ("Slurm cluster", f"`{slurm.cluster_name}`, Slurm {slurm.version}, {_pool_text(plan)}"),
        ("Scheduler", _scheduler_text(plan)),
        ("Login nodes", f"{slurm.login.count} × {slurm.login.hardware.name}" if slurm.login.count else "none"),
        *((f"Partition `{array.partition}`", _partition_text(array)) for array in slurm.node_arrays),
        *((f"`{mount.path}`", _mount_text(mount)) for mount in plan.all_mounts),
        ("Accounting", _accounting_text(plan)),
    ]
    if plan.monitoring is not None:
        rows.append(("Monitoring", "metrics into an existing Azure Monitor workspace"))
    files = table(
        ("file", "holds"),
        (
            ("`main.bicep`, `main.bicepparam`, `modules/`", "the Azure deployment and its parameters"),
            ("`bootstrap/`", "what the server runs at its first boot"),
            ("`cluster/`", "the CycleCloud template of the cluster and its parameters"),
            *((("`projects/`", "the cluster-init projects of the nodes"),) if plan.projects else ()),
            *((("`jobs/`", "validation and training jobs for `sbatch`"),) if plan.jobs else ()),
            ("`effective.yaml`", "the definition with all defaults, and what follows from it"),
            ("`manifest.json`", "sha256 of every file"),
            ("`.envrc.template`", "the environment variables that the deployment reads"),
        ),
    )
    return paragraphs(
        f"# {plan.name}",
        f"Written by `cycleforge build` from `{plan.definition}`. Do not edit the files here: change the definition and build again. "
        "All commands below are run in this folder unless they say otherwise.",
        table(("what", "this deployment"), rows),
        files,
        _blobs_text(plan),
    )


def _blobs_text(plan: Plan) -> str | None:
    """Files of other people: what travels, and what was left out."""
    blobs = [(project.name, blob) for project in plan.projects for blob in project.blobs]
    carried = [f"`projects/{name}/blobs/{blob.file}`" for name, blob in blobs if blob.state == "present"]
    missing = [(name, blob) for name, blob in blobs if blob.is_needed and blob.state != "present"]
    left_out = [f"`{blob.file}` (project `{name}`)" for name, blob in missing]
    words = []
    if carried:
        words.append(f"Files of other people, carried with their pinned sha256: {', '.join(carried)}.")
    if left_out:
        words.append(
            f"Left out, because the machine that built this folder did not have them: {', '.join(left_out)}. To carry them, run "
            "`cycleforge blobs fetch`, then build and deploy again."
        )
    return " ".join(words) or None


def _access_text(plan: Plan) -> str:
    network = plan.network
    if network.access == "bastion":
        return "Azure Bastion with tunnels; no public address on the server"
    if network.access == "hub":
        return "private address, reached through the hub network and its VPN or ExpressRoute gateway"
    return "public address, open for " + ", ".join(f"`{source}`" for source in network.allowed_sources)


def _network_text(plan: Plan) -> str:
    network = plan.network
    if not network.is_new:
        return f"existing network `{network.vnet_name}` in `{network.vnet_resource_group}`"
    nat = ", NAT gateway for outbound traffic" if network.nat_gateway else ", no NAT gateway"
    return f"new network `{network.vnet_name}`, {network.address_space}{nat}"


def _pool_text(plan: Plan) -> str:
    return (
        "nodes start with jobs and stop when idle"
        if plan.slurm.autoscale
        else "static pool: nodes run until they are stopped"
    )


def _scheduler_text(plan: Plan) -> str:
    scheduler = plan.slurm.scheduler
    pair = ", with a second one for high availability" if scheduler.high_availability else ""
    return f"`{scheduler.host_name}`, {scheduler.hardware.name}{pair}"


def _partition_text(array: NodeArrayPlan) -> str:
    words = [f"up to {array.max_nodes} × {array.vm_size}"]
    if array.hardware.gpu_count:
        words.append(f"{array.hardware.gpu_count} × {array.hardware.gpu_model or 'GPU'} each")
    words += [word for word, wanted in (("default", array.is_default), ("spot", array.spot)) if wanted]
    return ", ".join(words)


def _mount_text(mount: MountPlan) -> str:
    if mount.kind == "nfs":
        return f"NFS disk of the scheduler, {mount.size_gib} GiB"
    if mount.kind == "anf":
        return f"Azure NetApp Files, {mount.size_gib} GiB, {mount.service_level}"
    if mount.kind == "amlfs":
        return f"Azure Managed Lustre, {(mount.size_gib or 0) // 1024} TiB, {mount.tier_mb_per_s_per_tib} MB/s per TiB"
    if mount.kind == "blob":
        return f"blob container `{mount.container}` of `{mount.storage_account}` by blobfuse"
    return f"existing {mount.protocol.upper() if mount.protocol == 'nfs' else mount.protocol.capitalize()} at {mount.address}"


def _accounting_text(plan: Plan) -> str:
    accounting = plan.slurm.accounting
    if accounting is None:
        return "off"
    return (
        "new MySQL flexible server with private access"
        if accounting.is_new
        else f"existing MySQL server {accounting.host}"
    )


# ---------------------------------------------------------------- prerequisites


def prerequisites(plan: Plan) -> str:
    """Sign-in, terms, providers and quota."""
    login = [f"az cloud set --name {CLI_CLOUDS[plan.cloud]}"] if plan.cloud != "public" else []
    login.append("az login")
    if plan.subscription_id is not None:
        login.append(f"az account set --subscription {q(plan.subscription_id)}")
    login.append("az account show --query '{name: name, id: id}' --output table")
    hint = (
        None
        if plan.subscription_id
        else "The definition names no subscription: the one that `az account show` prints is used."
    )
    return paragraphs(
        "## Prerequisites",
        "Azure CLI 2.53.0 or later, the first that reads Bicep parameter files, with Bicep (`az bicep install`). Your account needs Owner, or Contributor and User Access "
        "Administrator, on the subscription, because the deployment creates role assignments.",
        shell(*login),
        hint,
        _terms(plan),
        "Resource providers, once per subscription:",
        shell(*(f"az provider register --namespace {name} --wait" for name in providers(plan))),
        _quota(plan),
        _existing_network(plan),
        _own_dns(plan),
    )


def _terms(plan: Plan) -> str | None:
    image = plan.server.image
    if image is None:
        return None
    urn = f"{image.publisher}:{image.offer}:{image.sku}:{image.version}"
    return paragraphs(
        "Terms of the CycleCloud image, once per subscription. Read them first: the command accepts them.",
        shell(f"az vm image terms show --urn {urn}", f"az vm image terms accept --urn {urn}"),
    )


def providers(plan: Plan) -> tuple[str, ...]:
    """Resource providers that the deployment uses, sorted."""
    kinds = {mount.kind for mount in plan.all_mounts}
    names = {"Microsoft.Compute", "Microsoft.ManagedIdentity", "Microsoft.Network", "Microsoft.Storage"}
    if "anf" in kinds:
        names.add("Microsoft.NetApp")
    if "amlfs" in kinds:
        names.add("Microsoft.StorageCache")
    if plan.slurm.accounting is not None and plan.slurm.accounting.is_new:
        names.add("Microsoft.DBforMySQL")
    if plan.monitoring is not None:
        names |= {"Microsoft.Insights", "Microsoft.Monitor"}
    return tuple(sorted(names))


def quota_rows(plan: Plan) -> list[tuple[str, str, int, int | None, str | None, bool]]:
    """(role, VM size, VMs, vCPUs in all, quota family, spot) of everything that may run at once."""
    from .. import catalog

    slurm = plan.slurm
    schedulers = 2 if slurm.scheduler.high_availability else 1
    members: list[tuple[str, VmSize, str, int, bool]] = [
        ("CycleCloud server", catalog.vm_size(plan.server.vm_size), plan.server.vm_size, 1, False),
        ("scheduler", slurm.scheduler.hardware, slurm.scheduler.hardware.name, schedulers, False),
        (
            "login",
            slurm.login.hardware,
            slurm.login.hardware.name,
            max(slurm.login.count, slurm.login.max_count),
            False,
        ),
        *(
            (f"partition {array.partition}", array.hardware, array.vm_size, array.max_nodes, array.spot)
            for array in slurm.node_arrays
        ),
    ]
    if plan.server.jumpbox is not None:
        size = plan.server.jumpbox.vm_size
        members.append(("jumpbox", catalog.vm_size(size), size, 1, False))
    return [
        (
            role,
            size,
            number,
            hardware.vcpus * number if hardware.vcpus else None,
            hardware.quota_family,
            spot,
        )
        for role, hardware, size, number, spot in members
        if number
    ]


def _quota(plan: Plan) -> str:
    rows = quota_rows(plan)
    needs: dict[str, int | None] = {}
    for _, size, _, vcpus, family, spot in rows:
        key = "spot vCPUs of the region (lowPriorityCores)" if spot else family or f"family of {size}"
        known = needs.get(key, 0)
        needs[key] = None if vcpus is None or known is None else known + vcpus
    regular = [vcpus for _, _, _, vcpus, _, spot in rows if not spot]
    known_total = sum(vcpus for vcpus in regular if vcpus is not None)
    needs["all vCPUs of the region (cores)"] = known_total if None not in regular else None
    words = {"cores"} | {family.replace(" ", "") for *_, family, spot in rows if family and not spot}
    if any(spot for *_, spot in rows):
        words.add("lowPriorityCores")
    sizes = sorted({size for _, size, *_ in rows})
    return paragraphs(
        "Quota: with every partition at its limit the deployment uses",
        table(
            ("who", "VM size", "VMs", "vCPUs"),
            ((role, size, number, _number(vcpus)) for role, size, number, vcpus, *_ in rows),
        ),
        "so the limits in the region must be at least, beyond what already runs:",
        table(("quota", "vCPUs"), ((name, _number(vcpus)) for name, vcpus in needs.items())),
        "Columns of the next command: family, in use, limit. Raise a limit in the portal under Quotas.",
        shell(
            f"az vm list-usage --location {q(plan.location)} --query '[].[name.value, currentValue, limit]' --output tsv"
            f" | tr -d ' ' | grep -iwE {q('|'.join(sorted(words)))}"
        ),
        "The sizes must be offered to your subscription in the region (an empty line or a restriction means that they are not):",
        shell(
            *(f"az vm list-skus --location {q(plan.location)} --size {q(size)} --all --output table" for size in sizes)
        ),
    )


def _number(vcpus: int | None) -> str:
    return "not known to CycleForge" if vcpus is None else str(vcpus)


def _existing_network(plan: Plan) -> str | None:
    network = plan.network
    if network.is_new:
        return None
    subnets = ", ".join(
        f"`{subnet.name}` ({subnet.role}{f', delegated to {subnet.delegation}' if subnet.delegation else ''})"
        for subnet in network.subnets
    )
    return (
        f"The network `{network.vnet_name}` must exist in `{network.vnet_resource_group}` with the subnets {subnets}. Server and nodes need a "
        "way out to the internet from theirs, for example a NAT gateway. The firewall rules must let nodes reach the server on ports 443 and 9443, the server reach nodes on port 22, and all nodes "
        "reach each other."
    )


def _own_dns(plan: Plan) -> str | None:
    if plan.network.blob_dns_zone != "none":
        return None
    return (
        "The definition leaves the name of the locker's private endpoint to you (`blob_dns_zone: none`): while the deployment runs, a policy or "
        "a person must register it in the zone that the network resolves. Until then the first boot waits for the locker, and then fails."
    )


# ---------------------------------------------------------------- deploy


def deploy(plan: Plan) -> str:
    """The deployment with and without the parameter file."""
    name, location = q(deployment_name(plan)), q(plan.location)
    common = f"--name {name} --location {location} --template-file main.bicep"
    asked = [secret.description.rstrip(".").split(":")[0] for secret in plan.secrets] + [
        value.description.rstrip(".") for value in plan.asked
    ]
    return paragraphs(
        "## Deploy",
        "The parameter file reads its values from the environment. Copy the template, fill it in, and read it:",
        shell("cp .envrc.template .envrc", '"${EDITOR:-vi}" .envrc', "source .envrc"),
        "See first what would be created:",
        shell(f"az deployment sub what-if {common} --parameters main.bicepparam"),
        "Then deploy. The command ends when the server has configured itself; a failed first boot fails the deployment.",
        shell(f"az deployment sub create {common} --parameters main.bicepparam"),
        "Without the parameter file `az` asks for what has no default: " + "; ".join(asked) + "."
        if asked
        else "Without the parameter file:",
        shell(f"az deployment sub create {common}"),
        _durations(plan),
        _grants(plan),
    )


def _grants(plan: Plan) -> str | None:
    """Blob containers belong to somebody else, so the deployment does not assign roles on them."""
    blobs = [mount for mount in plan.mounts if mount.kind == "blob"]
    if not blobs:
        return None
    accounts = sorted({str(mount.storage_account) for mount in blobs})
    lines = [
        f"principal=$(az deployment sub show --name {q(deployment_name(plan))} --query properties.outputs.nodePrincipalId.value --output tsv)"
    ]
    for mount in blobs:
        lines += [
            f"account=$(az storage account show --name {q(str(mount.storage_account))} --query id --output tsv)",
            'az role assignment create --role "Storage Blob Data Contributor" --assignee-object-id "${principal:?}" --assignee-principal-type'
            f' ServicePrincipal --scope "${{account:?}}/blobServices/default/containers/{mount.container}"',
        ]
    return paragraphs(
        "After the first deployment let the nodes use the blob containers; until then their mounts fail and are tried again. Who only reads needs "
        f"`Storage Blob Data Reader`. The firewall of {' and '.join(f'`{account}`' for account in accounts)} must let the compute subnet in.",
        shell(*lines),
    )


def _durations(plan: Plan) -> str | None:
    slow = [
        text
        for text, wanted in (
            ("Azure Managed Lustre", any(mount.kind == "amlfs" for mount in plan.all_mounts)),
            ("the MySQL server", plan.slurm.accounting is not None and plan.slurm.accounting.is_new),
            ("Azure Bastion", plan.network.access == "bastion" and plan.network.is_new),
        )
        if wanted
    ]
    return f"Creating {' and '.join(slow)} takes longer than the rest." if slow else None


# ---------------------------------------------------------------- watch


def watch(plan: Plan) -> str:
    """State of the deployment and of the first boot."""
    group, vm = q(plan.resource_group), q(plan.server.vm_name)
    name = q(deployment_name(plan))
    return paragraphs(
        "## Watch",
        "In a second terminal, the state of the deployment and of its parts:",
        shell(
            f"az deployment sub show --name {name} --query properties.provisioningState --output tsv",
            f"az deployment group list --resource-group {group} --query '[].[name, properties.provisioningState, properties.duration]' --output table",
        ),
        "The first boot of the server writes each step into one status file, `/var/lib/cycleforge/status.json`. Read it over SSH as soon as the "
        "server answers (Connect), or, without a network path, with the next command; Azure runs that one only when the first boot has ended, "
        "failed or not.",
        shell(
            f"az vm run-command invoke --resource-group {group} --name {vm} --command-id RunShellScript"
            " --scripts 'cat /var/lib/cycleforge/status.json' --query 'value[0].message' --output tsv"
        ),
        "On the server itself, `sudo cycleforge-bootstrap status` prints the same in words.",
        "After the deployment, its outputs:",
        shell(f"az deployment sub show --name {name} --query properties.outputs --output json"),
    )
