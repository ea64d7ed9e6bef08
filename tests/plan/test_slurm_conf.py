"""The lines that the end of slurm.conf gets."""

from __future__ import annotations

from tests.bed.plans import plan_from, slurm_of


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
