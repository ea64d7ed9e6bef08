"""A topology replaces the one in use only if it holds what it must and Slurm takes it: topology.sh on real Slurm."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from generator.files import assets
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.machines.overlay import Result

NODES = tuple(f"emu-htc-{number}" for number in range(1, 4))
GOOD = f"SwitchName=pg0 Nodes={NODES[0]},{NODES[1]}\nSwitchName=pg1 Nodes={NODES[2]}\n"
OTHER = f"SwitchName=pg0 Nodes={NODES[0]}\nSwitchName=pg1 Nodes={NODES[1]},{NODES[2]}\n"
SITE = "# a line of the site\n# CycleForge topology: begin\nTopologyPlugin=topology/tree\n# CycleForge topology: end\n"
AZSLURM = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >>/mnt/shared/asked
while (($#)); do
    if [[ "$1" == -o ]]; then out="$2"; fi
    shift
done
if [[ -e /mnt/shared/empties ]]; then : >"${out}"; fi
if [[ -e /mnt/shared/answer ]]; then cat /mnt/shared/answer >"${out}"; fi
exit "$(</mnt/shared/code)"
"""
"""As 4.0.9 behaves: by scale set it opens the file for writing before it asks for the nodes, so that an error leaves it
empty (slurmcc/cli.py, topology), and writes nothing at all where no scale set has nodes (_generate_topology); by NVLink
domain it ends with 1 before it opens the file (slurmcc/topology.py, get_hostnames)."""
SCONTROL = """\
#!/usr/bin/env bash
if [[ "$1" == --version ]]; then echo "slurm 25.11.5"; else exec /usr/bin/scontrol "$@"; fi
"""


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    files = {"site_specific.conf": SITE, "topology.conf": GOOD}
    with running_cloud([Pool("htc", len(NODES), default=True)], ["SuspendTime=600000"], files) as cloud:
        for source in (
            "projects/misc_ubuntu/specs/default/cluster-init/files/topology.sh",
            "projects/_lib/cycleforge.sh",
        ):
            shutil.copy(assets.root() / source, cloud.shared)
        (cloud.shared / "bin").mkdir()
        for name, text in (("azslurm", AZSLURM), ("scontrol-25.11", SCONTROL)):
            (cloud.shared / "bin" / name).write_text(text)
            (cloud.shared / "bin" / name).chmod(0o755)
        yield cloud


@pytest.fixture
def cloud(running: Cloud) -> Cloud:
    for name in ("answer", "empties", "asked"):
        (running.shared / name).unlink(missing_ok=True)
    (running.shared / "code").write_text("0")
    running.configure(topology=GOOD, site_specific=SITE)
    return running


def topology_sh(cloud: Cloud, *words: str) -> Result:
    command = 'PATH="/mnt/shared/bin:${PATH}" CYCLEFORGE_POLL_S=0.2 bash /mnt/shared/topology.sh "$@"'
    return cloud.run(command, *words)


def answers(cloud: Cloud, text: str | None, *, code: int = 0, empties: bool = False) -> None:
    (cloud.shared / "code").write_text(str(code))
    if text is not None:
        (cloud.shared / "answer").write_text(text)
    if empties:
        (cloud.shared / "empties").touch()


def files(cloud: Cloud) -> tuple[str, str]:
    etc = cloud.folder / "etc"
    return (etc / "topology.conf").read_text(), (etc / "site_specific.conf").read_text()


def shown(cloud: Cloud, node: str) -> str:
    """Slurm's own answer. Up to 24.11 it takes a bare name; newer ones take that for a topology's own."""
    return cloud.slurm("scontrol", "show", "topology", node if cloud.slurm_release <= (24, 11) else f"node={node}")


def test_a_good_answer_is_what_slurm_shows_and_the_file_before_is_kept(cloud: Cloud) -> None:
    assert "pg0" in shown(cloud, NODES[1])
    answers(cloud, OTHER)
    dry = topology_sh(cloud, "update", "tree", "--dry-run")
    assert dry.code == 0, dry.output
    assert OTHER in dry.output
    assert files(cloud) == (GOOD, SITE)
    done = topology_sh(cloud, "update", "tree")
    assert done.code == 0, done.output
    assert files(cloud) == (OTHER, SITE)
    assert "pg1" in shown(cloud, NODES[1])
    kept = [path.read_text() for path in (cloud.folder / "etc").glob("topology.conf.*")]
    assert kept == [GOOD]
    assert (cloud.shared / "asked").read_text().startswith("topology -v -o /run/cycleforge/topology.conf.new\n")
    again = topology_sh(cloud, "update", "tree")
    assert "up to date" in again.output
    assert len(list((cloud.folder / "etc").glob("topology.conf.*"))) == 1


@pytest.mark.parametrize(
    ("text", "code", "empties", "says"),
    [
        (None, 0, True, "it holds no SwitchName with nodes"),
        ("\n", 0, False, "it holds no SwitchName with nodes"),
        (None, 1, True, "azslurm topology -v failed"),
        (None, 1, False, "azslurm topology -v failed"),
        (None, 0, False, "azslurm wrote nothing"),
        (GOOD, 1, False, "azslurm topology -v failed"),
        (f"SwitchName=pg0 Nodes={NODES[0]},{NODES[1]}\n", 0, False, f"missing in it: {NODES[2]}"),
        (GOOD.replace(NODES[2], "emu-htc-9"), 0, False, "has the node emu-htc-9, which Slurm does not"),
        (GOOD.replace(NODES[2], NODES[0]), 0, False, f"node {NODES[0]} is in pg0 and in pg1"),
        (GOOD.replace("pg1", "pg0"), 0, False, "SwitchName pg0 occurs twice"),
        ("Traceback (most recent call last):\n", 0, False, "is not one of a topology of the kind tree"),
    ],
)
def test_no_other_answer_replaces_a_good_file(
    cloud: Cloud, text: str | None, code: int, empties: bool, says: str
) -> None:
    answers(cloud, text, code=code, empties=empties)
    done = topology_sh(cloud, "update", "tree")
    assert done.code == 1, done.output
    assert says in done.output
    assert files(cloud) == (GOOD, SITE)
    assert "pg0" in shown(cloud, NODES[1])


