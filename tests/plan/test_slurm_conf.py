"""The lines that the end of slurm.conf gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator import catalog
from generator.definition.model.slurm import Partition, Slurm
from generator.plan.slurm_conf import slurm_conf_lines
from tests.bed.plans import plan_from, slurm_of
from tests.rules.annotations import findings_of


def lines(*changes: str) -> dict[str, str]:
    """The lines by key; a key that occurs twice fails the test, because Slurm would use only the later one."""
    found = [line.split("=", 1) for line in slurm_of(plan_from(*changes)).additional_config]
    result = {key.lower(): value for key, value in found}
    assert len(result) == len(found)
    return result


def settings(**values: str) -> str:
    body = ", ".join(f'{key}: "{value}"' for key, value in values.items())
    return f"slurm: {{settings: {{{body}}}}}"


def test_the_mpi_plugin_is_the_one_that_every_node_can_load() -> None:
    """cyclecloud-slurm's own value is `none`; srun loads the default plugin on scheduler and login nodes, too."""
    assert "mpidefault" not in lines()
    assert lines(settings(MpiDefault="pmix"))["mpidefault"] == "pmix"


def test_figures_of_jobs_are_gathered_only_where_something_stores_them() -> None:
    assert "jobacctgathertype" not in lines()
    assert lines("slurm: {accounting: {type: new}}")["jobacctgathertype"] == "jobacct_gather/cgroup"


def test_a_jobs_failed_prologs_are_bounded() -> None:
    assert lines()["maxbatchrequeue"] == "3"
    assert lines(settings(MaxBatchRequeue="1"))["maxbatchrequeue"] == "1"


def test_a_list_keeps_what_others_rely_on() -> None:
    assert lines()["schedulerparameters"] == "max_switch_wait=24:00:00,nohold_on_prolog_fail"
    merged = lines(settings(schedulerparameters="bf_interval=60, Max_Switch_Wait=1:00:00 ,defer"))
    assert merged["schedulerparameters"] == "Max_Switch_Wait=1:00:00,nohold_on_prolog_fail,bf_interval=60,defer"


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("GresTypes", "mps,shard", "gpu,mps,shard"),
        ("PrivateData", "jobs", "cloud,jobs"),
        ("PrologFlags", "X11,alloc", "alloc,X11"),
        ("ReconfigFlags", "KeepPartState", "KeepPowerSaveSettings,KeepPartState"),
        ("SlurmctldParameters", "enable_configless,Idle_On_Node_Suspend", "Idle_On_Node_Suspend,enable_configless"),
    ],
)
def test_every_list_of_the_template_keeps_its_parameters(key: str, given: str, expected: str) -> None:
    assert key.lower() not in lines()
    assert lines(settings(**{key: given}))[key.lower()] == expected


HEALTH = "slurm: {partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2}]}"


def test_power_saving_keeps_drained_nodes_where_health_checks_drain() -> None:
    assert "suspendexcstates" not in lines()
    assert lines(HEALTH)["suspendexcstates"] == "DRAIN"


def test_what_the_definition_keeps_is_added_to_the_drained_nodes() -> None:
    own = settings(suspendexcstates="PLANNED, drain")
    assert lines(HEALTH, own)["suspendexcstates"] == "drain,PLANNED"
    # Nobody drains here but administrators: the list is theirs.
    assert lines(settings(SuspendExcStates="PLANNED"))["suspendexcstates"] == "PLANNED"


def test_a_list_of_power_saving_keeps_what_clears_a_deleted_node() -> None:
    """Both are needed: the one keeps a drained VM, the other makes its name free once it is handed back."""
    found = lines(HEALTH, settings(SlurmctldParameters="idle_on_node_suspend"))
    assert found["slurmctldparameters"] == "idle_on_node_suspend"
    assert found["suspendexcstates"] == "DRAIN"


@pytest.mark.parametrize(
    ("version", "expected"),
    [("22.05.8", False), ("23.02.0", True), ("25.11.5", True), ("24.05.4-2", True), ("of-our-own", True)],
)
def test_keys_that_a_slurm_does_not_know_yet_are_left_out(version: str, expected: bool) -> None:
    """slurmctld does not start with them: tests/cloud/test_slurm_keys.py asks it."""
    slurm = Slurm(partitions=[Partition(name="gpu", max_nodes=1)])
    found = {line.partition("=")[0] for line in slurm_conf_lines(slurm, version, keeps_drained=True)}
    assert ({"MaxBatchRequeue", "SuspendExcStates"} <= found) is expected
    assert ({"MaxBatchRequeue", "SuspendExcStates"}.isdisjoint(found)) is not expected


def test_the_page_names_what_stays_in_which_list() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
    for key, row in catalog.slurm_conf().lists.keys.items():
        assert f"| `{key}` | {', '.join(f'`{word}`' for word in row.stay)} |\n" in page


def test_values_that_work_are_no_problem() -> None:
    """Each value of another form than the ones that the rules refuse, and lists that add to cyclecloud-slurm's."""
    text = """\
name: case
location: southcentralus
slurm:
  settings:
    CliFilterParameters: a
    GresTypes: mps
    JobRequeue: 1
    KillWait: 60
    PrivateData: jobs
    ProctrackType: cgroup
    PrologFlags: contain,X11
    ReconfigFlags: keeppowersavesettings
    SchedulerParameters: bf_interval=60,bf_continue
    SelectType: select/cons_tres
    SelectTypeParameters: CR_CPU_Memory,CR_Pack_Nodes
    SlurmctldParameters: enable_configless
    SuspendExcStates: DRAIN
    TaskPlugin: affinity,cgroup
  partitions: [{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}]
"""
    assert findings_of(text) == []
    # ... and with another SelectType it is one, so that the text is read at all.
    assert [found.rule_id for found in findings_of(text.replace("cons_tres", "linear"))] == ["E0922"]


def test_pmix_may_be_the_default_where_every_role_has_it() -> None:
    roles = "projects: [misc_ndv4]"
    text = f"""\
name: case
location: southcentralus
slurm:
  settings: {{MpiDefault: pmix}}
  scheduler: {{{roles}}}
  login: {{{roles}}}
  partitions: [{{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2, {roles}}}]
"""
    assert [found.rule_id for found in findings_of(text) if found.rule_id == "W0912"] == []
    assert "W0912" in [found.rule_id for found in findings_of(text.replace(f"login: {{{roles}}}", "login: {}"))]
