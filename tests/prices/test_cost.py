"""`cycleforge cost` against a stand-in of the price list."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.cli import main
from generator.prices import service
from generator.prices.price import own_items, query
from generator.prices.service import Kept, PriceList
from generator.render import readme
from generator.render.plan_sections import sections
from tests.answers import data_of
from tests.bed.plans import SMALL, plan_from
from tests.prices.list import PriceServer, item, serving_prices, vm

HUNDREDS = [
    item("Virtual Network", "Virtual Network Private Link", "Standard", f"Standard Rule {number}", 0.1)
    for number in range(230)
]
ITEMS = [
    *vm("Standard_D4as_v5", 0.2),
    *vm("Standard_D64ds_v5", 4.0),
    *vm("Standard_D4as_v5", 0.7, armRegionName="westeurope"),
    item("Azure Bastion", "Azure Bastion", "Standard", "Standard Gateway", 0.3),
    item("Azure Bastion", "Azure Bastion", "Basic", "Basic Gateway", 0.1),
    item("NAT Gateway", "NAT Gateway", "Standard", "Standard Gateway", 0.05, armRegionName="Global"),
    item("NAT Gateway", "NAT Gateway", "Standard", "Standard Data Processed", 0.05, armRegionName="Global"),
    item("Virtual Network", "IP Addresses", "Standard", "Standard IPv4 Static Public IP", 0.005),
    *HUNDREDS,
    item("Virtual Network", "Virtual Network Private Link", "Standard", "Standard Private Endpoint", 0.01,
         armRegionName="Global"),
    item("Storage", "Premium SSD Managed Disks", "P4 LRS", "P4 LRS Disk", 7.3, unitOfMeasure="1/Month"),
    item("Storage", "Premium SSD Managed Disks", "P4 LRS", "P4 LRS Disk Mount", 1.0, unitOfMeasure="1/Month"),
    item("Storage", "Premium SSD Managed Disks", "P10 LRS", "P10 LRS Disk", 14.6, unitOfMeasure="1/Month"),
]  # fmt: skip
FIXED = 0.2 + 0.3 + 0.005 + 0.05 + 0.005 + 0.01 + 0.01 + 0.02
"""Server, Bastion with address, NAT gateway with address, endpoint, /sched (P4), /shared (P10)."""


OTHERS = {
    "vm": vm("Standard_D4as_v5", 0.2),
    "vm_windows": vm("Standard_D4as_v5", 0.2),
    "lustre": [
        item("Azure Managed Lustre", f"Azure Managed Lustre {tier}", f"Premium {tier}", "Capacity", 1.0)
        for tier in ("40", "400", "140", "125")
    ],
    "mysql": [
        item("Azure Database for MySQL", f"Flexible Server {size}", size, size, 1.0, armSkuName=size)
        for size in ("B1MS", "B1S", "B12MS")
    ],
}
"""Neighbours of a meter, which the same question brings."""


class Run:
    def __init__(self, server: PriceServer, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.server, self.folder, self._capsys = server, folder, capsys

    def __call__(self, *words: str, text: str = SMALL) -> tuple[int, str, str]:
        (self.folder / "small.yaml").write_text(text)
        code = main(["cost", "small.yaml", *words])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        assert not [each for each in self.server.asked if each.startswith("REFUSED")]
        return code, out, err

    def json(self, *words: str, text: str = SMALL) -> tuple[int, dict[str, Any]]:
        code, out, _ = self(*words, "--json", text=text)
        return code, data_of(out)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving_prices(list(ITEMS)) as server:
        monkeypatch.setattr(service, "LIMITS", server.limits())
        yield Run(server, tmp_path, capsys)


def test_three_states_are_added_up(run: Run) -> None:
    code, found = run.json()
    assert code == 0, found
    sums = {state: each["per_hour"] for state, each in found["together"].items()}
    idle = FIXED + 0.2 + 0.2
    assert sums == {
        "deployed": pytest.approx(FIXED), "started": pytest.approx(idle), "full": pytest.approx(idle + 2 * 4.0)
    }  # fmt: skip
    assert found["together"]["deployed"]["per_month"] == pytest.approx(FIXED * 730)
    assert not any(each["without_price"] for each in found["together"].values())


def test_the_text_says_what_when_and_by_which_meter(run: Run, snapshot: SnapshotAssertion) -> None:
    code, out, err = run(text=SMALL.replace("jobs: {validation: [smoke]}\n", ""))
    assert code == 0
    day, _, rest = out.partition(", USD")
    assert day.startswith("small in southcentralus: prices of 20")
    assert rest == snapshot
    assert err == ""


def test_spot_nodes_have_the_price_of_spot(run: Run) -> None:
    code, found = run.json(text=SMALL.replace("max_nodes: 2,", "max_nodes: 2, spot: true,"))
    (partition,) = [each for each in found["billed"] if each["title"] == "partition htc"]
    assert (code, partition["per_hour"]) == (0, pytest.approx(2 * 4.0 / 5))
    assert "Spot" in partition["meter"]


def test_what_has_no_price_is_named_and_not_counted(run: Run) -> None:
    run.server.items[:] = [each for each in ITEMS if each["armSkuName"] != "Standard_D64ds_v5"]
    code, out, _ = run()
    assert code == 1
    row = next(line for line in out.splitlines() if "partition htc" in line)
    assert row.split() == ["partition", "htc", "2", "×", "Standard_D64ds_v5", "?", "no", "price", "found"]
    assert "and 1 thing without a price" in out


def test_two_prices_are_not_chosen_from(run: Run) -> None:
    run.server.items.append(item("Azure Bastion", "Azure Bastion", "Standard", "Standard Gateway", 0.9))
    code, found = run.json()
    (bastion,) = [each for each in found["billed"] if each["title"] == "Bastion"]
    assert (code, bastion["state"], bastion["per_hour"]) == (1, "several", None)
    assert found["together"]["deployed"]["without_price"] == ["Bastion"]


def test_prices_are_kept_for_the_day(run: Run) -> None:
    run.json()
    before = len(run.server.asked)
    assert before > 0
    assert run.json()[0] == 0
    assert len(run.server.asked) == before
    run.json("--refresh")
    assert len(run.server.asked) == 2 * before


def test_its_lines_ask_what_it_asks(run: Run) -> None:
    code, out, _ = run("--print")
    assert (code, run.server.asked) == (0, [])
    for line in out.splitlines():
        *words, address = shlex.split(line)
        answer = subprocess.run([*words, run.server.led(address)], capture_output=True, check=True, timeout=60).stdout
        assert json.loads(answer)["Items"]
    theirs = sorted(run.server.asked)
    run.server.asked.clear()
    assert run.json()[0] == 0
    assert sorted(each for each in run.server.asked if "skip" not in each) == theirs


def test_without_a_network_older_prices_are_used_and_their_day_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = query("bastion", (), "southcentralus", "USD")
    day = "2026-11-01"
    PriceList(Kept(tmp_path / "cache/cycleforge/prices"), run.server.limits(), lambda: day).ask([asked])
    monkeypatch.setattr(run.server, "body", b"<html>sign in to our proxy</html>")
    code, out, err = run()
    assert code == 4
    assert f"prices of {day}, USD" in out
    assert next(line for line in out.splitlines() if "Bastion  " in line).split()[2] == "0.30"
    assert "the price list was not reached" in next(line for line in out.splitlines() if "scheduler" in line)
    assert err.splitlines()[-1] == (
        "warning: the price list was not reached: the answer is not the price list: it is not JSON; "
        "older prices are used"
    )


def test_without_any_price_no_sum_is_zero(run: Run) -> None:
    run.server.body = b"{}"
    code, out, err = run()
    assert code == 4
    together = out[out.index("together") :].splitlines()[2:5]
    assert [line.split("  ")[-1].strip() for line in together] == [
        "and 8 things without a price", "and 10 things without a price", "and 11 things without a price"
    ]  # fmt: skip
    assert all(" ? " in line for line in together)
    assert "there are no older prices on this machine" in err


@pytest.mark.parametrize("after", [None, "0"])
def test_too_many_requests_are_asked_again(run: Run, after: str | None) -> None:
    run.server.refusals += [after] * 2
    assert run.json()[0] == 0


def test_all_pages_are_read(run: Run) -> None:
    """The price stands behind two pages of the service's other meters."""
    run.server.items[:] = [
        *(each | {"serviceName": "Azure Bastion", "meterName": "Standard Data Transfer Out"} for each in HUNDREDS),
        *ITEMS,
    ]
    code, found = run.json()
    (bastion,) = [each for each in found["billed"] if each["title"] == "Bastion"]
    assert (code, bastion["per_hour"]) == (0, 0.3)
    assert [each for each in run.server.asked if "$skip=200" in each]


