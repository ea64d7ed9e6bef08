"""Jobs that share a node: the end of one disturbs nobody else."""

from __future__ import annotations

from tests.bed.slurm.cluster import Cluster

DEEP_TOOLS = ("nvbandwidth", "mpirun", "all_reduce_perf", "ib_write_bw", "dcgmi", "numactl")
# Writes down its processes with their start times and every signal, until the test lets it end.
STEADY = """
trap 'echo signalled >>signals' TERM INT HUP CONT USR1 USR2
sleep 100 & child=$!
show() { for pid in $$ $child; do cut -d' ' -f 1,22 /proc/$pid/stat; done; }
show >before
for i in {1..300}; do show >>during; [[ ! -e release ]] || break; sleep 0.2; done
kill $child
echo end
"""


def test_the_epilog_of_one_job_leaves_the_other_alone(cluster: Cluster) -> None:
    node = cluster["node1"]
    folder = cluster.folder / "shared"
    options = ("--nodelist=node1", "--ntasks=1", "--mem=1000", "--gpus=4")
    steady = cluster.submit(STEADY, *options)
    cluster.wait("the long job runs", (folder / "during").exists)
    calls = len(node.calls())
    for _ in range(2):
        assert cluster.finish(cluster.submit("true", *options))["ExitCode"] == "0:0"
    assert cluster.job(steady)["JobState"] == "RUNNING"
    looks = node.calls()[calls:]
    (folder / "release").touch()
    ended = cluster.finish(steady)
    assert (ended["JobState"], ended["ExitCode"], cluster.output(steady)) == ("COMPLETED", "0:0", "end\n")
    before, during = (folder / "before").read_text(), (folder / "during").read_text()
    assert during == before * (len(during) // len(before))
    assert not (folder / "signals").exists()
    assert [call for call in looks if call.startswith("nvidia-smi")], "the epilogs did look"
    assert not [call for call in node.calls()[calls:] if call.startswith(DEEP_TOOLS)]
