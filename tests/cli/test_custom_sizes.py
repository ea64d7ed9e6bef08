"""`cycleforge list vm-sizes --from FILE`: from what Azure lists to the block of a definition.

The items are those of the Resource SKUs API: https://learn.microsoft.com/rest/api/compute/resource-skus/list. az prints
them as a bare list, the API answers `{"value": […]}`; null stands for an empty list, and every value is a text.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import pipeline
from generator.cli import main
from generator.definition.pages.custom_sizes import block_data, blocks_text
from generator.definition.skus import read_skus
from generator.definition.text.source import load
from generator.errors import CannotRead
from tests.answers import data_of
from tests.bed.yaml_data import yaml_data

GPU = "Standard_ND96isrexample_v9"
CAPABILITIES = {
    "vCPUs": "96",
    "MemoryGB": "1900",
    "GPUs": "8",
    "RdmaEnabled": "True",
    "CpuArchitectureType": "x64",
    "PremiumIO": "True",
    "EncryptionAtHostSupported": "False",
    # Two sizes in whole MiB, of which the first is not a multiple of the second, as Azure lists Standard_L80s_v3.
    "NvmeDiskSizeInMiB": "18310546",
    "NvmeSizePerDiskInMiB": "1831054",
}


def item(name: str = GPU, **changes: Any) -> dict[str, Any]:
    """One VM size as the API lists it; `capabilities` replaces single ones, None takes one out."""
    capabilities = CAPABILITIES | changes.pop("capabilities", {})
    found: dict[str, Any] = {
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "size": name.removeprefix("Standard_"),
        "family": "standardNDEXAMPLEv9Family",
        "locations": ["southcentralus"],
        "locationInfo": [{"location": "southcentralus", "zones": ["2", "1"], "zoneDetails": None}],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items() if value is not None],
        "restrictions": None,
    }
    return found | changes


def saved(folder: Path, value: object, encoding: str = "utf-8") -> str:
    path = folder / "skus.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding=encoding)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["list", "vm-sizes", "--from", *words]) == 0
    return capsys.readouterr().out


def test_the_block_has_what_azure_says_and_asks_for_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, saved(tmp_path, [item()])) == (
        "custom_vm_sizes:\n"
        f"  # {GPU} is offered in southcentralus (zones 1, 2)\n"
        f"  - name: {GPU}\n"
        "    vcpus: 96\n"
        "    memory_gib: 1900\n"
        "    # guest_memory_mib: RealMemory of `slurmd -C` on such a VM, which Azure's list does not say\n"
        "    architecture: x86_64\n"
        "    gpus:\n"
        "      count: 8\n"
        "      vendor: # fill in: NVIDIA or AMD\n"
        "      model: # fill in: for example H100\n"
        "      # memory_gb: of one GPU, which Azure's list does not say\n"
        "    infiniband:\n"
        "      nics: # fill in: ports of one VM\n"
        "      gbps_per_nic: # fill in: Gb/s of one port\n"
        "    nvme_disks: 10\n"
        "    premium_storage: true\n"
        "    encryption_at_host: false\n"
        "    quota_family: standardNDEXAMPLEv9Family\n"
    )


def test_what_is_not_filled_in_is_a_problem_and_the_filled_in_block_builds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = printed(capsys, saved(tmp_path, [item()]))
    partition = f"{{name: hpc, vm_size: {GPU}, max_nodes: 2}}"
    rest = f"name: team-a\nlocation: southcentralus\nslurm: {{partitions: [{partition}]}}\n"
    lines = (rest + block).splitlines()
    problems = pipeline.check((rest + block).encode(), "x.yaml", {}, Path()).problems
    open_keys = [number for number, line in enumerate(lines, 1) if "# fill in" in line]
    assert len(open_keys) == 4
    places = load((rest + block).encode(), "x.yaml", {})
    found = [
        places.position(problem.path, on_key=problem.on_key).line for problem in problems if problem.level == "error"
    ]
    assert found == open_keys
    filled = block
    for line, value in {"vendor:": "NVIDIA", "model:": "B300", "nics:": "8", "gbps_per_nic:": "800"}.items():
        filled = filled.replace(f"{line} #", f"{line} {value} #")
    problems = pipeline.check((rest + filled).encode(), "x.yaml", {}, Path()).problems
    assert not [problem for problem in problems if problem.level != "info"]


def test_a_plain_size_needs_nothing_filled_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = {"GPUs": None, "RdmaEnabled": "False", "NvmeDiskSizeInMiB": None, "CpuArchitectureType": "Arm64"}
    text = printed(capsys, saved(tmp_path, {"value": [item("Standard_D4pexample_v9", capabilities=bare)]}))
    (block,) = yaml_data(text)["custom_vm_sizes"]
    assert block == {
        "name": "Standard_D4pexample_v9",
        "vcpus": 96,
        "memory_gib": 1900,
        "architecture": "aarch64",
        "premium_storage": True,
        "encryption_at_host": False,
        "quota_family": "standardNDEXAMPLEv9Family",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_are_read_as_shells_write_them(encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PowerShell redirects as UTF-16, or as UTF-8 with a mark."""
    assert f"name: {GPU}" in printed(capsys, saved(tmp_path, [item()], encoding))


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps([item()]).encode())))
    assert f"name: {GPU}" in printed(capsys, "-")


