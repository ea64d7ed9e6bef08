"""`prove.sh` on real Slurm: a bad node is found and drained, a killed run goes on, and users who may not drain.

The jobs are the smoke test as it is rendered, and one that leaves the record that a test gives it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from generator.render import jobs
from generator.render import prove as render_prove
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.machines.overlay import Result
from tests.bed.plans import plan_from, slurm_of
from tests.bed.slurm.client import NodeState
from tests.cloud.readme_commands import readme_text
from tests.prove.folder import FAKES, gate, write, write_jobs

PLAN = plan_from(
    "slurm: {autoscale: false, partitions: [{name: gpu, vm_size: Standard_D4as_v5, max_nodes: 3}]}\njobs: null"
)
BAD, GOOD, OTHER = NODES = ("emu-gpu-1", "emu-gpu-2", "emu-gpu-3")
USER = 1
"""`daemon`: slurmd starts no job of a user that the node does not know."""
HEALTH = f"""#!/bin/bash
cd "$SLURM_SUBMIT_DIR"
. /mnt/shared/job.sh
export SLURM_JOB_NODELIST="$(scontrol show hostnames | paste -sd , -)"
# A test holds the job here.
while [[ -e /mnt/shared/hold ]]; do sleep 0.1; done
blames {BAD}
[[ $state != FAILED ]] || exit 1
"""
REASON = "CycleForge prove: health: gpu_count 7 GPUs, expected 8"
PROVE = "cd /mnt/shared/jobs; export SET_SHARED_DIR=/mnt/shared PROVE_POLL_S=0.3 PROVE_SETTLE_S=1; "


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    with running_cloud([Pool("gpu", 3, default=True)], slurm_of(PLAN).additional_config) as cloud:
        cloud.start(*NODES)
        for name in NODES:
            cloud.wait_state(name, "idle")
        yield cloud


@pytest.fixture
def cloud(running: Cloud) -> Cloud:
    """With all nodes, and a fresh jobs folder that everybody may write to."""
    running.wait("no jobs", lambda: running.slurm("squeue", "-h") == "")
    running.wait("all nodes are idle", running.all_resumed)
    shutil.rmtree(running.shared / "jobs", ignore_errors=True)
    shutil.copy(FAKES / "job.sh", running.shared)
    gates = [gate("smoke", gpus_per_node=0, minutes=30), gate("health", gpus_per_node=0, minutes=30)]
    write_jobs(running.shared / "jobs", gates, {"health": HEALTH})
    write(running.shared, {path: file for path, file in jobs.render(PLAN).items() if path.parts[1] in ("smoke", "lib")})
    running.ok(f"chown -R {USER} /mnt/shared/jobs; chmod -R a+rwX /mnt/shared/jobs")
    return running


def prove(cloud: Cloud, words: str, *, user: int = 0) -> Result:
    done = cloud.run(f"{PROVE} ./prove.sh {words}", timeout_s=300, user=user)
    print(done.output)
    return done


def test_the_rendered_quick_level_runs_to_its_end(cloud: Cloud) -> None:
    """On nodes without GPUs and without pyxis: whatever cannot be proven there says so."""
    shutil.rmtree(cloud.shared / "jobs")
    write(cloud.shared, jobs.render(PLAN) | render_prove.render(PLAN))
    # It measures for minutes, and has tests of its own.
    done = prove(cloud, "quick --yes --skip node")
    assert done.code in (2, 4)
    rows = done.output.rpartition("\ngate ")[2]
    assert re.search(r"^smoke +pass +3 of 3 nodes answered$", rows, re.MULTILINE)
    assert re.search(r"^health +not proven +node-health needs whole GPUs", rows, re.MULTILINE)
    assert re.search(r"^node +skipped +left out by --skip$", rows, re.MULTILINE)
    assert re.search(r"^container +not proven .*no pyxis", rows, re.MULTILINE)
    assert "No node has to be replaced." in rows


def test_the_smoke_test_of_another_vm_size_runs_on_a_partition_of_one(cloud: Cloud) -> None:
    """Its batch file names a partition and a VM size that this cluster lacks; what prove.sh says replaces both."""
    htc = "{name: htc, vm_sizes: [Standard_D2as_v5, Standard_D4as_v5], max_nodes: 8, default: true}"
    plan = plan_from(
        f"slurm: {{partitions: [{{name: gpu, vm_size: Standard_D64ds_v5, max_nodes: 3}}, {htc}]}}\njobs: null"
    )
    shutil.rmtree(cloud.shared / "jobs")
    write(cloud.shared, jobs.render(plan) | render_prove.render(plan))
    batch = (cloud.shared / "jobs/smoke/job.sbatch").read_text()
    assert "#SBATCH --constraint=Standard_D2as_v5\n" in batch
    done = prove(cloud, "quick --yes --partition gpu --skip node,health --skip collective,container")
    assert done.code == 0
    assert re.search(r"^smoke +pass +3 of 3 nodes answered$", done.output, re.MULTILINE)


def test_a_bad_node_is_drained_and_the_rest_is_proven(cloud: Cloud) -> None:
    done = prove(cloud, "quick --yes")
    assert done.code == 1
    assert cloud.states()[BAD] == NodeState("drained", REASON)
    assert f"{BAD}, physical host host-of-{BAD}: health: gpu_count 7 GPUs, expected 8 (drained)" in done.output
    assert f"failed with {BAD}: 1 node is bad [gpu_count]; then pass on the other 2 nodes: all well" in done.output
    assert re.search(r"^smoke +pass +3 of 3 nodes answered$", done.output, re.MULTILINE)
    again = prove(cloud, "quick --yes")
    assert again.code == 0
    assert f"Left out, because no job starts there: {BAD} (drained: {REASON})" in again.output


def test_a_killed_run_finds_its_job_after_a_restart_of_slurm(cloud: Cloud) -> None:
    hold = cloud.shared / "hold"
    hold.touch()
    cloud.ok(f"{PROVE} ./prove.sh --yes >/mnt/shared/first.log 2>&1 & echo $! >/mnt/shared/pid")
    held = "health: job"
    cloud.wait("the second gate's job runs", lambda: held in (cloud.shared / "first.log").read_text())
    told = prove(cloud, "--yes")
    assert told.code == 2
    assert "is proving from this folder already" in told.output
    cloud.ok('kill -KILL "$(</mnt/shared/pid)"')
    cloud.stop_controller()
    cloud.start_controller()
    hold.unlink()
    done = prove(cloud, "")
    assert done.code == 1
    assert "health: goes on with job" in done.output
    names = cloud.slurm("squeue", "-h", "--states=all", "--format=%j").split()
    run = done.output.rpartition("/prove-")[2].partition("/prove.json")[0]
    assert sorted(name.partition(run)[2] for name in names if run in name) == [
        "-01-smoke-1",
        "-02-health-1",
        "-02-health-2",
    ]


def test_a_user_who_may_not_drain_leaves_the_node_out_of_the_run(cloud: Cloud) -> None:
    done = prove(cloud, "--yes", user=USER)
    assert done.code == 1
    assert cloud.states()[BAD].state == "idle"
    assert "not drained, this account may not" in done.output
    assert f"failed with {BAD}: 1 node is bad [gpu_count]; then pass on the other 2 nodes" in done.output


def test_readme_gives_a_shell_on_a_node(cloud: Cloud) -> None:
    """With a terminal on both sides, as `script` makes one."""
    (line,) = re.findall(r"^srun .*--pty bash$", readme_text(PLAN), re.MULTILINE)[:1]
    assert "--container-image" not in line
    terminal = 'script --quiet --return --command "$1" /dev/null'
    said = cloud.ok(rf'printf "tty; hostname\nexit 7\n" | {terminal} || echo "ended with $?"', line)
    assert "/dev/pts/" in said
    assert set(NODES) & set(said.split())
    assert "ended with 7" in said
