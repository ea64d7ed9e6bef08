"""The imitation of the node agent: what scripts find, and how the agent continues after one that failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from generator.files.file import File
from tests.bed.machines.agent import HOME, SPECS, Agent, Script
from tests.bed.machines.images import LOGIN
from tests.bed.machines.nodes import node
from tests.bed.machines.overlay import Machine, overlay_machine
from tests.bed.machines.roots import node_root

TELL = '#!/bin/bash\nenv | grep CYCLECLOUD_ | sort\necho "$0 $(umask) $(id -u)"\ncommand -v jetpack\n'


@pytest.fixture
def machine() -> Iterator[Machine]:
    with overlay_machine(node_root()) as made:
        made.write("/var/lib/faked/calls", "")
        yield made


def agent_with(machine: Machine, **scripts: str) -> Agent:
    """An agent with one spec of these scripts."""
    agent = Agent(machine, {"slurm.role": "login", "slurm.autoscale": True, "empty": "None"})
    folder = PurePosixPath("specs/default/cluster-init/scripts")
    agent.place("p", "1.0.0", {folder / name: File(text.encode()) for name, text in scripts.items()})
    return agent


def test_a_script_finds_what_the_agent_promises(machine: Machine) -> None:
    agent = agent_with(machine, **{"10-tell.sh": TELL, "README.md": "no script", "20-off.sh-unused": "exit 1"})
    assert machine.path(f"{SPECS}/p/default/scripts/10-tell.sh").stat().st_mode & 0o111 == 0
    (ran,) = agent.converges()
    assert ran.output.splitlines() == [
        f"CYCLECLOUD_HOME={HOME}",
        "CYCLECLOUD_PROJECT_NAME=p",
        f"CYCLECLOUD_PROJECT_PATH={SPECS}/p",
        "CYCLECLOUD_PROJECT_VERSION=1.0.0",
        "CYCLECLOUD_SPEC_NAME=default",
        f"CYCLECLOUD_SPEC_PATH={SPECS}/p/default",
        f"{SPECS}/p/default/scripts/10-tell.sh 0077 0",
        f"{HOME}/bin/jetpack",
    ]
    assert machine.path(f"{SPECS}/.run/p/default/scripts/10-tell.sh.run").exists()
    assert machine.read(f"{HOME}/logs/cluster-init/p/default/scripts/10-tell.sh.out") == ran.output


def test_a_failed_script_is_repeated_and_what_succeeded_is_not(machine: Machine) -> None:
    text = '#!/bin/bash\necho "${0##*/}" >>/root/ran\n'
    scripts = {"b.sh": f"{text}test -e /root/repaired\n", "a.sh": text, "c.sh": text}
    agent = agent_with(machine, **scripts)
    assert [ran.code for ran in agent.converge()] == [0, 1]
    assert [ran.code for ran in agent.converge()] == [1]
    machine.write("/root/repaired", "")
    agent.converges()
    assert machine.read("/root/ran").split() == ["a.sh", "b.sh", "b.sh", "b.sh", "c.sh"]
    assert agent.converge() == []


def test_jetpack_answers_as_the_real_one(machine: Machine) -> None:
    agent = agent_with(machine, **{"a.sh": "#!/bin/sh\n"})
    agent.blob("p", "tool.tar", b"tool")
    asked = machine.ok(
        f"cd /root; PATH={HOME}/bin:$PATH; jetpack config slurm.role; jetpack config slurm.autoscale;"
        "jetpack config empty x; jetpack config none y; jetpack download --project p tool.tar; cat tool.tar;"
        "jetpack download --project p tool.tar /tmp/other; cat /tmp/other"
    )
    assert asked == "login\nTrue\nNone\ny\ntooltool"
    for refused in ("config none", "download --project p other.tar", "download --project q tool.tar", "dance"):
        assert machine.run(f"{HOME}/bin/jetpack {refused}").code != 0


def test_an_agent_that_does_not_answer_fails_the_converge_and_the_next_one_repairs_it() -> None:
    with node(LOGIN) as (machine, agent):
        machine.write(f"{HOME}/config/broken", "fail\n")
        (*_, last) = agent.converge()
        assert last.code == 1
        assert "the node agent does not answer" in last.output
        done = [script for script in agent.scripts if agent.is_done(script)]
        machine.path(f"{HOME}/config/broken").unlink()
        assert not {ran.script for ran in agent.converge(agent.scripts[:6])} & set(done)
        assert all(agent.is_done(script) for script in agent.scripts[:6])


def test_names_of_markers_and_logs() -> None:
    script = Script("p", "default", "10-x.sh")
    assert script.marker == "/mnt/cluster-init/.run/p/default/scripts/10-x.sh.run"
    assert script.log == "/opt/cycle/jetpack/logs/cluster-init/p/default/scripts/10-x.sh.out"
