# ruff: noqa: E501 - sentences and commands stand in one line each
"""README sections about the cluster: start, validate, train, update, upload, delete, troubleshooting."""

from __future__ import annotations

from ..plan.types import Asked, CheckpointPlan, JobPlan, NodeArrayPlan, Plan
from .readme_text import (
    by_tunnel,
    count,
    deployment_name,
    jump_option,
    on_server,
    paragraphs,
    q,
    scheduler_target,
    shell,
    table,
)

_TERABYTE = 1e12


def _alias(plan: Plan) -> str:
    return f" -o HostKeyAlias={q(plan.slurm.scheduler.host_name)}" if by_tunnel(plan) else ""


# ---------------------------------------------------------------- start


def start(plan: Plan) -> str:
    """Starting the cluster and, in a static pool, its nodes."""
    cluster = q(plan.slurm.cluster_name)
    if plan.slurm.start_cluster:
        first = paragraphs(
            f"The deployment starts the cluster `{plan.slurm.cluster_name}`. Its state, and starting it again after a stop:",
            shell(
                on_server(plan, f"cyclecloud show_cluster {cluster}"),
                on_server(plan, f"cyclecloud start_cluster {cluster}"),
            ),
        )
    else:
        first = paragraphs(
            f"The deployment creates the cluster `{plan.slurm.cluster_name}` and leaves it stopped. Start it here or in the portal:",
            shell(
                on_server(plan, f"cyclecloud start_cluster {cluster}"),
                on_server(plan, f"cyclecloud show_cluster {cluster}"),
            ),
        )
    if plan.slurm.autoscale:
        pool = (
            "Nodes start when a job waits for them and stop when they are idle. `sinfo` shows stopped nodes as `idle~`."
        )
    else:
        nodes = [
            f"sudo /opt/azurehpc/slurm/resume_program.sh {q(_node_list(plan, array))}"
            for array in plan.slurm.node_arrays
        ]
        pool = paragraphs(
            "The pool is static: nodes run, and cost, until they are stopped. On the scheduler, start all nodes of a partition with one of "
            "these lines, and stop them with `suspend_program.sh` and the same list:",
            shell(*nodes),
        )
    return paragraphs("## Start the cluster", first, pool)


def _node_list(plan: Plan, array: NodeArrayPlan) -> str:
    """All nodes of an array as Slurm writes them: the template prefixes node names with the cluster's name."""
    stem = f"{plan.slurm.config_name}-{array.name}"
    return f"{stem}-1" if array.max_nodes == 1 else f"{stem}-[1-{array.max_nodes}]"


def validate(plan: Plan) -> str:
    """Copying the jobs, and the validation jobs with their verdicts."""
    jobs = [job for job in plan.jobs if job.kind == "validation"]
    copy = None
    if plan.jobs:
        copy = paragraphs(
            "Copy the jobs into your home folder on the cluster, then work there:",
            shell(
                f"scp -r {jump_option(plan)}{_alias(plan)} jobs {scheduler_target(plan)}:",
                f"ssh {jump_option(plan)}{_alias(plan)} {scheduler_target(plan)}",
            ),
        )
    if not jobs:
        return paragraphs("## Validate", copy, "The definition has no validation jobs.")
    blocks = []
    for job in jobs:
        blocks.append(
            paragraphs(
                f"**{job.name}**: {job.title}. Partition `{job.partition}`, {count(job.nodes, 'node')} of {job.vm_size}.",
                shell(*job.commands),
            )
        )
    return paragraphs(
        "## Validate",
        copy,
        "`sbatch --wait` ends with the exit status of the job, which is its verdict: 0 pass, 1 fail, 2 error, 3 warning, 4 no published "
        "baseline to judge by. A node that does not answer has failed. The first job on a stopped partition waits for its nodes to boot.",
        *blocks,
    )


def train(plan: Plan) -> str:
    """The steps of every training job, chained."""
    jobs = [job for job in plan.jobs if job.kind == "training"]
    if not jobs:
        return paragraphs(
            "## Train", "The definition has no training jobs; add them under `jobs.training` and build again."
        )
    return paragraphs("## Train", *(_training(job) for job in jobs))


def _training(job: JobPlan) -> str:
    titles = ", ".join(step.title for step in job.steps)
    return paragraphs(
        f"**{job.name}**: {job.title}. Partition `{job.partition}`, {count(job.nodes, 'node')} of {job.vm_size}. Steps: {titles}.",
        _model_text(job),
        shell(*job.commands),
        f"Follow it with `squeue --me` and `tail -f ~/jobs/{job.name}/*.out`; `~/jobs/{job.name}/README.md` tells the settings.",
    )


