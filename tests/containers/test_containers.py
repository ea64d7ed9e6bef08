"""`srun --container-image` for real: Slurm, pyxis and enroot on booted machines that our project has set up.

The machines stand for what there is: node1 for an older slurm project, which has neither pyxis nor enroot, so that both
are built from the blobs of the locker; node2 for cyclecloud-slurm 4.x with both; the login node and the scheduler for
EL 9, where the plug-in is built and its line is missing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator import catalog
from generator.render import jobs
from tests.bed import parts
from tests.bed.containers.cluster import AGENT, PROJECT, SPEC, Cluster, Member, Part, place, running
from tests.bed.containers.sources import blobs
from tests.bed.containers.toolchain import toolchain
from tests.bed.machines.overlay import Machine, overlay_machine, saved
from tests.bed.machines.roots import node_root
from tests.bed.plans import plan_from
from tests.bed.scripts.pyxis import ENROOT_CONF, PLUGIN, PLUGSTACK, PYXIS_CONF, SLURM_PROJECT_CONF
from tests.cloud.readme_commands import readme_text
from tests.jobs.running import job, plan_with

CONTENT = "in the image"
IMAGE = """
set -euo pipefail
cd "$(mktemp -d)"
mkdir -p tree/{bin,etc,proc,sys,dev,tmp,run,root,home,usr}
for program in bash sh cat date id env sleep; do
    path="$(readlink -f "$(type -P "${program}")")"
    cp --parents "${path}" tree
    ldd "${path}" | grep -o '/lib[^ ]*' | xargs cp --parents --dereference --target-directory tree
    [[ -e "tree/bin/${program}" ]] || ln -s "${path}" "tree/bin/${program}"