def test_null_lists_are_empty_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = item() | {"locations": None, "locationInfo": None, "capabilities": None, "family": None}
    text = printed(capsys, saved(tmp_path, [bare]))
    assert f"  # {GPU}: the file names no region\n" in text
    assert "    vcpus: # fill in: Azure does not say it\n" in text
    assert "    architecture: # fill in: x86_64 or aarch64\n" in text
    assert "gpus" not in text


@pytest.mark.parametrize(
    ("restriction", "words"),
    [
        (
            {"type": "Location", "values": ["southcentralus"], "reasonCode": "NotAvailableForSubscription"},
            " in southcentralus: NotAvailableForSubscription (ask Azure support for access)",
        ),
        (
            {
                "type": "Zone",
                "values": ["southcentralus"],
                "restrictionInfo": {"locations": ["southcentralus"], "zones": ["3", "1"]},
                "reasonCode": "QuotaId",
            },
            " in zones 1, 3 of southcentralus: QuotaId (this kind of subscription cannot have it)",
        ),
        ({"type": "Location", "values": None, "restrictionInfo": None}, ": no reason given"),
        ({"type": "Location", "values": ["a\n- name: x"], "reasonCode": "b\nc"}, " in a - name: x: b c"),
    ],
)
def test_restrictions_are_comments(
    restriction: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, saved(tmp_path, [item(restrictions=[restriction])]))
    assert f"  # {GPU} is RESTRICTED{words}\n" in text


def test_a_retirement_is_a_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = item(capabilities={"RetirementDateUtc": "2028-11-15T00:00:00Z"})
    assert f"  # {GPU} RETIRES on 2028-11-15T00:00:00Z\n" in printed(capsys, saved(tmp_path, [found]))


def test_a_constrained_size_counts_what_it_may_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, saved(tmp_path, [item(capabilities={"vCPUsAvailable": "24"})]))
    assert "    vcpus: 24  # of 96 of the whole machine\n" in text


def test_sizes_may_be_chosen_and_known_ones_need_no_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = item("Standard_L8example_v9", capabilities={"GPUs": None, "RdmaEnabled": None})
    path = saved(tmp_path, [item(), other, item("Standard_D4as_v5"), {"resourceType": "disks", "name": "P30"}])
    names = [block["name"] for block in yaml_data(printed(capsys, path))["custom_vm_sizes"]]
    assert names == ["Standard_L8example_v9", GPU]
    names = [block["name"] for block in yaml_data(printed(capsys, path, "l8EXAMPLE"))["custom_vm_sizes"]]
    assert names == ["Standard_L8example_v9"]
    known = printed(capsys, path, "D4as_v5")
    assert known.splitlines()[:2] == [
        "# no block is needed",
        "# Standard_D4as_v5 is in the catalogue and needs no block",
    ]


def test_json_has_null_where_azure_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = data_of(printed(capsys, saved(tmp_path, [item()]), "--json"))
    assert row["gpus"] == {"count": 8, "vendor": None, "model": None, "memory_gb": None}
    assert row["infiniband"] == {"nics": None, "gbps_per_nic": None}
    assert row["offered"] == [{"region": "southcentralus", "zones": ["1", "2"]}]