def test_a_damaged_cache_is_asked_again(run: Run, tmp_path: Path) -> None:
    run.json()
    for path in (tmp_path / "cache/cycleforge/prices").iterdir():
        path.write_text('{"format": 1, "items":')
    before = len(run.server.asked)
    assert run.json()[0] == 0
    assert len(run.server.asked) == 2 * before


def test_another_currency(run: Run) -> None:
    code, found = run.json("--currency", "eur")
    assert (code, found["currency"]) == (0, "EUR")
    assert all("currencyCode='EUR'" in each.replace("%27", "'") for each in run.server.asked)
    code, _, err = run("--currency", "XYZ")
    assert code == 2
    assert "the price list has no currency 'XYZ'" in err


def test_only_the_public_cloud_has_a_price_list(run: Run) -> None:
    code, out, err = run(text=SMALL.replace("southcentralus", "usgovvirginia") + "azure: {cloud: usgov}\n")
    assert (code, out) == (2, "")
    assert "Azure publishes no price list" in err
    assert run.server.asked == []


@pytest.mark.parametrize("cloud", ["public", "usgov"])
def test_plan_and_readme_say_where_costs_are_shown(cloud: str) -> None:
    region = {"public": "southcentralus", "usgov": "usgovvirginia"}[cloud]
    plan = plan_from(f"location: {region}\nazure: {{cloud: {cloud}}}\n")
    head = next(iter(sections(plan)))
    page = readme.render(plan)[PurePosixPath("README.md")].content.decode()
    command = "see `cycleforge cost minimal`"
    assert [("costs", command) in head.rows, command in page] == [cloud == "public"] * 2


