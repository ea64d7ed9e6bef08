"""Jobs that share a node: the end of one disturbs nobody else."""

from __future__ import annotations

from tests.cluster.cluster import Cluster

DEEP_TOOLS = ("nvbandwidth", "mpirun", "all_reduce_perf", "ib_write_bw", "dcgmi", "numactl")
# Writes its processes and their start times; after the wait they must be the same, and none was stopped or signalled.
STEADY = """
trap 'echo signalled >>signals' TERM INT HUP CONT USR1 USR2
sleep 6 & child=$!
show() { for pid in $$ $child; do cut -d' ' -f 1,22 /proc/$pid/stat; done; }
show >before
for i in 1 2 3 4 5 6 7 8; do sleep 0.5; show >>during; date +%s.%N >>beats; done
kill $child
show_status=$(grep -c State: /proc/$$/status)
echo "end $show_status"
"""


def test_the_epilog_of_one_job_leaves_the_other_alone(cluster: Cluster) -> None:
    node = cluster["node1"]
    folder = cluster.folder / "shared"
    for name in ("before", "during", "beats", "signals"):
        (folder / name).unlink(missing_ok=True)
    options = ("--nodelist=node1", "--ntasks=1", "--mem=1000", "--gpus=4")
    steady = cluster.submit(STEADY, *options)
    cluster.wait("the long job runs", (folder / "beats").exists)
    calls = len(node.calls())
    short = [cluster.submit("true", *options) for _ in range(2)]
    for job in short:
        assert cluster.finish(job)["ExitCode"] == "0:0"
    assert cluster.job(steady)["JobState"] == "RUNNING", "the short jobs ended beside the long one"
    epilog_calls = node.calls()[calls:]
    ended = cluster.finish(steady)
    assert (ended["JobState"], ended["ExitCode"]) == ("COMPLETED", "0:0")
    assert cluster.output(steady) == "end 1\n"
    before = (folder / "before").read_text()
    assert (folder / "during").read_text() == before * 8
    assert not (folder / "signals").exists()
    assert [call for call in epilog_calls if call.startswith("nvidia-smi")], "the epilogs did look"
    assert not [call for call in node.calls()[calls:] if call.startswith(DEEP_TOOLS)]
