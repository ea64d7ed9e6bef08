"""The table of steps, in order. Limits and pauses in seconds."""

from typing import Any, Dict, List

from . import cli, client, cluster, fingerprints, login, projects, service, site, updates
from .core import Context
from .runner import Step

ROLE_HINT = "A new role assignment of the server's identity takes up to ten minutes; check it in the resource group."


def steps_of(context: Context) -> List[Step]:
    """The steps that this deployment needs."""
    config = context.config
    session = login.Login()
    alone = service.Independence()
    hint = "See /opt/cycle_server/logs/cycle_server.log on the server."
    steps = [
        Step("installed", "CycleCloud is installed", site.is_installed, site.wait_for_installation, 600,
             hint="The server's image must contain CycleCloud in /opt/cycle_server."),
        Step("updates", "CycleCloud is not updated by accident", updates.is_held, updates.hold, 60),
        Step("settings", "ports and memory of the web server", site.has_settings, site.write_settings, 900, hint=hint),
        Step("startup", "CycleCloud is up", site.is_answering, site.await_startup, 1200, hint=hint),
        Step("cli", "CycleCloud CLI", cli.has_cli, cli.install_cli, 900,
             hint="The installer may need packages from the internet: does the server's subnet have outbound access?"),
        Step("admin", "administrator of the site", site.has_admin, site.create_admin, 600, hint=hint),
        Step("login", "CLI logged in", session.is_proven, session.log_in, 900, hint=hint),
        Step("ssh-key", "SSH key of the administrator", site.has_key, site.create_key, 600, hint=hint),
        Step("identity", "token of the server's identity", client.has_token, client.no_action, 600,
             hint="The VM needs its system-assigned identity and must be able to reach 169.254.169.254."),
        *_awaited_name(config),
        Step("account", "Azure account", client.has_account, client.create_account, 900, pause=20, hint=ROLE_HINT),
        Step("locker", "locker is created", client.has_locker, client.retry_locker, 1200, hint=ROLE_HINT),
    ]  # fmt: skip
    if config["slurmProject"]:
        steps.append(
            Step("slurm-project", "Slurm project " + config["slurmProject"]["version"], site.has_slurm_project,
                 site.create_slurm_project, 600, hint="The server fetches this release from GitHub itself.")
        )  # fmt: skip
    for project in config["projects"]:
        upload = projects.Upload(project)
        title = "project {}:{} in the locker".format(upload.name, upload.version)
        steps.append(Step("project-" + upload.name, title, upload.is_there, upload.upload, 1200, pause=15,
                          hint=ROLE_HINT))  # fmt: skip
    if config["cluster"]:
        steps += _cluster_steps(config["cluster"], hint)
    steps += [
        Step("independent", "CycleCloud runs on its own", alone.is_reached, alone.restart, 600, hint=hint),
        Step("fingerprints", "fingerprints of the server", fingerprints.collect, client.no_action, 300, only_warn=True,
             hint=hint),
    ]  # fmt: skip
    return steps


def _awaited_name(config: Dict[str, Any]) -> List[Step]:
    """The wait for whoever registers the locker's endpoint, before CycleCloud tries to use it."""
    limit = config["limits"].get("lockerNameSeconds")
    if not limit:
        return []
    hint = (
        "The definition says blob_dns_zone: none, so a policy or an administrator registers the private endpoint. "
        "The address must be the private one of the endpoint; if so, a new role may take ten minutes more. "
        "Then run: sudo cycleforge-bootstrap retry"
    )
    answers = client.locker_answers
    return [Step("locker-name", "the locker answers", answers, client.no_action, float(limit), pause=30, hint=hint)]


def _cluster_steps(wanted: Dict[str, Any], hint: str) -> List[Step]:
    """The steps that make the cluster; a deployment may do without one."""
    steps = [
        Step("template", "cluster template", cluster.has_template, cluster.import_template, 600, hint=hint),
        Step("cluster", "cluster " + wanted["name"], cluster.has_cluster, cluster.import_cluster, 600, hint=hint),
        Step("machine-types", "VM sizes of the cluster", cluster.knows_machine_types, cluster.refresh_machine_types,
             600, pause=15, only_warn=True,
             hint="Is the size offered in this region, and does the subscription have quota for its family?"),
    ]  # fmt: skip
    if wanted["start"]:
        ready = cluster.SchedulerReady()
        steps += [
            Step("start", "cluster started", cluster.was_started, cluster.start_cluster, 600, pause=20, hint=hint),
            Step("scheduler", "scheduler is ready", ready.is_ready, ready.wait, 1800, pause=15, only_warn=True),
        ]
    return steps
