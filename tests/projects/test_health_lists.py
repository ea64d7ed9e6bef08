"""A list of nvidia-smi that lacks a GPU, a slice or a port is not one of a healthy machine."""

from __future__ import annotations

from typing import Any

import pytest

from generator import catalog
from generator.plan.mig import MigPlan
from generator.plan.size_facts import check_attributes
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import A100
from tests.projects.conftest import MakeNode

V100 = "Standard_ND40rs_v2"
SLICES = MigPlan(profile="3g.40gb", per_gpu=2, slices=16, devices="/dev/cycleforge/mig[0-15]")
REMAPS = [f"00000000:0{gpu + 1}:00.0, 0, 0, 0" for gpu in range(8)]
PAGES = [f"{gpu}, 0, 0, No" for gpu in range(8)]
SPARE = [f"{gpu}, 0" for gpu in range(8)]
# Layout: utkuozdemir/nvidia_gpu_exporter (MIT), internal/captures, h100-mig 590.48.01.
LISTED = [
    line
    for gpu in range(8)
    for line in (
        f"GPU {gpu}: NVIDIA A100-SXM4-80GB (UUID: GPU-0000000{gpu}-0000-0000-0000-000000000000)",
        "  MIG 3g.40gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000000)",
        "  MIG 3g.40gb     Device  1: (UUID: MIG-00000001-0000-0000-0000-000000000001)",
    )
]
EVERY_LINE = """
mapfile -t lines <"${HEALTHY}"
for ((gone = -1; gone < ${#lines[@]}; gone++)); do
    answer=""
    for place in "${!lines[@]}"; do if ((place != gone)); then answer+="${lines[place]}"$'\\n'; fi; done
    answer="${answer%$'\\n'}"
    ask_smi() { OUTPUT="${answer}"; }
    : >"${CYCLEFORGE_ROWS}"
    "check_${CHECK}"
    printf '%s %s\\n' "$((gone + 1))" "$(cut -d $'\\x1f' -f 1 "${CYCLEFORGE_ROWS}" | tr '\\n' ' ')"
done
"""
LISTS: dict[str, tuple[dict[str, object], list[str]]] = {
    "gpu_remap": ({"gpus": 8, "pending_max": 0, "failure_max": 0, "uncorrectable_max": 512}, REMAPS),
    "gpu_pages": ({"gpus": 8, "retired_max": 61}, PAGES),
    "gpu_spare_rows": ({"gpus": 8}, SPARE),
    "mig_slices": ({"profile": "3g.40gb", "gpus": 8, "count": 16}, LISTED),
}


@pytest.mark.parametrize("check", LISTS)
def test_no_line_can_be_left_out_of_a_healthy_list(check: str, make_node: MakeNode) -> None:
    figures, lines = LISTS[check]
    node = healthy(make_node("slurm_nhc"))
    node.write("healthy.txt", "".join(f"{line}\n" for line in lines))
    given = " ".join(f"[{key}]={value}" for key, value in figures.items())
    done = node.command(
        "-c",
        f". {node.root}/opt/cycleforge/slurm_nhc/checks.sh; declare -A GIVEN=({given}); {EVERY_LINE}",
        CYCLEFORGE_ROWS=str(node.folder / "rows"),
        CYCLEFORGE_BUDGET_S="60",
        HEALTHY=str(node.root / "healthy.txt"),
        CHECK=check,
    )
    whole, *shorter = (line.split()[1:] for line in done.stdout.splitlines())
    assert set(whole) == {"pass"}, done.stderr
    assert len(shorter) == len(lines)
    assert [verdicts for verdicts in shorter if not verdicts or "pass" in verdicts] == []


def records(node: Healthy, check: str) -> list[dict[str, Any]]:
    return [row for row in node.result("quick")["checks"] if row["check"] == check]


def test_a_fault_shows_although_another_gpu_is_not_listed(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"))
    node.only("gpu_remap")
    answers = (node.bin / "nvidia-smi").read_text().split("\n", 2)[2]
    node.fake(
        "nvidia-smi",
        f"if [[ $* == *remapped_rows* ]]; then printf '0, 0, 0, 0\\n1, Yes, No, 0\\n'; exit; fi\n{answers}",
    )
    node.quick()
    assert [(row["verdict"], row["cure"]) for row in records(node, "gpu_remap_pending")] == [("fail", "reset")]
    (row,) = records(node, "gpu_remap_failure")
    assert (row["verdict"], row["detail"]) == ("not_measured", "GPU 2: no number: 'not listed'")


def test_retired_pages_are_those_of_all_gpus(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), V100)
    answers = (node.bin / "nvidia-smi").read_text().split("\n", 2)[2]
    for rows, verdict in ((PAGES, "pass"), (PAGES[:7], "not_measured"), (["0, 60, 2, Yes"], "fail")):
        listing = "\\n".join(rows)
        node.fake("nvidia-smi", f"if [[ $* == *retired_pages* ]]; then printf '{listing}\\n'; exit; fi\n{answers}")
        node.only("gpu_pages")
        node.quick()
        assert [row["verdict"] for row in records(node, "gpu_retired_pages")] == [verdict], rows
        node.ok("20-health.sh")


