"""Pages as text: nothing in them can be anything but text, the same input gives the same bytes, no file is lost."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from generator.errors import CannotWrite
from generator.pages.shell import write
from generator.plan.gates import gate_plans
from generator.render.plan_page import plan_page
from generator.validation.assess import assess
from generator.validation.compare import compare, side
from generator.validation.gather import gather
from generator.validation.page import report_page
from tests.bed.plans import plan_from, slurm_of
from tests.command import ROOT
from tests.validation import records

HOSTILE = "</script></style><script>window.hacked = 1</script><img src=x onerror=hacked=1>\"'>&amp;{{ 7 * 7 }}"

UNITLESS = ("hbm read", "alltoall", "/data read, 6 clients", "pairs")


class Reader(HTMLParser):
    """Elements with the names of their attributes; what policy, style and script say."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.addresses: list[str] = []
        self.policy = ""
        self.inside: dict[str, str] = {"style": "", "script": ""}
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag, tuple(sorted(name for name, _ in attrs))] += 1
        self._open = tag
        values = dict(attrs)
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""
        self.addresses += [str(value) for name, value in attrs if name in ("href", "src", "action", "data", "srcset")]

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.inside:
            self.inside[self._open] += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def page_of(folder: Path, *, comparison: bool = True) -> str:
    gathered = gather([str(folder)])
    sides = None
    if comparison:
        first, last = gathered.runs[0], gathered.runs[-1]
        sides = compare(*(side(run.label, gathered.runs) for run in (first, last)))
    return report_page(assess(gathered), sides)


def poisoned(value: dict[str, Any]) -> dict[str, Any]:
    """A record with markup in every text that may be any text; the text that was there stays at the end."""

    def bad(text: str) -> str:
        return f"{HOSTILE} {text}"

    def with_bad(entry: dict[str, Any], *names: str) -> dict[str, Any]:
        return entry | {name: bad(entry[name]) for name in names}

    tables = {
        name: {bad(key): bad(each) for key, each in value[name].items()}
        for name in ("versions", "settings", "environment")
    }
    nodes = [
        with_bad(node, "physical_host") | {"facts": {bad(key): bad(each) for key, each in node["facts"].items()}}
        for node in value["nodes"]
    ]
    # A unit that is not one takes a check out of some charts; half of the checks keep theirs.
    checks = [
        with_bad(each, "detail", "source", *(("unit",) if each["check"] in UNITLESS else ()))
        | {"check": f"{each['check']} {HOSTILE}"}
        for each in value["checks"]
    ]
    curves = [
        each | {"name": f"{each['name']} {HOSTILE}", "unit": bad(each["unit"]), "x_unit": bad(each["x_unit"])}
        for each in value["series"]
    ]
    of_run = with_bad(value, "recipe", "cluster", "partition", "vm_size", "summary")
    return of_run | tables | {"nodes": nodes, "checks": checks, "series": curves}


def poisoned_cluster(folder: Path) -> Path:
    for start in (100, 110):
        records.write(folder, *(poisoned(value) for value in records.proof(start, 6)))
    replace = [{"name": "gpu-1<b>", "physical_host": HOSTILE, "gate": HOSTILE, "how": HOSTILE, "why": HOSTILE}]
    proof = records.proved(1, (HOSTILE, "fail", HOSTILE), replace=replace)
    records.write_proof(
        folder, proof | {"level": HOSTILE, "partition": HOSTILE, "nodes": [HOSTILE], "cluster": HOSTILE}
    )
    (folder / f"{HOSTILE.replace('/', '')} run.json").write_text(HOSTILE)
    return folder


def test_no_text_of_a_record_becomes_markup(tmp_path: Path) -> None:
    """The page of poisoned records has exactly the kinds of elements that the page of good ones has."""
    good = tmp_path / "good"
    for start in (100, 110):
        records.write(good, *records.proof(start, 6))
    records.write_proof(good, records.proved(1, ("smoke", "fail", "x"), replace=[
        {"name": "gpu-1", "physical_host": "h", "gate": "smoke", "how": "drained", "why": "x"}]))  # fmt: skip
    (good / "run.json").write_text("{")
    honest = read(page_of(good))
    text = page_of(poisoned_cluster(tmp_path / "bad"))
    found = read(text)
    assert set(found.elements) <= set(honest.elements)
    assert HOSTILE not in text
    assert found.elements["script", ()] == 1
    assert found.inside == honest.inside
    assert text.count("window.hacked") > 50  # as text, so the poison did arrive
    assert "{{ 7 * 7 }}" in text


def test_the_policy_allows_the_own_style_and_script_and_nothing_else(tmp_path: Path) -> None:
    found = read(page_of(records.write(tmp_path, *records.proof(100, 6))))
    allowed = {kind: b64encode(sha256(text.encode()).digest()).decode() for kind, text in found.inside.items()}
    assert found.policy == (
        f"default-src 'none'; style-src 'sha256-{allowed['style']}'; script-src 'sha256-{allowed['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert [each for each in found.addresses if not each.startswith("#")] == []


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    """In two processes, with other hashes, another zone and language."""
    folder = records.write(tmp_path / "runs", *records.proof(100, 8), *records.proof(110, 8, sick=False))
    made = []
    for place, (seed, zone, language) in enumerate((("1", "UTC", "C"), ("77", "Asia/Tokyo", "C.UTF-8"))):
        file = tmp_path / f"{place}.html"
        done = subprocess.run(
            [sys.executable, "-m", "generator", "report", str(folder), "--html", str(file)],
            env={"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": language, "PYTHONPATH": str(ROOT)},
            capture_output=True, cwd=tmp_path,
        )  # fmt: skip
        made.append((file.read_bytes(), done.stdout))
    assert made[0] == made[1]


def test_a_page_is_never_written_over_something_else(tmp_path: Path) -> None:
    file = tmp_path / "notes.html"
    file.write_text("<!doctype html><p>my notes")
    with pytest.raises(CannotWrite, match="not a page of CycleForge"):
        write(file, "x", "--html")
    assert file.read_text() == "<!doctype html><p>my notes"
    link = tmp_path / "link.html"
    link.symlink_to(file)
    with pytest.raises(CannotWrite, match="link or device"):
        write(link, "x", "--html")
    with pytest.raises(CannotWrite, match="is a folder"):
        write(tmp_path, "x", "--html")


def test_a_page_replaces_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    page = page_of(records.write(tmp_path / "runs", *records.proof(100, 5)), comparison=False)
    write(file, page, "--html")
    write(file, page.replace("Validation", "Second"), "--html")
    assert "Second" in file.read_text()


def test_the_page_of_a_plan_shows_what_the_plan_says() -> None:
    plan = plan_from("slurm: {partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4}]}")
    page = plan_page(plan)
    for text in (
        *(subnet.name for subnet in plan.network.subnets),
        *(str(subnet.prefix) for subnet in plan.network.subnets),
        *(mount.path for mount in plan.all_mounts),
        *(job.name for job in plan.jobs),
        *(flow.purpose for flow in plan.network.flows),
        "≤ 4 × ND96isr_H100_v5, 8 GPUs", "nccl_all_reduce", "ranks=8 message=16G floor_gb_per_s=460",
        "8 × 400 Gb/s", "standardNDSH100v5Family",
        *(gate.what for gate in gate_plans(slurm_of(plan), plan.jobs) if gate.job),
    ):  # fmt: skip
        assert text in page, text
    assert page == plan_page(plan)


def test_a_plan_without_a_cluster_has_a_page() -> None:
    page = plan_page(plan_from("{slurm: null, jobs: null}"))
    assert "Picture" in page
    assert "server" in page
