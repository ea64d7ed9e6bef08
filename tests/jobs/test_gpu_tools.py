"""Readers of what GPU tools print, and the judgement of a fleet: `recipes/lib/gpu-tools.sh`, `fio.sh` and `fleet.sh`.

`gpu_tools.yaml` has what the tools printed elsewhere, and what is read from it.
"""

# ruff: noqa: E501
from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bed.yaml_data import yaml_data
from tests.jobs.running import LIBRARY, with_library

PUBLIC = yaml_data((Path(__file__).parent / "gpu_tools.yaml").read_bytes())


def bash(script: str, folder: Path) -> str:
    with_library(folder)
    sources = ". ./library.sh\n" + "".join(f". {LIBRARY}/{name}\n" for name in ("gpu-tools.sh", "fio.sh", "fleet.sh"))
    done = subprocess.run(["bash", "-c", sources + script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.parametrize("columns", ["blanks", "tabs"])
def test_readers_take_what_tools_printed_elsewhere_and_nothing_else(columns: str, tmp_path: Path) -> None:
    for name, text in PUBLIC["excerpts"].items():
        (tmp_path / name).write_text(
            re.sub(r"^ +| {2,}", "\t", text, flags=re.MULTILINE) if columns == "tabs" else text
        )
    script = "".join(f'text="$({call})"; echo "= $?"; echo "${{text}}"\n' for call in PUBLIC["read"])
    answers = bash(script, tmp_path).split("= ")[1:]
    for (call, expected), answer in zip(PUBLIC["read"].items(), answers, strict=True):
        status, _, text = answer.partition("\n")
        if expected is None:
            assert (status != "0", text.strip()) == (True, ""), call
        else:
            assert (status, sorted(text.strip().split("\n"))) == ("0", sorted(expected.split("\n"))), call


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_the_rate_of_fio_is_what_it_moved(tmp_path: Path) -> None:
    """The reader against fio itself; half a line, a failed fio and another way of writing give no rate."""
    out = bash(
        """fio --name=x --directory=. --rw=write --bs=1M --size=8M --group_reporting --output-format=terse --terse-version=3 >whole
        fio --name=x --directory=/no --rw=write --bs=1M --size=8M --output-format=terse --terse-version=3 >failed 2>&1
        head -c 300 whole >half
        cat whole whole >twice
        fio_rate whole write
        awk -F ';' '{ printf "%.1f\\n", $47 * 1.024 / $50 }' whole
        for bad in "whole read" "failed write" "half write" "twice write"; do fio_rate ${bad} && echo "${bad} passed"; done
        true""",
        tmp_path,
    )
    rate, expected = (float(word) for word in out.split())
    assert rate == pytest.approx(expected, rel=0.15)


SETTINGS = "export FLEET_FAIL_PERCENT=7 FLEET_WARN_PERCENT=3.5\n"


def fleet(tmp_path: Path, cases: dict[str, str], figures: str = "") -> dict[str, list[list[str]]]:
    (tmp_path / "figures.tsv").write_text("#check\n" + figures)
    for name, text in cases.items():
        (tmp_path / f"{name}.values").write_text(text)
    out = bash(SETTINGS + 'for file in *.values; do judge_fleet figures.tsv "${file}" >"${file}.out"; done', tmp_path)
    assert out == ""
    return {
        name: [line.split("\t") for line in (tmp_path / f"{name}.values.out").read_text().splitlines()]
        for name in cases
    }


def values(check: str, rates: dict[tuple[str, str], float], tool: str = "tool", unit: str = "GB/s") -> str:
    return "".join(f"{check}\t{node}\t{item}\t{rate:.2f}\t{unit}\t{tool}\t\n" for (node, item), rate in rates.items())


def test_fifty_fleets_with_slow_nodes(tmp_path: Path) -> None:
    """Figures that scatter by 2 %: a node that is 15 % slower, or one of its GPUs, is named, and nobody else fails; so do
    two at a time. A healthy fleet has no failures. 16 nodes with 8 GPUs, and 5 with one figure each."""
    generator = random.Random(7)
    cases, culprits = {}, {}
    for number in range(50):
        nodes, items = ((16, 8), (5, 1))[number % 2]
        bad = generator.sample(range(nodes), 0 if number % 5 == 0 else 2 if nodes > 5 and number % 3 == 0 else 1)
        rates = {}
        for node in range(nodes):
            slow_item = generator.randrange(items) if number % 4 < 2 else None
            for item in range(items):
                is_slow = node in bad and slow_item in (None, item)
                rates[f"n{node}", f"GPU {item}"] = 700 * generator.uniform(0.98, 1.02) * (0.85 if is_slow else 1)
        cases[f"c{number}"] = values("gemm", rates)
        culprits[f"c{number}"] = sorted(f"n{node}" for node in bad)
    for name, lines in fleet(tmp_path, cases).items():
        assert sorted(line[7] for line in lines if line[1] == "fail") == culprits[name], (name, lines)
        assert {line[1] for line in lines if line[7] not in culprits[name]} <= {"pass", "warn"}


def test_floors_and_damage(tmp_path: Path) -> None:
    """What decides where, and that no damaged line passes."""
    figures = (
        "gemm\tubergemm\t769\t742\t715\tTFLOPS\tpublished\t-\tAzure\n"
        "hbm\tany\t1700\t1530\t-\tGB/s\tderived\t0.9 x 1700\tguide\n"
    )
    four = {(f"n{node}", "GPU 0"): 1700.0 for node in range(4)}
    one = {("n0", "GPU 0"): 760.0, ("n0", "GPU 1"): 700.0}
    cases = {
        "floor": values("gemm", one, "ubergemm", "TFLOPS"),
        "other-tool": values("gemm", one, "ubergemm below a minute", "TFLOPS"),
        "warns": values("gemm", {("n0", "GPU 0"): 730.0}, "ubergemm", "TFLOPS"),
        "passes": values("gemm", {("n0", "GPU 0"): 742.0}, "ubergemm", "TFLOPS"),
        "unit": values("gemm", one, "ubergemm", "GFLOPS"),
        "derived-alone": values("hbm", {("n0", "GPU 0"): 1690.0}),
        "derived-low": values("hbm", dict.fromkeys(four, 1500.0)),
        "derived-fleet": values("hbm", four),
        "two-nodes": values("x", {("n0", "a"): 5, ("n0", "b"): 5, ("n1", "a"): 4, ("n1", "b"): 5}),
        "mixed-tools": values("x", four, "fio") + values("x", {("n4", "GPU 0"): 1700.0}, "dd"),
        "zero": values("x", four | {("n4", "GPU 0"): 0.0}),
        "text": values("x", four) + "x\tn4\tGPU 0\tnan\tGB/s\ttool\t\n",
        "half": values("x", four) + "x\tn4\tGPU 0\t17",
        "twice": values("x", four) + values("x", {("n0", "GPU 0"): 1700.0}),
        "empty": "",
    }
    found = fleet(tmp_path, cases, figures)
    words = {name: {line[7]: line[1] for line in lines} for name, lines in found.items()}
    everyone = dict.fromkeys(("n0", "n1", "n2", "n3"), "pass")
    assert words["floor"] == {"n0": "fail"}
    assert found["floor"][0][6].startswith("published: ")
    assert words["other-tool"] == {"n0": "no_baseline"}
    assert (words["warns"], words["passes"]) == ({"n0": "warn"}, {"n0": "pass"})
    assert words["unit"] == {"n0": "error"}
    assert words["derived-alone"] == {"n0": "no_baseline"}
    assert set(words["derived-low"].values()) == {"warn"}
    assert found["derived-low"][0][6].startswith("derived: 0.9 x 1700")
    assert words["derived-fleet"] == everyone
    assert set(words["two-nodes"].values()) == {"no_baseline"}
    assert set(words["mixed-tools"].values()) == {"no_baseline"}
    for name in ("zero", "text", "half"):
        assert words[name] == everyone | {"n4": "error"}, name
    assert words["twice"] == everyone | {"n0": "error"}
    assert found["empty"] == []


def test_earlier_runs_stand_in_for_other_nodes(tmp_path: Path) -> None:
    """Three of them, with the same tool; where there are nodes enough to compare they do not count."""
    lines = [f"x\ttool\tGB/s\t{100 + run}\t{run}\n" for run in range(3)]
    (tmp_path / "history").write_text("".join(lines) + "x\tother\tGB/s\t1\t1\nhalf\ttool\n")
    (tmp_path / "short").write_text("".join(lines[:2]) * 2)
    (tmp_path / "figures.tsv").write_text("#check\n")
    (tmp_path / "low").write_text(values("x", {("n0", "a"): 85}))
    (tmp_path / "good").write_text(values("x", {("n0", "a"): 95}))
    (tmp_path / "fleet").write_text(values("x", {(f"n{node}", "a"): 50 for node in range(5)}))
    calls = ("low history", "good history", "good short", "fleet history")
    script = "".join(f"judge_fleet figures.tsv {call} | cut -f 2 | sort -u\n" for call in calls)
    assert bash(SETTINGS + script, tmp_path).split() == ["fail", "pass", "no_baseline", "pass"]