def test_a_slowed_gpu_that_the_second_sample_lacks_is_not_measured(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"))
    node.only("gpu_throttling")
    fields = node.rows[3].split(", ")
    node.rows[3] = ", ".join([*fields[:11], "0x0000000000000008", *fields[12:]])
    node.set_gpus(node.rows, second=["0x0000000000000000"] * 3)
    node.quick()
    (row,) = records(node, "gpu_throttling")
    assert (row["verdict"], "GPU 3" in row["detail"]) == ("not_measured", True)


def test_a_port_whose_rate_cannot_be_read_is_not_as_fast_as_the_others(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"))
    node.only("ib_ports")
    node.write("sys/class/infiniband/mlx5_ib5/ports/1/rate", "\n")
    node.quick()
    (row,) = records(node, "ib_rate")
    assert (row["verdict"], "mlx5_ib5" in row["detail"]) == ("not_measured", True)


# ---------------------------------------------------------------- MIG


@pytest.fixture
def divided(make_node: MakeNode) -> Healthy:
    """A node whose GPUs are divided as its partition says; nvidia-smi answers as the captures with MIG do."""
    made = healthy(make_node("slurm_nhc"))
    for key, value in check_attributes((catalog.vm_size(A100),), SLICES).items():
        made.attribute(key, value)
    made.ok("20-health.sh")
    answer(made)
    return made


def answer(node: Healthy, spare: str = "0, 0", listed: list[str] = LISTED, before: str = "") -> None:
    node.set_gpus(node.rows, remap="{i}, [N/A], [N/A], [N/A]")
    answers = (node.bin / "nvidia-smi").read_text().split("\n", 2)[2]
    rows = "\\n".join([spare, *SPARE[1:]])
    slices = "\\n".join(listed)
    node.fake(
        "nvidia-smi",
        f"""{before}
case "$*" in
    -L) printf '{slices}\\n'; exit ;;
    *histogram*) printf '{rows}\\n'; exit ;;
esac
{answers}""",
        light=True,
    )


def test_a_healthy_divided_node_is_wholly_measured(divided: Healthy) -> None:
    result = divided.quick()
    assert result["verdict"] == "pass", result
    assert {row["verdict"] for row in result["checks"]} == {"pass"}
    assert {"gpu_spare_rows", "gpu_xid", "mig_slices"} <= {row["check"] for row in result["checks"]}
    conf = divided.read("etc/cycleforge/nhc/quick.conf")
    assert "cycleforge gpu_remap" not in conf
    assert "take the place of gpu_remap" in conf


def test_memory_without_spare_rows_warns_and_a_failed_remap_drains(divided: Healthy) -> None:
    answer(divided, spare="0, 2")
    assert divided.quick()["verdict"] == "warn"
    assert [row["detail"] for row in records(divided, "gpu_spare_rows")] == ["GPU 0"]
    divided.xid(64)
    assert divided.quick()["verdict"] == "fail"
    assert "XID 64" in divided.reason()


def test_a_driver_without_the_field_says_nothing_of_it_and_one_that_ends_badly_does(divided: Healthy) -> None:
    unknown = 'Field "remapped_rows.histogram.none" is not a valid field to query.'
    answer(divided, before=f"if [[ $* == *histogram* ]]; then echo '{unknown}'; exit 2; fi")
    assert divided.quick()["verdict"] == "pass"
    answer(divided, before="if [[ $* == *histogram* ]]; then exit 15; fi")
    divided.quick()
    assert [row["verdict"] for row in records(divided, "gpu_spare_rows")] == ["fail"]


def test_slices_are_counted_on_each_gpu(divided: Healthy) -> None:
    """As many on the node, but one GPU has four of them and its neighbour none."""
    moved = [*LISTED[:10], LISTED[12], *LISTED[10:12], *LISTED[13:]]
    assert sorted(moved) == sorted(LISTED)
    answer(divided, listed=moved)
    divided.quick()
    (row,) = records(divided, "mig_slices")
    assert (row["verdict"], row["value"]) == ("fail", "14")
    assert row["detail"] == "GPU 3: 0 of 2, GPU 4: 4 of 2"
