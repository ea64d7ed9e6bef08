"""`projects/` of the output folder, and the figures that travel in it."""

from __future__ import annotations

import dataclasses
import gzip
import re
import shlex
from pathlib import Path, PurePosixPath

import pytest

from generator import catalog
from generator.errors import CannotRead
from generator.files import assets
from generator.plan.types import Plan, ProjectPlan
from generator.projects import figures, health_checks
from generator.render import projects
from tests import plans

NAMES = ("misc_ubuntu", "misc_ndv4", "pyxis_enroot", "slurm_nhc")


def shipped(*names: str) -> Plan:
    source = PurePosixPath("projects")
    return dataclasses.replace(
        plans.minimal(),
        projects=tuple(
            ProjectPlan(name, "1.0.0", source / name, False, ("default",), ("htc",), "0" * 64) for name in names
        ),
    )


def test_every_project_of_the_plan_and_no_other() -> None:
    files = projects.render(shipped("misc_ubuntu", "slurm_nhc"))
    assert {path.parts[:2] for path in files} == {("projects", "misc_ubuntu"), ("projects", "slurm_nhc")}
    assert PurePosixPath("projects/misc_ubuntu/project.ini") in files


def test_scripts_are_executable_and_data_is_not() -> None:
    for path, file in projects.render(shipped(*NAMES)).items():
        assert file.executable == (path.suffix == ".sh"), path


def test_rendering_twice_gives_the_same_bytes_whatever_the_definition() -> None:
    one = projects.render(shipped(*NAMES))
    other = dataclasses.replace(shipped(*NAMES), name="other", location="westeurope")
    assert projects.render(other) == one
    assert list(projects.render(other)) == list(one)


def test_all_four_fit_the_deployment_with_room_to_spare() -> None:
    """The channel carries 1.25 MiB compressed; the projects without blobs stay below a tenth of it."""
    content = b"".join(file.content for file in projects.render(shipped(*NAMES)).values())
    assert len(gzip.compress(content)) < 128 * 1024


def test_a_local_project_is_read_beside_the_definition(tmp_path: Path) -> None:
    scripts = tmp_path / "mine/specs/default/cluster-init/scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "mine/project.ini").write_text("[project]\nname = mine\nversion = 0.1.0\n")
    (scripts / "10-x.sh").write_text("#!/bin/sh\n")
    local = ProjectPlan("mine", "0.1.0", PurePosixPath("mine"), True, ("default",), ("htc",), "0" * 64)
    plan = dataclasses.replace(plans.minimal(), projects=(local,))
    assert [path.as_posix() for path in projects.render(plan, tmp_path)] == [
        "projects/mine/project.ini", "projects/mine/specs/default/cluster-init/scripts/10-x.sh",
    ]  # fmt: skip
    with pytest.raises(CannotRead, match="'mine' lies beside the definition"):
        projects.render(plan)


# ---------------------------------------------------------------- figures


def rows(table: str) -> list[list[str]]:
    return [line.split("\t") for line in table.splitlines() if not line.startswith("#")]


def test_the_table_of_the_node_base_has_five_full_columns_for_all_sizes() -> None:
    found = rows(figures.node_base())
    assert all(len(row) == 5 and all(row) for row in found)
    keys = [(row[0], row[1]) for row in found]
    assert len(keys) == len(set(keys))
    assert {row[0] for row in found} >= {name.lower() for name in catalog.vm_size_names()}
    figures.node_base().encode("ascii")


def test_every_figure_has_a_source_and_what_nobody_published_is_null() -> None:
    for size, key, value, _, source in rows(figures.node_base()):
        assert value == "null" or source != "null", (size, key, value)


# ---------------------------------------------------------------- health checks


def checks_of(size: str, kind: str) -> dict[str, dict[str, str]]:
    """Check → its arguments, as the shell on the node would read them."""
    found: dict[str, dict[str, str]] = {}
    for name, row_kind, line, _ in rows(health_checks.table()):
        if (name, row_kind) == (size, kind):
            check, *words = shlex.split(line)
            assert check not in found, f"{size} has {check} twice"
            found[check] = dict(word.split("=", 1) for word in words)
    return found


