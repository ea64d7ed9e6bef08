"""Verbs that are ended, and typed again: killed, a connection that is lost, somebody else at the same time.

| verb | killed, ended, Ctrl-C | a connection is lost | two at once |
|---|---|---|---|
| start, stop, retry, scale, update | here | here, at each | here, at each and while the first is asked |
| nodes, logs, support | here | here, at each | they change nothing |
| status | tests/cyclecloud/ | tests/cyclecloud/ | it changes nothing |
| connect | tests/connect/ | tests/connect/ | tests/connect/ |
| run, prove | tests/runs/, tests/prove/ | tests/runs/ | tests/runs/, tests/prove/ |
| deploy, preflight, what-if, diff | tests/broken_off/ | tests/broken_off/ | tests/broken_off/, tests/deploy/ |
| delete | tests/delete/ | tests/delete/ | tests/delete/ |

A connection is one ssh. Whatever had arrived: the same command ends where an undisturbed one would, and nothing was
done twice but an import, which says the same again. Where a command only reads, it is the same whether it was lost
before it ran or after.
"""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from generator.azure.deployment import content_of
from generator.cli import main
from tests.bed.server.fakes.clusters import OFF
from tests.verbs.place import Living
from tests.verbs.test_nodes import FAILED
from tests.verbs.test_update import REPLACE, is_deployed

DOWN = "IDLE+CLOUD+POWERED_DOWN"
IMPORT = "cyclecloud import_cluster"


def stopped(living: Living) -> None:
    """Nothing runs."""
    living.cluster.clear()
    living.cluster["nodes"] = [{"Name": name, **OFF} for name in ("scheduler", "login-1")]


def failed(living: Living) -> None:
    """With a node that has failed."""
    living.runs(FAILED)


def small(living: Living) -> None:
    """With nodes that could start."""
    living.runs()
    living.slurm.nodes = {f"m-htc-{number}": ("htc", DOWN, "") for number in (1, 2)}


def old(living: Living) -> None:
    """With a node that is old, and a template that was not imported."""
    living.runs()
    living.slurm.nodes = {"htc-1": ("htc", "IDLE+CLOUD", ""), "htc-2": ("htc", "MIXED+CLOUD", "")}
    living.slurm.old, living.slurm.replacing = {"htc-1"}, False
    is_deployed(living)


@dataclass(frozen=True)
class Verb:
    """What is typed, what it begins with, and the changes of a whole run."""

    words: tuple[str, ...]
    begin: Callable[[Living], None] = Living.runs
    done: tuple[str, ...] = ()
    every: int = 1
    """Of how many connections one is lost."""
    at: list[int] = field(default_factory=list)
    """The connections of a whole run that change something."""

    @property
    def yes(self) -> tuple[str, ...]:
        """As it is typed where nobody is asked."""
        return (self.words[0], "minimal.yaml", *self.words[1:], *(("--yes",) if self.done else ()))

    def __call__(self, living: Living) -> tuple[int, list[str], str]:
        """Type it: the exit code, the changes since the beginning, and what was said."""
        code, out, err = living(*self.yes)
        return code, changes(living), out + err

    def anew(self, living: Living) -> None:
        """Back to the beginning."""
        living.site.calls.clear()
        (living.folder / "minimal-support.tar.gz").unlink(missing_ok=True)
        living.loses()
        self.begin(living)


VERBS = {
    "start": Verb(("start",), stopped, ("cyclecloud start_cluster minimal",)),
    "stop": Verb(("stop", "--end-jobs"), Living.runs, ("cyclecloud terminate_cluster minimal",)),
    "retry": Verb(("retry",), failed, ("cyclecloud retry minimal",)),
    "scale": Verb(("scale", "htc", "1"), small, ("scontrol update nodename=m-htc-1 state=POWER_UP",)),
    "update": Verb(("update",), old, (IMPORT, REPLACE)),
    "nodes": Verb(("nodes",)),
    "logs": Verb(("logs",)),
    "support": Verb(("support",), old, every=4),  # each is a source of its own, all are treated alike
}
CHANGING = [name for name, verb in VERBS.items() if verb.done]


def changes(living: Living) -> list[str]:
    """What was changed; an import that was repeated counts once, and its files have other names each time."""
    said = [next((name for name in (IMPORT, REPLACE) if line.startswith(name)), line) for line in living.changes]
    return [line for number, line in enumerate(said) if line != IMPORT or said.index(IMPORT) == number]


@pytest.fixture(params=VERBS)
def verb(living: Living, request: pytest.FixtureRequest) -> Verb:
    """At its beginning, and undisturbed once, which leaves the number of its connections behind."""
    found = VERBS[request.param]
    log = living.folder / "root/var/log/cycleforge/bootstrap.log"
    log.parent.mkdir(parents=True)
    log.write_text("said at the first boot\n")
    found.anew(living)
    seen: list[int] = []
    living.meanwhile(lambda _: seen.append(len(living.changes)))
    code, done, said = found(living)
    assert (code, done) == (1 if request.param == "support" else 0, list(found.done)), said
    seen.append(len(living.changes))
    found.at[:] = [number for number in range(1, len(seen)) if seen[number] > seen[number - 1]]
    living.meanwhile(lambda _: None)
    return found