def _model_text(job: JobPlan) -> str | None:
    words = [f"The job trains `{job.model}`."] if job.model else []
    if job.checkpoint is not None:
        words.append(_checkpoint_text(job.checkpoint))
    return " ".join(words) or None


def _checkpoint_text(plan: CheckpointPlan) -> str:
    words = [
        f"{plan.parameters / 1e9:.3g} × 10⁹ parameters × {plan.bytes_per_parameter} bytes = {plan.checkpoint_bytes / _TERABYTE:.3g} TB per "
        f"checkpoint; {plan.kept} kept: {plan.needed_bytes / _TERABYTE:.3g} TB",
    ]
    if plan.capacity_bytes is not None:
        words.append(f" of {plan.capacity_bytes / _TERABYTE:.3g} TB")
    words.append(".")
    if plan.seconds_per_checkpoint is not None and plan.bandwidth_gb_per_s is not None:
        words.append(
            f" Writing one takes at least {plan.seconds_per_checkpoint:.0f} s at {plan.bandwidth_gb_per_s:g} GB/s."
        )
    return "".join(words)


# ---------------------------------------------------------------- update, upload, delete


def update(plan: Plan) -> str:
    """Changing the definition and deploying again."""
    stem = plan.definition.rsplit(".", 1)[0]
    common = f"--name {q(deployment_name(plan))} --location {q(plan.location)} --template-file main.bicep --parameters main.bicepparam"
    return paragraphs(
        "## Update",
        f"Change `{plan.definition}`. In the folder from which it was built, see what the change costs (in place, restart of nodes, new "
        "creation), and build again:",
        shell(f"cycleforge diff {q(stem)}", f"cycleforge build {q(stem)}"),
        "Then deploy again under the same name, in this folder:",
        shell("source .envrc", f"az deployment sub what-if {common}", f"az deployment sub create {common}"),
        "Changed content runs the first-boot program of the server again; unchanged content does not. Running nodes keep what they "
        "booted with: after a change of partitions run `sudo azslurm scale` on the scheduler, after a change of projects let the nodes of the "
        "partition end and start again. After a change of mounts terminate the cluster and start it again: scheduler and login nodes have "
        "them too.",
    )


def delete(plan: Plan) -> str:
    """Terminating the cluster, deleting the group, and what remains."""
    cluster, group, name = q(plan.slurm.cluster_name), q(plan.resource_group), q(deployment_name(plan))
    outside = "" if plan.network.is_new else " and joins nodes to the existing network"
    shared = plan.monitoring is not None or any(mount.kind == "blob" for mount in plan.mounts)
    principals = ["serverPrincipalId", *(["nodePrincipalId"] if shared else [])]
    return paragraphs(
        "## Delete",
        "This destroys the cluster and all data in it, the home folders included. Copy away what is to stay. Terminate the cluster first and "
        "wait until the second command shows no running node:",
        shell(
            on_server(plan, f"cyclecloud terminate_cluster {cluster}"),
            on_server(plan, f"cyclecloud show_cluster {cluster}"),
        ),
        "Role assignments outside the resource group would stay behind without their owner: the server reads sizes and quota of the whole "
        "subscription" + outside + ". Delete them, then the resource group with everything in it:",
        shell(
            *(
                line
                for output in principals
                for line in (
                    f"principal=$(az deployment sub show --name {name} --query properties.outputs.{output}.value --output tsv)",
                    "az role assignment list --all --assignee \"${principal:?}\" --query '[].id' --output tsv | xargs -r az role assignment delete --ids",
                )
            ),
            f"az group delete --name {group} --yes",
        ),
        "What remains outside the group:",
        shell(
            f"az deployment sub delete --name {name}",
            f"az resource list --tag ClusterName={cluster} --query '[].id' --output tsv",
        ),
        "The first line removes the record of the deployment. The second must print nothing; what it prints is a leftover of the cluster.",
        _delete_peering(plan),
        _delete_zone_link(plan),
        _delete_leftovers(plan),
    )


def _delete_peering(plan: Plan) -> str | None:
    hub = plan.network.hub
    if hub is None:
        return None
    vnet = f'"${{{hub.vnet_id.variable}:?}}"' if isinstance(hub.vnet_id, Asked) else q(hub.vnet_id)
    return paragraphs(
        "The hub network keeps its side of the peering, now without a partner. Find its name, then delete it:",
        shell(
            f"hub={vnet}",
            f'peering=$(az network vnet show --ids "${{hub}}" --query "virtualNetworkPeerings[?contains(remoteVirtualNetwork.id, \'/{plan.network.vnet_name}\')].id | [0]" --output tsv)',
            'az network vnet peering delete --ids "${peering}"',
        ),
    )