def test_the_table_of_checks_is_four_full_columns_for_all_sizes() -> None:
    found = rows(health_checks.table())
    assert all(len(row) == 4 and all(row) for row in found)
    assert {row[0] for row in found} >= {name.lower() for name in catalog.vm_size_names()} | {"*", "unknown"}
    assert {row[1] for row in found} == {"quick", "deep"}
    health_checks.table().encode("ascii")


def test_every_check_of_the_table_exists_on_the_node() -> None:
    """A check that nobody defined drained every H100 node of a reference."""
    folder = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
    text = "".join(file.read_text() for file in folder.glob("checks-*.sh"))
    defined = set(re.findall(r"^check_([a-z0-9_]+)\(\)", text, re.MULTILINE))
    used = {row[2].split()[0] for row in rows(health_checks.table())}
    assert used <= defined
    assert defined - used <= {"mounts", "site", "image_nhc", "one_mount", "array"}, "written by 20-health.sh or helpers"


def test_every_limit_has_a_source() -> None:
    for size, kind, line, source in rows(health_checks.table()):
        numbers = [word for word in shlex.split(line)[1:] if not word.endswith("=null")]
        assert source != "null" or all(word.split("=")[0] in ("ranks", "attempts", "expected") for word in numbers), (
            size, kind, line,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "kind", "check", "arguments"),
    [
        ("standard_nd96amsr_a100_v4", "deep", "nccl_all_reduce",
         {"ranks": "8", "message": "16G", "floor_gb_per_s": "228", "attempts": "2"}),
        ("standard_nd96asr_v4", "deep", "nccl_loopback",
         {"ranks": "8", "message": "8G", "floor_gb_per_s": "18", "attempts": "2"}),
        ("standard_nd96isr_h200_v5", "deep", "ib_write",
         {"floor_gbit_per_s": "360", "message_bytes": "8388608", "gpu_memory": "yes"}),
        ("standard_nd40rs_v2", "deep", "ib_write",
         {"floor_gbit_per_s": "78", "message_bytes": "65536", "gpu_memory": "no", "queue_pairs": "2", "seconds": "10"}),
        ("standard_nd96isr_h100_v5", "quick", "gpu_remap",
         {"pending_max": "0", "failure_max": "0", "uncorrectable_max": "512"}),
        ("standard_nd40rs_v2", "quick", "gpu_pages", {"retired_max": "61"}),
        ("standard_hb120-64rs_v3", "quick", "cpu", {"threads": "64", "sockets": "2"}),
        ("standard_d4as_v5", "quick", "cpu", {"threads": "4"}),
        ("standard_nd96isr_h100_v5", "quick", "nvme_disks", {"count": "8"}),
        ("standard_nd128isr_gb300_v6", "deep", "gpu_copy_to_device",
         {"floor_gb_per_s": "null", "warn_below_gb_per_s": "null"}),
        ("standard_nd96isr_h100_v5", "quick", "gpu_throttling", {"error_mask": str(0xE8)}),
        ("standard_nc96ads_a100_v4", "deep", "gpu_copy_peer",
         {"floor_gb_per_s": "238", "warn_below_gb_per_s": "249.9"}),
    ],
)  # fmt: skip
def test_lines_have_the_figures_of_the_catalogue(size: str, kind: str, check: str, arguments: dict[str, str]) -> None:
    assert checks_of(size, kind)[check] == arguments


def test_a_single_gpu_has_nothing_to_talk_to() -> None:
    assert not {"gpu_copy_peer", "nccl_all_reduce"} & set(checks_of("standard_nc24ads_a100_v4", "deep"))


def test_amd_sizes_say_what_is_not_measured() -> None:
    deep = checks_of("standard_nd96isr_mi300x_v5", "deep")
    assert deep["not_supported"]["checks"].split() == [
        "gpu_copy_to_device", "gpu_copy_from_device", "gpu_copy_peer", "rccl_all_reduce",
    ]  # fmt: skip
    assert checks_of("standard_nd96isr_mi300x_v5", "quick")["amd_gpu_count"] == {"count": "8"}


def test_an_unknown_size_demands_no_gpu() -> None:
    found = checks_of("unknown", "quick")
    gpu = [arguments for check, arguments in found.items() if check.startswith("gpu_") and check != "gpu_xid"]
    assert all(arguments["expected"] == "no" for arguments in gpu)
    assert checks_of("unknown", "deep") == {}
