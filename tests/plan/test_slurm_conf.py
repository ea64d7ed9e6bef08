"""The lines that the end of slurm.conf gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator import catalog
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


def test_the_page_names_what_stays_in_which_list() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
    for key, row in catalog.slurm_conf()["lists"]["keys"].items():
        assert f"| `{key}` | {', '.join(f'`{word}`' for word in row['stay'])} |\n" in page


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