def test_regions_that_agree_are_one_size(tmp_path: Path) -> None:
    east = item(locations=["eastus"], locationInfo=None)
    (sku,) = read_skus(json.dumps([item(), east]).encode(), "x")
    assert [offer.region for offer in sku.offers] == ["southcentralus", "eastus"]
    (sku,) = read_skus(json.dumps([item(locations=["SouthCentralUS"])]).encode(), "x")
    assert [(offer.region, offer.zones) for offer in sku.offers] == [("southcentralus", ("1", "2"))]
    east = item(locations=["eastus"], locationInfo=None, capabilities={"vCPUs": "48"})
    with pytest.raises(CannotRead, match=rf"different figures of {GPU} \(southcentralus and eastus\)"):
        read_skus(json.dumps([item(), east]).encode(), "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x is empty"),
        (b" \n\0", "x is empty"),
        (b"Name  Zones\n----", "x:1:1: this is not JSON: expecting value"),
        (b'[\n  {"name": ]', "x:2:12: this is not JSON: expecting value"),
        (b'[{"name": "a"}', "x:1:15: this is not JSON: expecting ',' delimiter"),
        (b"\xff\xfe\x00", "x is not text"),
        (b'["\xff"]', "x is not text"),
        (b"[" * 100_000, "x: its brackets are nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "x has a number that is too long"),
        (b"5", "x is JSON, but not the list that az vm list-skus prints"),
        (b'{"value": {}}', "x is JSON, but not the list that az vm list-skus prints"),
        (b'{"error": {"code": "AuthorizationFailed"}}', "x is JSON, but not the list that az vm list-skus prints"),
        (b"[]", "x is an empty list: az found no such VM size"),
        (b'{"value": []}', "x is an empty list: az found no such VM size"),
        (b'["Standard_D4as_v5"]', "item 1 of x is not a mapping"),
        (b'[{"resourceType": "disks", "name": "P30"}]', "x has no item of the type virtualMachines: it has disks"),
        (b"[{}]", "x has no item of the type virtualMachines"),
        (b'[{"resourceType": "virtualMachines"}]', "x has a VM size without a usable name: None"),
        (
            b'[{"resourceType": "virtualMachines", "name": "a: b"}]',
            "x has a VM size without a usable name: a: b",
        ),
        (
            json.dumps([item(capabilities={"vCPUs": "many"})]).encode(),
            f"x: {GPU}: the capability vCPUs is many, not a number",
        ),
        (
            json.dumps([item(capabilities={"MemoryGB": "NaN"})]).encode(),
            f"x: {GPU}: the capability MemoryGB is NaN, not a number",
        ),
    ],
)
def test_a_bad_file_is_a_clear_problem(content: bytes, message: str) -> None:
    with pytest.raises(CannotRead) as found:
        read_skus(content, "x")
    assert found.value.message == message
    assert found.value.hint


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["vm-sizes", "--from", "FILE", "H900"], "FILE has no VM size that contains 'H900'"),
        (["vm-sizes", "H900", "--from", "FILE"], "FILE has no VM size that contains 'H900'"),
        (["vm-sizes", "--from", "missing.json"], "cannot read missing.json: no such file or directory"),
        (["releases", "--from", "FILE"], "--from belongs to `list vm-sizes`, not to `list releases`"),
    ],
)
def test_a_wrong_call_is_a_clear_problem(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, [item()])
    assert main(["list", *(word.replace("FILE", path) for word in words)]) == 2
    assert message.replace("FILE", path) in capsys.readouterr().err


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from([*item(), "value"])
CHANGED = st.dictionaries(KEYS, JSON, max_size=4).map(lambda changes: item() | changes)
CAPABILITY = st.fixed_dictionaries({"name": st.sampled_from([*CAPABILITIES, "vCPUsAvailable"]) | JSON, "value": JSON})


@given(st.lists(CHANGED | st.lists(CAPABILITY).map(lambda some: item() | {"capabilities": some}) | JSON, max_size=3))
@settings(max_examples=60, deadline=None)
def test_whatever_a_file_holds_it_is_sizes_or_a_clear_problem(items: list[Any]) -> None:
    problem = None
    try:
        skus = read_skus(json.dumps(items).encode(), "x")
    except CannotRead as error:
        problem = error
    if problem is not None:
        assert problem.hint
        assert problem.message.startswith(("x", "item "))
        assert problem.message.isprintable()
        return
    text = blocks_text(skus)
    assert [block["name"] for block in yaml_data(text)["custom_vm_sizes"]] == [sku.name for sku in skus]
    json.dumps([block_data(sku) for sku in skus])


def test_gpus_in_parts_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, saved(tmp_path, [item(capabilities={"GPUs": "0.5", "NvmeSizePerDiskInMiB": "7"})]))
    assert "      count: # fill in: whole GPUs; the file says 0.5\n" in text
    assert "    # nvme_disks: how many; together they have 18310546 MiB\n" in text


def test_a_number_of_gpus_that_is_a_control_character(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, saved(tmp_path, [item(capabilities={"GPUs": "\x1b[2J"})]))
    assert "      count: # fill in: whole GPUs; the file says '\\x1b[2J'\n" in text
