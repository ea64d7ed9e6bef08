"""Jobs run on healthy nodes, and what the hooks of every job cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bed.slurm.cluster import Cluster
from tests.bed.slurm.engine import missing_source
from tests.bed.slurm.stamps import ratio, seconds, stamped_hooks, summary

PROLOG_LIMIT, EPILOG_LIMIT = 5, 60
"""Times an empty script, by the medians: in the prolog ours tries a lock and reads a file, in the epilog it is
a whole quick pass."""


def test_the_engine_is_nhc_where_its_source_is(cluster: Cluster, figure: Callable[[str], None]) -> None:
    engines = {name: node.quick()["engine"] for name, node in cluster.nodes.items()}
    figure(f"engine {', '.join(sorted(set(engines.values())))}")
    if missing_source():
        assert set(engines.values()) == {"built in"}
        pytest.skip(f"the built-in runner was used in every test here, not LBNL NHC: {missing_source()}")
    assert all(engine.startswith("nhc 1.4.3") for engine in engines.values()), engines


def test_jobs_run_with_the_hooks_and_the_hooks_are_quick(cluster: Cluster, figure: Callable[[str], None]) -> None:
    with stamped_hooks(cluster):
        wide = cluster.submit("srun hostname", "--nodes=3", "--ntasks-per-node=1", "--gpus-per-node=8")
        array = cluster.submit(
            "echo $SLURM_ARRAY_TASK_ID $CUDA_VISIBLE_DEVICES", "--array=0-5", "--gpus=8", "--output=/shared/%A_%a.out"
        )
        assert cluster.finish(wide)["ExitCode"] == "0:0"
        cluster.wait("the array ends", lambda: cluster.slurm("squeue", "-h", "-j", array) == "")
    hosts = sorted(cluster.output(wide).split())
    assert hosts == sorted(cluster.nodes)
    tasks = [cluster.output(f"{array}_{task}") for task in range(6)]
    assert tasks == [f"{task} 0,1,2,3,4,5,6,7\n" for task in range(6)]
    times = {hook: [seconds(node, hook) for node in cluster.nodes.values()] for hook in ("prolog", "epilog")}
    for hook, limit in (("prolog", PROLOG_LIMIT), ("epilog", EPILOG_LIMIT)):
        assert all(wide in jobs for jobs in times[hook])
        rows = [row for jobs in times[hook] for row in jobs.values()]
        assert len(rows) == 3 + 6
        figure(summary(hook, rows))
        assert ratio(rows) <= limit, summary(hook, rows)
    cluster.all_idle()


def test_results_of_all_nodes_lie_in_the_shared_folder(cluster: Cluster) -> None:
    folder = cluster.folder / "sched/cycleforge-health"
    folder.mkdir(exist_ok=True)
    for node in cluster.nodes.values():
        node.quick()
    assert {path.name for path in folder.iterdir()} >= {f"{name}.quick.json" for name in cluster.nodes}
