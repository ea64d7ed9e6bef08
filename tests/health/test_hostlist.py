"""Host lists: both ways, the same as Slurm's own, and bounded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.errors import CannotRead
from generator.results.hostlist import MAX_NAMES, NODE_NAME, compress, expand, natural_key

NAMES = st.from_regex(rf"\A{NODE_NAME}\Z").filter(lambda name: len(name) < 40)
CLUSTER_NAMES = st.builds(
    lambda prefix, number, width: f"{prefix}{number:0{width}}",
    st.sampled_from(["hpc-", "gpu-", "lab-hpc-pg0-", "n", "rack1-n"]),
    st.integers(0, 120),
    st.integers(1, 4),
)


@given(st.lists(NAMES | CLUSTER_NAMES, max_size=60))
@example(["hpc-9", "hpc-09", "hpc-009", "hpc-10", "hpc-11", "hpc-010"])
@example(["n99999999999999999999", "n00000000000", "7", "a"])
def test_a_compressed_list_expands_to_the_same_names(names: list[str]) -> None:
    """Whatever the padding."""
    listed = compress(names)
    assert set(expand(listed) if listed else ()) == set(names)
    assert compress(reversed(names)) == listed


@given(st.lists(CLUSTER_NAMES, min_size=1, max_size=60))
def test_an_expanded_list_compresses_to_something_stable(names: list[str]) -> None:
    """A second time changes nothing."""
    listed = compress(names)
    assert compress(expand(listed)) == listed


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("hpc-[1-3]", "hpc-1 hpc-2 hpc-3"),
        ("gpu-[01-03]", "gpu-01 gpu-02 gpu-03"),
        ("gpu-[099-101]", "gpu-099 gpu-100 gpu-101"),
        ("a[8-010]", "a8 a9 a10"),
        ("a[01-3]", "a01 a02 a03"),
        ("hpc-[1-2,07,10],login-1", "hpc-1 hpc-2 hpc-07 hpc-10 login-1"),
        ("r[0-1]n[08-09]", "r0n08 r0n09 r1n08 r1n09"),
        ("a[1][2]", "a12"),
        ("[1-2]", "1 2"),
        ("a1,a1,", "a1"),
        (" a1, a2\na[2-3]\t", "a1 a2 a3"),
        ("Lab-HPC_1.example", "Lab-HPC_1.example"),
    ],
)
def test_lists_that_slurm_understands(text: str, names: str) -> None:
    """Each name once, in the order written."""
    assert " ".join(expand(text)) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the host list is empty"),
        (" ,, ", "the host list is empty"),
        ("hpc-[3-1]", "character 6: the range 3-1 runs backwards"),
        ("hpc-[1-2", "character 5: a bracket is not closed"),
        ("hpc-1]", "character 6: brackets do not match"),
        ("hpc-[[1]]", "character 6: brackets do not match"),
        ("hpc-[]", "character 6: '' is neither a number nor a range"),
        ("a,hpc-[1-2,x]", "character 12: 'x' is neither"),
        ("hpc-[1,,2]", "'' is neither"),
        ("hpc-[1-2-3]", "'1-2-3' is neither"),
        ("hpc-[1- 2]", "'1- 2' is neither"),
        ("hpc-[0x1]", "'0x1' is neither"),
        ("hpc-[9999999999]", "'9999999999' is neither"),
        ("hpc-[1-2]-ib", "character 10: Slurm allows no text after the last bracket"),
        ("hpc*", "character 4: '*' is not allowed in a node name"),
        ("a;reboot", "';' is not allowed"),
        ("-a", "'-a' is not a valid node name"),
        ("a[1-65537]", "stands for more than 65536 nodes"),
        ("a[0-999]b[0-999]c[0-999]d[0-999]", "stands for more than 65536 nodes"),
        (f"a[1-{MAX_NAMES}],b", "stands for more than 65536 nodes"),
        ("a" * 300, "is not a valid node name"),
    ],
)
def test_lists_that_are_none(text: str, message: str) -> None:
    """With the place and an example."""
    with pytest.raises(CannotRead) as caught:
        expand(text)
    assert message in caught.value.message
    assert len(caught.value.message) < 300
    assert caught.value.hint


@given(st.text(alphabet="ab1-9[],- 0", max_size=30))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Names, or one of our errors."""
    try:
        names = expand(text)
    except CannotRead:
        return
    assert names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(NODE_NAME, name) for name in names)


def test_the_largest_list_is_quick() -> None:
    """As many as Slurm allows for one range."""
    names = expand(f"n[1-{MAX_NAMES}]")
    assert len(names) == MAX_NAMES
    assert compress(names) == f"n[1-{MAX_NAMES}]"
    # Nothing joins: every second one.
    assert compress(names[::2]).startswith("n[1,3,5,")


def test_natural_order() -> None:
    """hpc-2 before hpc-10; equal numbers by padding."""
    names = ["hpc-10", "hpc-2", "gpu-1", "hpc-02", "hpc", "hpc-1-b", "10", "9"]
    assert sorted(names, key=natural_key) == ["9", "10", "gpu-1", "hpc", "hpc-1-b", "hpc-2", "hpc-02", "hpc-10"]


# ---------------------------------------------------------------- the real thing


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a scontrol that asks nobody."""
    conf = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\n")
    return {"PATH": os.environ["PATH"], "SLURM_CONF": str(conf)}


def scontrol(*arguments: str, environment: dict[str, str]) -> str:
    """What scontrol prints."""
    done = subprocess.run(
        ["scontrol", *arguments], env=environment, capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()


needs_scontrol = pytest.mark.skipif(
    shutil.which("scontrol") is None, reason="scontrol is not here: tests/install-tools.sh installs slurm-client"
)


@needs_scontrol
@pytest.mark.parametrize(
    "text",
    [
        "hpc-[1-16],gpu-[01-04]",
        "hpc-[1-3,07-10],r[0-1]n[1-2]",
        "a[001-1000]",
        "a[8-010],b[01-3],c[0-01]",
        "a[1][2],[5-7],plain",
        "r[01-02]n[08-11]",
    ],
)
def test_scontrol_expands_alike(text: str, slurm: dict[str, str]) -> None:
    """Name by name."""
    assert scontrol("show", "hostnames", text, environment=slurm).split() == list(expand(text))


@needs_scontrol
def test_scontrol_takes_what_is_compressed(slurm: dict[str, str]) -> None:
    """The list goes into `scontrol update NodeName=…`."""
    names = [
        *expand("hpc-[1-3,5,9-12,101],hpc-[09-11],hpc-[007-010],lab-pg0-[0-3],lab-pg1-[0-3],login-1,scheduler,n1-ib"),
        "n123456789012",
    ]
    assert set(scontrol("show", "hostnames", compress(names), environment=slurm).split()) == set(names)


@needs_scontrol
@pytest.mark.parametrize("text", ["a[3-1]", "a[]", "a[1,,2]", "a[b]", "a[1-65537]", "a[1-2]-ib"])
def test_scontrol_refuses_alike(text: str, slurm: dict[str, str]) -> None:
    """It prints an error and no name."""
    assert scontrol("show", "hostnames", text, environment=slurm) == ""
    with pytest.raises(CannotRead):
        expand(text)