def _delete_zone_link(plan: Plan) -> str | None:
    """A new network is linked to an existing zone, and the link lies beside the zone."""
    zone = plan.network.blob_dns_zone
    if zone in ("new", "none") or not plan.network.is_new:
        return None
    _, subscription, _, group, *_, name = zone.strip("/").split("/")
    here = f"--subscription {q(subscription)} --resource-group {q(group)} --zone-name {q(name)}"
    network = (
        f"/resourceGroups/{plan.resource_group}/providers/Microsoft.Network/virtualNetworks/{plan.network.vnet_name}"
    )
    return paragraphs(
        "The existing DNS zone keeps its link to the network, now without a partner. Find its name, then delete it:",
        shell(
            f"link=$(az network private-dns link vnet list {here} --query \"[?ends_with(virtualNetwork.id, '{network}')].name | [0]\" --output tsv)",
            f'az network private-dns link vnet delete {here} --name "${{link:?}}" --yes',
        ),
    )


def _delete_leftovers(plan: Plan) -> str | None:
    kept = []
    if not plan.network.is_new:
        kept.append(f"the network `{plan.network.vnet_name}` in `{plan.network.vnet_resource_group}`")
    kept += [f"the existing file system of `{mount.path}`" for mount in plan.all_mounts if mount.kind == "existing"]
    kept += [f"the storage account `{mount.storage_account}`" for mount in plan.all_mounts if mount.kind == "blob"]
    accounting = plan.slurm.accounting
    if accounting is not None and not accounting.is_new:
        kept.append(f"the database `{accounting.database}` on `{accounting.host}`")
    if plan.monitoring is not None:
        kept.append("the Azure Monitor workspace")
    return "Left as they are, because the deployment did not create them: " + "; ".join(kept) + "." if kept else None


# ---------------------------------------------------------------- troubleshooting


def troubleshooting(plan: Plan) -> str:
    """What goes wrong, how to see it, what to do."""
    rows: list[tuple[str, str]] = [
        ("`InvalidDeploymentLocation`", "a deployment of this name was made in another region: use another `--name`"),
        ("`MarketplacePurchaseEligibilityFailed` or a message about terms", "accept the image terms (Prerequisites)"),
        (
            "`SkuNotAvailable`, `QuotaExceeded`, `OperationNotAllowed`",
            "compare quota and offered sizes (Prerequisites); another region or zone may have capacity",
        ),
        (
            "`AuthorizationFailed` on role assignments",
            "the account may not assign roles: Owner, or User Access Administrator, is needed",
        ),
        (
            "the deployment fails in the server's extension",
            "`status.json` (Watch) names the step, the reason and what to do. After the fix run `sudo cycleforge-bootstrap retry` on the "
            "server (it asks for the passwords), or deploy again with `--parameters bootstrapRun=2` added (any new value); only what is "
            "missing is repeated",
        ),
        ("step about the locker fails", "role assignments take minutes to work everywhere: run it again as above"),
        (
            "`cyclecloud` says that it is not initialised",
            "run `cyclecloud initialize` (Connect); the first boot leaves no password on the server",
        ),
        (
            "a node stays in `Software Installation` or fails",
            "portal, node, Show Details; on the node `/opt/cycle/jetpack/logs/` and `/var/log/azure-slurm-install.log`",
        ),
        (
            "a job stays pending with `ReqNodeNotAvail` or `Resources`",
            "`azslurm limits` on the scheduler shows what quota leaves; the portal shows why a node did not start",
        ),
        (
            "nodes are `down` with `cyclecloud_no_node` or `cyclecloud_zombie_node`",
            "`sudo azslurm return_to_idle` on the scheduler",
        ),
        ("partitions or node counts are old after an update", "`sudo azslurm scale` on the scheduler"),
        (
            "a validation job ends with status 4",
            "no figure is published for this VM size and node count; the measured number is in `results/`",
        ),
    ]
    if any(array.hardware.infiniband_nics for array in plan.slurm.node_arrays):
        rows.append(
            (
                "NCCL hangs at its start",
                "a link is down or has no partition key: run the `node-health` job; pair each node with a known good one",
            )
        )
    if any(mount.kind == "amlfs" for mount in plan.all_mounts):
        rows.append(
            (
                "`Permission denied` on the Lustre mount",
                'its root belongs to root: create your folder with `sudo install -d -o "$USER" FOLDER`',
            )
        )
    if plan.slurm.accounting is not None:
        rows.append(
            (
                "`sacct` says that the connection is refused",
                "`systemctl status slurmdbd` and `/var/log/slurmctld/` on the scheduler; check the database's address and password",
            )
        )
    if any(array.spot for array in plan.slurm.node_arrays):
        rows.append(
            (
                "jobs on spot nodes end with `NODE_FAIL`",
                "Azure took the VM back: submit with `--requeue` and write checkpoints",
            )
        )
    return paragraphs("## Troubleshooting", table(("what you see", "what to do"), rows))
