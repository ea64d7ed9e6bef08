"""A cluster of emulated GPU nodes that fall ill: real Slurm, real hooks, the converged health project on every node.

    with running_sick(3) as cluster:
        cluster["n2"].gpus(7)                                # a GPU is lost
        assert cluster["n2"].quick()["verdict"] == "fail"    # the run that the timer starts
        cluster.states()["n2"]                               # NodeState("drained", "CycleForge health: …")
        cluster["n2"].heal()
        cluster["n2"].quick(), cluster["n2"].quick()         # resumed

Slurm, its daemons, networks and processes are those of `tests.bed.cloud`; nodes are static here: n1, n2… in
the partition `hpc`, or in those that `partitions` counts (`{"hpc": 4, "htc": 2}`). It starts in a second, costs
nothing while it waits, and faults on different nodes do not meet: take the fixture `sick` of tests/sick, which is one
cluster for all, restored before each test; break several nodes in one test, and undo what `restore()` does not know.

A node (`SickNode`) is a process whose disk is the folder `/mnt/sick/<name>`: `root` (CYCLEFORGE_ROOT: /proc, /sys,
/var/lib/cycleforge… of the node), `bin` (the fake tools, first in PATH also for jobs and hooks) and `state`
(FAKE_STATE: what the fakes read). `tests.bed.slurm.hardware.Hardware` has what a test breaks, and `heal()`.
slurm_nhc was converged by its own 20-health.sh for a Standard_ND96isr_H100_v5 (`attributes` are further node
attributes; `converge(…)` runs it again with others). Slurm runs the project's prolog.sh and epilog.sh from prolog.d
and epilog.d, with the node's root.

    node.quick()            what cycleforge-health.service does; the result file
    node.health("gate")     health.sh with any words, as root on the node; exit code and output
    node.epilog()           Slurm's epilog by hand: its exit code and output; `hook("prolog")` the other one
    node.deep()             `deep boot` while slurmd is taken for stopped, as the unit of a boot; the result file
    node.result("quick")    the last result file; `node.read(path)` any file below the root
    node.reboot()           power cycle: another boot_id, empty /run and kernel log; then the deep checks (where
                            `deep_s` is not 0) run before slurmd joins. No quick run: call quick()
    node.new_vm()           the same with another VM (vmId, physical host) and an empty disk, converged
    node.run(script)        any Bash text on the node; `node.ok` must succeed
    node.healthagent(3)     one run of healthagent's HealthCheckProgram, while it counts so many errors
    node.fake(tool, text)   another program in place of a tool
    cluster.quick("n1", "n2")   quick runs at the same time; results by name
    cluster.submit(script, "--nodelist=n2"), .finish(job), .job(job), .drain(node, reason), .resume(node), .states()

There is no systemd: no timer runs, every run is one that the test starts. A fake that hangs
(`state("nvidia-smi.hang")`) says to its `timeout` that the time is over, so that nothing waits. A node's mounts are
lines of `root/proc/mounts` (`lose_mount`, `read_only`), and `fill_disk()` fills a real file system below
/var/lib/cycleforge. `tests.bed.sick.table` reads the table of faults: compare with `rows()["gpu-lost"].reason`.
"""

from tests.bed.sick.cluster import SickCluster, running_sick
from tests.bed.sick.node import SickNode

__all__ = ["SickCluster", "SickNode", "running_sick"]