def test_a_broken_definition_asks_nobody(run: Run) -> None:
    code, _, err = run(text=SMALL.replace("max_nodes: 2", "max_nodes: two"))
    assert code == 1
    assert "max_nodes" in err
    assert run.server.asked == []


def on_gpus(job: str) -> str:
    """SMALL with a partition of H100 nodes and this training job on two of them."""
    return SMALL.replace(
        "- {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}",
        "- {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}\n"
        "    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2}",
    ).replace("validation: [smoke]", f"training: [{{{job}, partition: gpu, nodes: 2}}]")


TRAINED = "recipe: mpt, settings: {MODEL: mpt-30b, MAX_DURATION: 100ba, GLOBAL_BATCH: 256}"
LUSTRE = "storage: {mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]}\n"


def test_a_training_job_has_its_hours_and_their_price(run: Run) -> None:
    run.server.items += vm("Standard_ND96isr_H100_v5", 98.0)
    code, found = run.json(text=on_gpus("recipe: own"))
    (job,) = found["training_jobs"]
    assert (code, job["node_hours"], job["gpu_hours"]) == (0, 2, 16), "its time limit is an hour"
    assert job["amount"] == pytest.approx(2 * 98.0)
    assert (job["at_published_speed"], job["reason"]) == (None, "its settings do not say how many steps it has")


def test_training_has_its_money_at_published_speed(run: Run) -> None:
    run.server.items += vm("Standard_ND96isr_H100_v5", 98.0)
    text = on_gpus(TRAINED).replace("10.50.0.0/22", "10.50.0.0/20") + LUSTRE
    _, found = run.json(text=text)
    (job,) = found["training_jobs"]
    published, hours = job["at_published_speed"], 100 * 256 * 2048 / 2263 / 3600
    assert (published["figure"], published["published"], published["published_on_gpus"]) == ("tokens_per_gpu", 2263, 16)
    assert published["gpu_hours"] == pytest.approx(hours)
    assert published["amount"] == pytest.approx(hours / 8 * 98.0)
    _, out, _ = run(text=text)
    part = out[out.index("training alone, at published speed") :].splitlines()
    assert part[2].split() == [
        "mpt", "0.05", "billion", "tokens", f"{hours:.1f}", f"{hours / 8 * 98:.2f}",
        "tokens_per_gpu", "2263", "on", "16", "GPUs",
    ]  # fmt: skip


def test_training_without_a_price_has_hours_and_no_amount(run: Run) -> None:
    text = on_gpus(TRAINED).replace("10.50.0.0/22", "10.50.0.0/20") + LUSTRE
    code, found = run.json(text=text)
    (job,) = found["training_jobs"]
    assert (code, job["amount"], job["at_published_speed"]["amount"]) == (1, None, None)
    assert job["at_published_speed"]["gpu_hours"] > 0


@pytest.mark.parametrize(
    ("meter", "words", "kept"),
    [
        ("vm", {"size": "Standard_D4as_v5"}, ["Virtual Machines D4as v5 Series"]),
        ("vm_windows", {"size": "Standard_D4as_v5"}, ["Virtual Machines D4as v5 Series Windows"]),
        ("lustre", {"tier": "40"}, ["Azure Managed Lustre 40"]),
        ("mysql", {"size": "B1ms"}, ["Flexible Server B1MS"]),
    ],
)
def test_a_meter_takes_its_own_items_only(meter: str, words: dict[str, str], kept: list[str]) -> None:
    asked = query(meter, tuple(words.items()), "southcentralus", "USD")
    assert [each["productName"] for each in own_items(asked, OTHERS[meter])] == kept
