"""What the driver itself says of a GPU: the action that it asks for, and every other field with a verdict in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from generator import catalog
from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode
from tests.projects.xids import FILES

FIELDS = Path(__file__).with_name("nvidia-smi-fields-610.57.04.txt").read_text().splitlines()
"""Names of `nvidia-smi --help-query-gpu`, driver 610.57.04, the newest public capture.

Source: https://github.com/utkuozdemir/nvidia_gpu_exporter@e656cd8, internal/captures (RTX 2080 SUPER, Linux)
"""


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    made = healthy(make_node("slurm_nhc"))
    made.only("gpu_driver")
    return made


def shows(node: Healthy, word: str, gpu: int = 3) -> list[dict[str, Any]]:
    """The records of the check when one GPU shows this word."""
    rows = [row.removesuffix("None") + word if place == gpu else row for place, row in enumerate(node.rows)]
    node.set_gpus(rows)
    node.quick()
    return [row for row in node.result("quick")["checks"] if row["check"] == "gpu_recovery_action"]


# NVML, nvmlDeviceGpuRecoveryAction_t; words: NVIDIA's page on memory errors, "Error Recovery and Response Flags".
ACTIONS = [
    ("Reset", "reset"), ("GPU Reset", "reset"), ("Reboot", "reboot"), ("Node Reboot", "reboot"),
    ("Drain and Reset", "reset"), ("1", "reset"), ("2", "reboot"), ("6", "reset"), ("7", "reboot"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "cure"), ACTIONS)
def test_what_the_driver_asks_for_is_done(node: Healthy, word: str, cure: str) -> None:
    (row,) = shows(node, word)
    assert (row["verdict"], row["cure"], row["detail"]) == ("fail", cure, f"GPU 3 {word}")
    assert f"gpu_recovery_action (GPU 3 {word})" in node.reason()


def test_a_drain_of_peer_traffic_warns(node: Healthy) -> None:
    (row,) = shows(node, "Drain P2P")
    assert (row["verdict"], node.reason()) == ("warn", "")


@pytest.mark.parametrize("word", ["None", "[N/A]", "N/A", "0"])
def test_no_action_is_no_finding(node: Healthy, word: str) -> None:
    (row,) = shows(node, word)
    assert row["verdict"] == "pass"


@pytest.mark.parametrize("word", ["Unknown(9)", "99", "", "-", "reset the chassis", "$(reboot)", "[Not Supported]"])
def test_another_word_is_not_measured_and_is_said(node: Healthy, word: str) -> None:
    (row,) = shows(node, word)
    assert row["verdict"] == "not_measured"
    assert row["detail"] == f"not a known answer: GPU 3 {word}"
    assert node.reason() == ""


def test_each_action_has_its_finding(node: Healthy) -> None:
    node.set_gpus(
        [
            row.removesuffix("None") + word
            for row, word in zip(
                node.rows, ("Reset", "Reboot", "None", "Drain P2P", "x", "Reset", "None", "None"), strict=True
            )
        ]
    )
    node.quick()
    found = {(row["verdict"], row.get("cure", ""), row["detail"]) for row in node.result("quick")["checks"]
             if row["check"] == "gpu_recovery_action"}  # fmt: skip
    assert found == {
        ("fail", "reboot", "GPU 1 Reboot"), ("fail", "reset", "GPU 0 Reset, GPU 5 Reset"),
        ("warn", "", "GPU 3 Drain P2P"), ("not_measured", "", "not a known answer: GPU 4 x"),
    }  # fmt: skip


def test_a_driver_before_the_field_has_no_record(node: Healthy) -> None:
    (node.root / "run/cycleforge").mkdir(parents=True, exist_ok=True)
    node.write("run/cycleforge/nvidia-smi.unknown", "gpu_recovery_action\n")
    node.set_gpus([row.removesuffix(", None") for row in node.rows])
    assert node.quick()["verdict"] == "pass"
    assert [row["check"] for row in node.result("quick")["checks"]] == ["nvidia_smi", "gpu_answers"]


def test_every_action_of_an_xid_has_its_cure_here_too() -> None:
    """The numbers are those of XID 154: one table."""
    actions = catalog.xids().recovery_actions
    assert {action.take for action in actions.values()} <= {"none", "warn", "reset", "reboot", "service"}
    words = [word for action in actions.values() for word in action.shown]
    assert len(words) == len(set(words)), "a word has one meaning"
    assert not [word for word in words if re.fullmatch(r"\d+|-", word)]


ASKED = {"gpu_recovery_action", "fabric.state", "fabric.status", "remapped_rows.pending", "remapped_rows.failure",
         "retired_pages.pending"}  # fmt: skip
"""Fields in which the driver says what it thinks of the GPU, and that a check asks for."""
NOT_ASKED = {
    "inforom.checksum_validation": "reads all of the infoROM; a corrupt one ends nvidia-smi with code 14, which fails",
    "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "one uncorrectable error of the SRAM fails before it",
    "fabric.health.summary": "nobody has published how it is written; state and status fail where a GPU cannot join",
    **dict.fromkeys(
        ("fabric.health.bandwidth", "fabric.health.route_recovery_in_progress", "fabric.health.route_unhealthy",
         "fabric.health.access_timeout_recovery", "fabric.health.incorrect_configuration",
         "fabric.health.partition_assigned"),
        "a part of fabric.health.summary",
    ),
    **dict.fromkeys(
        (f"clocks_event_reasons.{name}" for name in (
            "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
            "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost")),
        "a bit of clocks_event_reasons.active, which is asked for",
    ),
}  # fmt: skip
"""The others, and why."""
FIGURES = re.compile(
    r"timestamp|.*_?version|count|name|serial|uuid|pci\..*|pcie\..*|vgpu_.*|index|display_.*|persistence_mode|"
    r"addressing_mode|accounting\..*|driver_model\..*|inforom\.(img|oem|ecc|pwr)|gom\..*|fan\.speed|pstate|"
    r"clocks_event_reasons\.(supported|active)|clocks_event_reasons_counters\..*|memory\..*|compute_.*|utilization\..*|"
    r"encoder\..*|dramEncryption\..*|ecc\.mode\..*|ecc\.errors\.(un)?corrected\.(volatile|aggregate)\.[a-z0-9_]+|"
    r"ecc\.errors\.uncorrected\.(volatile|aggregate)\.sram\.(parity|secded|l2|sm|mcu|pcie|other)|"
    r"retired_pages\.(single|double)_bit.*|remapped_rows\.(un)?correctable(_inactive)?|remapped_rows\.histogram\..*|"
    r"temperature\..*|(module\.)?(enforced\.)?power\..*|gpu\.base\..*|power_smoothing\..*|edpp_multiplier|clocks\..*|"
    r"mig\.mode\..*|gsp\.mode\..*|c2c\.mode|protected_memory\..*|fabric\.(cliqueId|clusterUuid)|platform\..*|hostname|"
    r"bbx\.time_run"
)
"""Numbers, names and settings: what is wrong with one is for a limit to say, not for the driver."""


def test_every_field_with_a_verdict_of_the_driver_is_asked_for_or_has_a_reason() -> None:
    assert len(FIELDS) > 200
    verdicts = [field for field in FIELDS if not FIGURES.fullmatch(field)]
    assert set(verdicts) == ASKED | set(NOT_ASKED)
    assert not ASKED & set(NOT_ASKED)
    scripts = "".join((FILES / name).read_text() for name in ("smi.sh", "checks-gpu.sh"))
    assert [field for field in sorted(ASKED) if field not in scripts] == []
