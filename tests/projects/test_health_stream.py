"""STREAM on InfiniBand CPU sizes: the program, the threads and the floor that belong together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import HANGS
from tests.projects.conftest import MakeNode

HB, HB3, HC = "Standard_HB176rs_v4", "Standard_HB120-16rs_v3", "Standard_HC44rs"
# The lines of STREAM 5.10 (https://www.cs.virginia.edu/stream/FTP/Code/stream.c).
STREAM = """\
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:          {copy}     0.009461     0.009354     0.009590
Scale:         700000.0     0.009461     0.009354     0.009590
Add:           690000.5     0.014461     0.014354     0.014590
Triad:         {triad}     0.014461     0.014354     0.014590
-------------------------------------------------------------
{validation}
"""
VALID = "Solution Validates: avg error less than 1.000000e-13 on all three arrays"
INVALID = "Failed Validation on array a[], AvgRelAbsErr > epsilon (1.000000e-13)"


def docker(node: Healthy, *tries: str, code: int = 0) -> None:
    """docker runs STREAM, whose output is that of the next try; the last one stays."""
    for place, text in enumerate(tries):
        node.write(f"tries/{place}", text)
    node.fake(
        "docker",
        f"""[[ "$1" == run ]] || exit 0
count="$(cat "$FAKE_STATE/tries" 2>/dev/null || echo 0)"
echo "$((count + 1))" >"$FAKE_STATE/tries"
if ((count >= {len(tries)})); then count={len(tries) - 1}; fi
cat "{node.root}/tries/$count"
exit {code}""",
    )


def shown(copy: str = "684163.4", triad: str = "680000.0", validation: str = VALID) -> str:
    return STREAM.format(copy=copy, triad=triad, validation=validation)


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    made = healthy(make_node("slurm_nhc"), HB, deep_s=300)
    docker(made, shown())
    return made


def stream(node: Healthy) -> dict[str, Any]:
    """The one record of STREAM in a deep run at boot."""
    node.only("cpu_stream", kind="deep")
    code, output = node.health("deep", "boot")
    assert code == 0, output
    (found,) = [each for each in node.result("deep")["checks"] if each["check"].startswith("cpu_stream")]
    return dict(found)


def test_the_slowest_function_is_judged_by_the_floor_of_the_size(node: Healthy) -> None:
    found = stream(node)
    assert (found["verdict"], found["value"], found["limit"]) == ("pass", "680000.0", "665500")
    assert found["detail"].startswith("Triad")


def test_it_runs_the_build_and_the_threads_of_the_floor_and_downloads_nothing(node: Healthy) -> None:
    stream(node)
    (call,) = [each for each in node.calls("docker") if each.startswith("docker run")]
    assert "--pull never --network none" in call
    assert "OMP_NUM_THREADS=48" in call
    assert "OMP_PLACES={0},{4},{8},{12}" in call
    assert call.endswith("--entrypoint timeout mcr.microsoft.com/aznhc/aznhc-nv 120 /azure-nhc/bin/stream4.exe")


def test_a_constrained_size_has_places_of_its_own(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), HB3, deep_s=300)
    docker(node, shown("330000.0", "325000.0"))
    assert stream(node)["verdict"] == "pass"
    (call,) = [each for each in node.calls("docker") if each.startswith("docker run")]
    assert "OMP_PLACES={0},{1},{2},{3}" in call
    assert call.endswith("stream3.exe")


@pytest.mark.parametrize(("tries", "verdict"), [
    (("665500.0",), "pass"), (("665499.9",), "fail"),
    (("97000.0", "680000.0"), "pass"), (("97000.0", "96000.0"), "fail"),
])  # fmt: skip
def test_the_second_attempt_decides_at_the_limit(node: Healthy, tries: tuple[str, ...], verdict: str) -> None:
    docker(node, *(shown(copy=value) for value in tries))
    assert stream(node)["verdict"] == verdict
    assert (node.health("gate")[0] != 0) is (verdict == "fail")


def test_wrong_values_are_a_fault_however_fast_they_come(node: Healthy) -> None:
    docker(node, shown(validation=INVALID))
    found = stream(node)
    assert (found["check"], found["verdict"]) == ("cpu_stream_wrong_values", "fail")


UNABLE = [
    ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", 125),
    ("docker: Error response from daemon: No such image: mcr.microsoft.com/aznhc/aznhc-nv:latest.", 125),
]


@pytest.mark.parametrize(("text", "code"), UNABLE)
def test_a_node_without_the_container_has_measured_nothing(node: Healthy, text: str, code: int) -> None:
    docker(node, text, code=code)
    found = stream(node)
    assert found["verdict"] == "not_measured"
    assert text[:30] in found["detail"]
    assert node.health("gate")[0] == 0


def test_a_node_without_docker_has_measured_nothing(node: Healthy) -> None:
    (node.bin / "docker").unlink()
    assert stream(node)["detail"] == "stream is not installed"


@pytest.mark.parametrize("body", ["echo 'Illegal instruction'; exit 132", HANGS, "echo 'no table'; exit 0"])
def test_a_program_that_crashes_hangs_or_prints_nothing_fails_twice(node: Healthy, body: str) -> None:
    node.fake("docker", f'[[ "$1" == run ]] || exit 0\n{body}')
    assert stream(node)["verdict"] == "fail"
    assert len([each for each in node.calls("docker") if each.startswith("docker run")]) == 2


def test_a_size_without_a_floor_says_so(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), HC, deep_s=300)
    found = stream(node)
    assert found["verdict"] == "no_baseline"
    assert node.calls("docker") == []