def test_a_node_that_runs_must_be_in_the_answer_unless_fewer_will_do(cloud: Cloud) -> None:
    cloud.slurm("scontrol", "update", f"NodeName={NODES[2]}", "State=POWER_UP")
    cloud.wait("it is up", lambda: cloud.flags(NODES[2]) == {"IDLE", "CLOUD"})
    answers(cloud, f"SwitchName=pg0 Nodes={NODES[0]},{NODES[1]}\n")
    done = topology_sh(cloud, "update", "tree", "--partition", "htc")
    assert done.code == 1
    assert f"nodes that run are missing in it: {NODES[2]}" in done.output
    fewer = topology_sh(cloud, "update", "tree", "--partition", "htc", "--fewer", "--partition", "htc")
    assert fewer.code == 0, fewer.output
    assert " -p htc,htc" in (cloud.shared / "asked").read_text(), "what is repeated adds up"
    assert NODES[2] not in files(cloud)[0]


def update_blocks(cloud: Cloud, sizes: str) -> Result:
    answers(cloud, f"BlockName=block_a_1 Nodes={','.join(NODES)}\nBlockSizes={sizes}\n")
    cloud.ok("sed -i 's/SETTLE_S=30/SETTLE_S=1/' /mnt/shared/topology.sh")
    return topology_sh(cloud, "update", "block", "--partition", "htc")


def test_blocks_are_in_use_at_once_where_slurm_has_them(cloud: Cloud) -> None:
    """22.05 has no block topology, and reads the name of its plugin only when it starts; 23.11 and newer do both."""
    done = update_blocks(cloud, "1")
    if cloud.slurm_release < (23, 11):
        assert done.code == 1, done.output
        assert files(cloud) == (GOOD, SITE)
        back_up(cloud)
    else:
        assert done.code == 0, done.output
        assert "BlockName=block_a_1" in shown(cloud, NODES[0])


def back_up(cloud: Cloud) -> None:
    """22.05 may end with a plugin that it does not have."""
    if "DOWN" in cloud.run("scontrol ping").output:
        cloud.start_controller()


def test_what_slurm_does_not_take_is_taken_back(cloud: Cloud) -> None:
    """No Slurm makes blocks of three and then of five: each size has to be a power of two times the first."""
    done = update_blocks(cloud, "3,5")
    assert done.code == 1, done.output
    assert "both files are as before" in done.output
    assert files(cloud) == (GOOD, SITE)
    back_up(cloud)
    assert "pg0" in shown(cloud, NODES[1])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"# Total number of blocks = 1\nBlockName=block_7a_1 Nodes={','.join(NODES)}\nBlockSizes=18\n", None),
        (f"#BlockName=block_7a_1 Nodes={','.join(NODES)}\nBlockSizes=18\n", "it holds no BlockName with nodes"),
        (f"BlockName=block_unknown Nodes={','.join(NODES)}\nBlockSizes=1\n", "have not joined an NVLink domain"),
        (
            f"BlockName=block_00000000-0000-0000-0000-000000000000_0 Nodes={','.join(NODES)}\nBlockSizes=1\n",
            "have not joined an NVLink domain",
        ),
        (GOOD, "is not one of a topology of the kind block"),
    ],
)
def test_blocks_are_checked_before_slurm_sees_them(cloud: Cloud, text: str, says: str | None) -> None:
    (cloud.shared / "blocks.conf").write_text(text)
    done = topology_sh(cloud, "check", "block", "/mnt/shared/blocks.conf", "--fewer")
    assert done.code == (1 if says else 0), done.output
    assert (says or "may be used: 3 nodes in 1") in done.output


@pytest.mark.parametrize("version", ["own", "25.11"])
def test_a_parameter_is_written_only_for_a_slurm_that_knows_it(cloud: Cloud, version: str) -> None:
    knows_it = version == "25.11" or cloud.slurm_release >= (25, 11)
    own = cloud.shared / "bin/scontrol"
    own.unlink(missing_ok=True)
    if version == "25.11":
        own.symlink_to("scontrol-25.11")
    answers(cloud, f"BlockName=block_a_1 Nodes={','.join(NODES)}\nBlockSizes=18\n")
    done = topology_sh(cloud, "update", "block", "--partition", "htc", "--block-size", "18", "--dry-run")
    own.unlink(missing_ok=True)
    assert done.code == 0, done.output
    wanted = "topology/block, TopologyParam=BlockAsNodeRank" if knows_it else "topology/block"
    assert done.output.splitlines()[-1].endswith(f"site_specific.conf: TopologyPlugin={wanted}")
    asked = (cloud.shared / "asked").read_text()
    assert asked.startswith("topology -p htc -n --block --block_size 18 -o ")


def test_a_line_of_the_site_is_never_contradicted(cloud: Cloud) -> None:
    own = "TopologyPlugin=topology/tree\n"
    cloud.configure(site_specific=own)
    answers(cloud, OTHER)
    done = topology_sh(cloud, "update", "tree")
    assert done.code == 1
    assert "already says TopologyPlugin=topology/tree" in done.output
    assert files(cloud) == (GOOD, own)