done
cp /etc/passwd /etc/group tree/etc
touch tree/etc/hosts tree/etc/resolv.conf
printf '%s\\n' "$1" >tree/etc/marker
install -D -m 755 /home/all_reduce_perf_mpi tree/usr/local/bin/all_reduce_perf_mpi
mksquashfs tree /home/image.sqsh -all-root -noappend -quiet -no-progress
"""
ALL_REDUCE = r"""#!/bin/bash
# As nccl-tests prints one process with eight GPUs (NVIDIA/nccl-tests, src/util.cu), where the job's log is mounted.
[[ "$*" == "-b 16G -e 16G -f 2 -g 8 -c 1 -n 20" ]] || exit 3
line="$(cat /etc/marker) NCCL INFO"
line+=" AllReduce: 17179869184 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}"
echo "${line}" >"${NCCL_DEBUG_FILE//%[hp]/0}" || exit 4
[[ -n "${PMIX_RANK}" && "${NCCL_TOPO_FILE}" == /opt/microsoft/* && -e "${NCCL_TOPO_FILE}" ]] || exit 5
for gpu in {0..7}; do echo "#  Rank  ${gpu} Group  0 Pid 1 on node2 device  ${gpu} [000${gpu}:00:00] GPU"; done
echo "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"
echo " 17179869184 1 float sum -1 1 1 231 0 1 1 231 0"
echo "# Out of bounds values : 0 OK"
echo "# Avg bus bandwidth    : 231"
"""
"""The test program of the image."""


@pytest.fixture(scope="module")
def both() -> Iterator[Path]:
    with overlay_machine(node_root(), toolchain()) as machine:
        machine.write(
            "/opt/cycle/jetpack/bin/jetpack", '#!/bin/bash\n[[ "$1" != download ]] || cp "/locker/$4" "$5"\n', 0o755
        )
        for name, content in blobs().items():
            machine.write(f"/locker/{name}", content)
        machine.write("/etc/os-release", 'ID=ubuntu\nVERSION_ID="22.04"\n')
        place(machine)
        machine.ok(f"rm {SPEC}/scripts/[12]*; {AGENT}", PROJECT, SPEC)
        machine.ok("rm -r /mnt/cluster-init /locker /opt/cycle /var/cache/cycleforge")
        with saved(machine) as layer:
            yield layer


@pytest.fixture(scope="module")
def cluster(both: Path) -> Iterator[Cluster]:
    """Running, after the first converge of every machine."""
    parts = {
        "scheduler": Part("scheduler", controller=True, layers=(both,)),
        "login": Part("login", layers=(both,)),
        "node1": Part("execute", layers=(toolchain(),)),
        "node2": Part("execute", layers=(both,)),
    }
    with running(parts, blobs()) as made:
        for name in ("scheduler", "login", "node2"):
            made[name].machine.write("/etc/slurm/plugstack.conf", PLUGSTACK)
        made["node1"].ok("rm -f /etc/slurm/plugstack.conf; rmdir /etc/slurm/plugstack.conf.d")
        made["node2"].machine.write(f"/{PYXIS_CONF}", PLUGIN)
        made["node2"].machine.write(f"/{ENROOT_CONF}", SLURM_PROJECT_CONF)
        (made.folder / "home/all_reduce_perf_mpi").write_text(ALL_REDUCE)
        made["login"].ok(IMAGE, CONTENT)
        for member in made.members.values():
            print(member.name, member.converge(), sep="\n")
        made.start_services()
        yield made


def srun(member: Member, command: str, *, user: str = "root", image: str = "/home/image.sqsh", nodes: int = 2) -> str:
    """Output of a job in a container, one task per node."""
    text = f"srun --quiet -N{nodes} -n{nodes} --container-image={image} {command}"
    result = member.machine.run(text) if user == "root" else member.user(user, text)
    assert result.code == 0, result.output
    return result.output


def test_the_first_job_after_boot_runs_in_its_container(cluster: Cluster) -> None:
    """Once after the first converge, once after a power cut that empties /nvme and /run of both nodes."""
    login = cluster["login"]
    for boot in range(2):
        assert srun(login, "cat /etc/marker").splitlines() == [CONTENT, CONTENT]
        login.user("alice", "ln -sf ../image.sqsh image.sqsh")
        words = srun(login, "bash -c 'cat /etc/marker; id -un; echo $SLURM_NODEID'", user="alice", image="./image.sqsh")
        assert sorted(words.split("\n")) == ["", "0", "1", "alice", "alice", CONTENT, CONTENT]
        cluster.wait_idle()
        if boot == 0:
            for name in cluster.nodes:
                cluster[name].reboot()
            cluster.wait_idle()
            for name in cluster.nodes:
                assert "enroot folders: 6 of 6 created" in cluster[name].journal("cycleforge-enroot")


def test_a_missing_image_is_named_by_pyxis_and_runs_nowhere(cluster: Cluster) -> None:
    result = cluster["login"].user("alice", "srun -N2 -n2 --container-image=./nope.sqsh id")
    assert result.code != 0
    assert "[ERROR] No such file or directory: /home/alice/nope.sqsh" in result.output
    assert "uid=" not in result.output, "the job must not run outside of the container"


def test_why_the_line_is_required(cluster: Cluster) -> None:
    """With an optional plug-in Slurm runs the job outside; the boot unit makes the line required again."""
    node = cluster["node1"]
    node.ok(f"sed -i s/^required/optional/ /{PYXIS_CONF}")
    text = "srun -w node1 -N1 --container-image=./nope.sqsh id"
    assert "uid=2001(alice)" in cluster["login"].user("alice", text).output
    node.ok("systemctl restart cycleforge-enroot")
    result = cluster["login"].user("alice", text)
    assert "uid=" not in result.output
    assert "required plugin spank_pyxis.so" in result.output


def test_a_batch_script_runs_in_its_container(cluster: Cluster) -> None:
    login = cluster["login"]
    login.user("alice", "printf '#!/bin/bash\\ncat /etc/marker\\n' >job.sh")
    result = login.user(
        "alice", "sbatch --quiet --wait -o job.out --container-image=/home/image.sqsh job.sh; cat job.out"
    )
    assert CONTENT in result.output.splitlines()


def test_the_nccl_job_runs_in_its_container(cluster: Cluster) -> None:
    """As an ordinary user, with PMIx: the image's program, the node's topology file, the log in the job's results."""
    array = parts.node_array("hpc", catalog.vm_size("Standard_ND96amsr_A100_v4"), max_nodes=2)
    folder = cluster.folder / "home/alice"
    for path, file in jobs.render(plan_with(job("nccl-allreduce", 1), array)).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    cluster["login"].ok("chown -R alice:people /home/alice/jobs")
    node, login = cluster["node2"], cluster["login"]
    node.machine.write("/opt/microsoft/ndv4-topo.xml", "<system/>")
    node.machine.write("/usr/bin/nvidia-smi", '#!/bin/bash\nprintf "GPU %d: A100\\n" {0..7}\n', 0o755)
    given = "SET_CONTAINER=/home/image.sqsh,SET_TASKS_PER_NODE=1,SET_CPUS_PER_TASK=1,SET_CPU_BIND=none"
    run = f"sbatch --quiet --wait -w node2 -N 1 -n 1 --gpus-per-node=8 -o job.out --export=ALL,{given} run.sh"
    done = login.user("alice", f"cd jobs/nccl-allreduce; {run}; echo status $?; cat job.out; cat results/*/run.json")
    assert "status 0\n" in done.output, f"{done.output}\n{node.journal('slurmd')[-3000:]}"
    assert '"detail": "algorithm RING, fabric unknown, 17179869184 bytes, 8 ranks on 1 nodes; published' in done.output


def test_the_start_times_job_copies_and_starts_an_image(cluster: Cluster) -> None:
    """As an ordinary user on both nodes: the file goes to the local disks, and pyxis starts it twice from there."""
    array = parts.node_array("hpc", catalog.vm_size("Standard_ND96amsr_A100_v4"), max_nodes=2)
    folder = cluster.folder / "home/alice"
    for path, file in jobs.render(plan_with(job("start-times", 2), array)).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    cluster["login"].ok("chown -R alice:people /home/alice/jobs")
    login = cluster["login"]
    # Importing takes a registry, and a test has none; who has the file needs no import.
    given = "SET_IMAGE=/home/image.sqsh,SET_STAGE_PATH=/home/alice/stage,SET_NVME_MOUNT=/nvme"
    for name in cluster.nodes:
        cluster[name].ok("chmod 1777 /nvme")
    run = f"sbatch --quiet --wait -N 2 -n 2 -o job.out '--export=ALL,{given}' run.sh"
    done = login.user("alice", f"cd jobs/start-times; {run}; cat job.out results/*/*.log")
    (written,) = (folder / "jobs/start-times/results").glob("*/run.json")
    record = json.loads(written.read_text())
    found = {(check["check"], *check["nodes"]): check["verdict"] for check in record["checks"]}
    # With two nodes there is no median, and the nodes were running before the job.
    starts = ("copy", "first start", "second start")
    assert found == {("boot",): "no_baseline"} | {
        (name, node): "no_baseline" for name in starts for node in cluster.nodes
    }, done.output
    seconds = [check["value"] for check in record["checks"] if check["check"].endswith("start")]
    assert all(value > 0 for value in seconds), record["checks"]
    assert "not tested: import, because IMAGE is a file" in record["summary"]
    assert not list((cluster.folder / "home/alice/stage").rglob("*.sqsh"))
    missing = login.user(
        "alice", f"cd jobs/start-times; rm -r results; {run.replace('image.sqsh', 'nope.sqsh')}; cat results/*/verdict"
    )
    assert missing.output.endswith("error\n"), missing.output


def test_readme_gives_a_shell_in_a_container(cluster: Cluster) -> None:
    """The line of the README with an image that is there, on a terminal as `script` makes one."""
    plan = plan_from("slurm: {partitions: [{name: hpc, vm_size: Standard_D4as_v5, max_nodes: 2}]}")
    (line,) = re.findall(r"^srun .*--container-image.* --pty bash$", readme_text(plan), re.MULTILINE)
    command = shlex.quote(line.replace("--container-image=ubuntu:24.04", "--container-image=/home/image.sqsh"))
    typed = f"printf 'cat /etc/marker; id -un\\nexit 7\\n' | script --quiet --return --command {command} /dev/null"
    result = cluster["login"].user("alice", typed)
    assert result.code == 7, result.output
    said = [line.strip() for line in result.output.splitlines()]
    assert CONTENT in said, result.output
    assert "alice" in said, result.output


def test_two_users_of_one_group_can_both_import(cluster: Cluster) -> None:
    """The slurm project's cache per group belongs to the first of them, with mode 700."""
    node = cluster["node2"]
    write = 'touch "$(enroot info | sed -n s/.*ENROOT_CACHE_PATH=//p)/layer"'
    assert [node.user(name, write).code for name in ("alice", "bob")] == [0, 0]
    group = "ENROOT_CACHE_PATH=/nvme/enroot/enroot-cache/group-2000"
    assert [node.user(name, f"export {group}; {write}").code for name in ("alice", "bob")] == [0, 1]


def test_users_cannot_take_anothers_place_in_the_runtime_folder(cluster: Cluster) -> None:
    node = cluster["node2"]
    assert srun(cluster["login"], "cat /etc/marker", user="bob").splitlines() == [CONTENT, CONTENT]
    assert "Permission denied" in node.user("alice", "mkdir /nvme/enroot/enroot-runtime/4711").output
    assert node.ok("stat -c '%U %a' /nvme/enroot/enroot-runtime/2002").split() == ["bob", "700"]


def test_the_sites_credentials_are_for_those_who_have_none(cluster: Cluster) -> None:
    node = cluster["node2"]
    (cluster.folder / "sched/credentials").write_text("machine registry.example login me password x\n")
    node.attribute("cycleforge.enroot.credentials", "/sched/credentials")
    asked = 'cat "$(enroot info | sed -n s/.*ENROOT_CONFIG_PATH=//p)/.credentials"'
    try:
        node.converge()
        assert node.user("bob", asked).output == "machine registry.example login me password x\n"
        own = f"mkdir -p .config/enroot; echo mine >.config/enroot/.credentials; {asked}; rm -r .config"
        assert node.user("alice", own).output == "mine\n"
        assert srun(cluster["login"], "cat /etc/marker", user="bob").splitlines() == [CONTENT, CONTENT]
    finally:
        (node.files / "attributes/cycleforge.enroot.credentials").unlink()
        node.converge()
    assert "credentials" not in node.user("bob", asked).output.replace("/.credentials", "")


def test_a_node_without_enroot_fails_the_job_and_says_so_at_boot(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.ok("mv /usr/bin/enroot /root/enroot")
    try:
        result = cluster["login"].user("alice", "srun -w node1 -N1 --container-image=/home/image.sqsh id")
        assert result.code != 0
        assert "uid=" not in result.output
        node.ok("systemctl restart cycleforge-enroot")
        assert "enroot is not installed: srun --container-image fails on this node" in node.journal("cycleforge-enroot")
    finally:
        node.ok("mv /root/enroot /usr/bin/enroot; systemctl restart cycleforge-enroot")


def test_the_check_finds_what_really_stops_containers(both: Path) -> None:
    """Below another root the kernel refuses user namespaces to ordinary users, and enroot refuses a broken file."""
    with overlay_machine(node_root(), both) as machine:
        place(machine)
        machine.write(f"/{ENROOT_CONF}", SLURM_PROJECT_CONF + "ENROOT_X $(\n")
        agent = f"export SYSTEMD_OFFLINE=1; rm {SPEC}/scripts/05*; {AGENT}"
        output = machine.ok(agent, PROJECT, SPEC)
    assert "ordinary users cannot start containers (enroot-nsenter: failed to create user namespace" in output
    assert "'enroot version' failed: Invalid configuration file: /etc/enroot/enroot.conf" in output


@pytest.mark.parametrize("name", ["scheduler", "login", "node1", "node2"])
def test_a_second_converge_changes_nothing(cluster: Cluster, name: str) -> None:
    member = cluster[name]
    before = changes_of(member.machine)
    member.converge()
    assert changes_of(member.machine) == before


def changes_of(machine: Machine) -> dict[str, object]:
    """What the project may have written; systemd and the journal write elsewhere all the time."""
    places = (
        "etc/cycleforge",
        "etc/enroot",
        "etc/slurm",
        "etc/systemd",
        "opt",
        "usr",
        "var/lib/cycleforge",
        "var/cache",
    )
    return {path: entry for path, entry in machine.changes().items() if path.startswith(places)}