def losses(living: Living, verb: Verb) -> Iterator[tuple[int, str]]:
    """Each connection, and where it changes something also before that."""
    for number in range(1, living.connections + 1, verb.every):
        yield from ((number, when) for when in ("before", "after") if when == "after" or number in verb.at)


def test_a_connection_is_lost_anywhere(living: Living, verb: Verb) -> None:
    """What did not arrive is no success, and of the last change it is known whether it did."""
    for number, when in list(losses(living, verb)):
        verb.anew(living)
        living.loses((number, when))
        code, done, said = verb(living)
        expected = (4,) if number in verb.at and when == "before" else (0,) if number in verb.at[-1:] else (0, 1, 4)
        assert code in expected, (number, when, said)
        if verb.done:
            living.loses()
            code, done, said = verb(living)
            assert code == 0, (number, when, said)
        assert done == list(verb.done), (number, when, said)


ENDS = [(name, when) for name in CHANGING for when in ("KILL-before", "KILL-after", "TERM-after", "INT-before")]
"""Ctrl-C also where a verb only reads; what is killed there has begun nothing, but for an archive."""


@pytest.mark.parametrize(
    ("verb", "when"), [*ENDS, *((name, "INT-before") for name in VERBS if name not in CHANGING)], indirect=["verb"]
)
def test_it_is_ended_and_typed_again(living: Living, verb: Verb, when: str) -> None:
    """At its last change, or where it reads: by SIGKILL, SIGTERM or Ctrl-C."""
    verb.anew(living)
    status = os.waitstatus_to_exitcode(living.ended_by(verb.at[-1] if verb.done else 1, when, *verb.yes))
    number = getattr(signal, f"SIG{when.partition('-')[0]}")
    assert status == (130 if number == signal.SIGINT else -number)
    assert changes(living) == list(verb.done if when.endswith("after") else verb.done[:-1])
    assert not list(living.folder.glob("*.tar.gz*"))
    assert verb(living)[1] == list(verb.done)


@pytest.mark.parametrize("verb", ["support"], indirect=True)
def test_an_archive_is_there_as_a_whole_or_not_at_all(living: Living, verb: Verb) -> None:
    last = living.connections
    verb.anew(living)
    assert os.waitstatus_to_exitcode(living.ended_by(last, "KILL-after", *verb.yes)) == -signal.SIGKILL
    assert not list(living.folder.glob("*.tar.gz*"))


@pytest.mark.parametrize("verb", CHANGING, indirect=True)
def test_two_at_once(living: Living, verb: Verb) -> None:
    """The second does all of it before the first looks, or changes something, or reads back; both end the same."""
    for wanted in sorted({1, *verb.at, verb.at[-1] + 1}):
        verb.anew(living)
        ended: list[int] = []

        def second(number: int, wanted: int = wanted, ended: list[int] = ended) -> None:
            if number == wanted:
                ended.append(main(list(verb.yes)))

        living.meanwhile(second)
        code, done, said = verb(living)
        assert (code, ended) == (0, [0]), (wanted, said)
        assert sorted(set(done)) == sorted(verb.done), wanted


class Terminal(io.StringIO):
    """Whoever is asked says yes, later than somebody else."""

    def __init__(self, action: Callable[[], object]) -> None:
        super().__init__("y\n")
        self._action = action

    def isatty(self) -> bool:
        return True

    def readline(self, _: int = -1) -> str:  # type: ignore[override]
        self._action()
        return "y\n"


@pytest.mark.parametrize("verb", CHANGING, indirect=True)
def test_somebody_else_does_it_while_the_first_is_asked(living: Living, verb: Verb) -> None:
    verb.anew(living)
    living.deployment(content_of(living.folder / "output/minimal"))
    living.patch.setattr("sys.stdin", Terminal(lambda: main(list(verb.yes))))
    code, _, err = living(*verb.yes[:-1])
    assert (code, changes(living)) == (0, [verb.done[-1]]), err


def test_jobs_that_begin_while_it_is_asked_are_not_ended(living: Living) -> None:
    living.runs()
    job = ("7", "ada", "htc", "RUNNING", "0:01", "m-htc-1", "train")
    living.patch.setattr("sys.stdin", Terminal(lambda: living.slurm.jobs.append(job)))
    code, _, err = living("stop", "minimal.yaml")
    assert (code, "nothing was stopped: 7 began while the question was open" in err, living.changes) == (1, True, [])


def test_a_partition_that_changes_while_it_is_asked_is_left_alone(living: Living) -> None:
    small(living)
    living.patch.setattr(
        "sys.stdin", Terminal(lambda: living.slurm.nodes.update({"m-htc-1": ("htc", "DOWN+CLOUD", "")}))
    )
    code, _, err = living("scale", "minimal.yaml", "htc", "2")
    assert (code, "htc changed while the question was open" in err, living.changes) == (1, True, [])
