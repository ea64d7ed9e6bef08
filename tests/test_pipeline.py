"""From text to plan: what stops it, what may be silenced, and what the environment must not bring in."""

from __future__ import annotations

import random
from pathlib import Path, PurePosixPath

import pytest

from generator import pipeline
from generator.pipeline import Checked
from generator.projects import lock
from generator.projects.local import shipped

GOOD = """\
name: team-a
location: southcentralus
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}
"""
UNKNOWN_SIZE = GOOD.replace("Standard_D4ads_v5", "Standard_D4ads_v99")


def check(text: str, folder: Path = Path(), **env: str) -> Checked:
    """Check one definition."""
    return pipeline.check(text.encode(), "team-a.yaml", env, folder)


def ids(checked: Checked) -> list[str]:
    """Rule ids of all problems."""
    return [problem.rule_id for problem in checked.problems]


def test_a_good_definition_has_a_plan() -> None:
    assert ids(check(GOOD)) == []
    assert check(GOOD).plan is not None


def test_an_error_leaves_no_plan() -> None:
    checked = check(UNKNOWN_SIZE)
    assert ids(checked) == ["E0401"]
    assert checked.plan is None


def test_a_silenced_error_does_not_stop_the_build() -> None:
    small = GOOD + "server: {vm_size: Standard_B2s_v2}\n"
    assert ids(check(small)) == ["E0407"]
    checked = check(small + "silence:\n  - {rule: E0407, reason: Only to try it.}\n")
    assert ids(checked) == []
    assert checked.plan is not None
    assert checked.plan.silenced == (("E0407", "Only to try it."),)
    assert pipeline.render(checked.plan, Path())


def test_an_unknown_size_stops_the_build_whatever_is_silenced() -> None:
    checked = check(UNKNOWN_SIZE + "silence:\n  - {rule: E0401, reason: A preview size of our subscription.}\n")
    assert ids(checked) == ["E0401", "E1702"]
    assert checked.plan is None


def test_a_silence_that_hides_nothing_is_reported() -> None:
    assert ids(check(GOOD + "silence:\n  - {rule: E0407, reason: No longer needed.}\n")) == ["W1703"]


def test_silences_themselves_cannot_be_silenced() -> None:
    text = GOOD + "silence:\n  - {rule: E0407, reason: x}\n  - {rule: W1703, reason: y}\n"
    assert ids(check(text)) == ["E1702"]


def test_schema_and_meaning_are_reported_together() -> None:
    text = GOOD.replace("max_nodes: 2", "max_nodes: two").replace("name: team-a", "name: Team_A")
    assert sorted(ids(check(text))) == ["E0104", "E0201"]


def test_a_secret_of_the_environment_stops_the_build_and_is_not_printed() -> None:
    checked = check(GOOD + "tags: {note: '${CYCLECLOUD_ADMIN_PASSWORD}'}\n", CYCLECLOUD_ADMIN_PASSWORD="Tr0ub4dor&3x")
    assert ids(checked) == ["E1302"]
    assert checked.plan is None
    assert "Tr0ub4dor" not in str(checked.problems)


def test_checkpoints_that_do_not_fit_are_found_before_anything_is_deployed() -> None:
    text = GOOD + "    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 16}\n"
    text = text.replace("max_nodes: 2}", "max_nodes: 2, default: true}")
    text += "storage: {mounts: [{path: /data, type: amlfs, tier: 500, size_tib: 4}]}\n"
    text += "jobs: {training: [{recipe: gpt3-175b, nodes: 16, settings: {KEEP_CHECKPOINTS: 10}}]}\n"
    # No blob is fetched here; 2 GB/s are slow for 2.4 TB.
    assert sorted(ids(check(text))) == ["E1690", "I1591", "W1698"]


def test_checkpoints_are_compared_with_the_file_system_that_they_go_to() -> None:
    """Not with the one that a job would use by itself."""
    text = GOOD + "    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 16}\n"
    text = text.replace("max_nodes: 2}", "max_nodes: 2, default: true}")
    text += "silence: [{rule: W0626, reason: the quota of the region was raised}]\n"
    text += "storage:\n  home: {type: anf, size_tib: 64}\n"
    text += "  mounts: [{path: /data, type: amlfs, tier: 500, size_tib: 4}]\n"
    text += "jobs: {training: [{recipe: gpt3-175b, nodes: 16, settings: {DATA: mock%s}}]}\n"
    for settings, errors in (
        ("", ["E1690"]),
        (", DATA_DIR: /data/gpt", ["E1690"]),
        (", DATA_DIR: /shared/gpt", []),
        (", DATA_DIR: /shared/", []),
        (", STAGE_PATH: /shared/runs", []),
        (", DATA_DIR: /shared, STAGE_PATH: /data/runs", ["E1690"]),
        (", DATA_DIR: /shared, KEEP_CHECKPOINTS: 30", ["E1690"]),
        (", SAVE_INTERVAL: 0", []),  # writes none
        (", KEEP_CHECKPOINTS: 0", ["E1690"]),  # keeps all three
        (", DATA_DIR: /shared, KEEP_CHECKPOINTS: 0", []),
        (", DATA_DIR: /shared, KEEP_CHECKPOINTS: 0, SAVE_INTERVAL: 10", ["E1690"]),
    ):
        assert [rule for rule in ids(check(text % settings)) if rule[0] == "E"] == errors, settings


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ("", "DATASET_FILES"),
        ("DATASET_FILES: 20", ""),
        ("KEEP_CHECKPOINTS: 1", "DATASET_FILES"),
        ("DATASET_FILES: 20, KEEP_CHECKPOINTS: 900, SAVE_INTERVAL: 1", "KEEP_CHECKPOINTS"),
    ],
)
def test_data_is_counted_as_far_as_it_is_taken_and_the_hint_names_what_is_largest(settings: str, hint: str) -> None:
    text = GOOD + "    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 1}\n"
    text = text.replace("max_nodes: 2}", "max_nodes: 2, default: true}")
    text += "storage: {mounts: [{path: /data, type: amlfs, tier: 500, size_tib: 4}]}\n"
    text += f"jobs: {{training: [{{recipe: gpt3-175b, nodes: 1, settings: {{MODEL: gpt3-1.3b, {settings}}}}}]}}\n"
    problems = [problem for problem in check(text).problems if problem.rule_id == "E1690"]
    assert [hint in (problem.hint or "") for problem in problems] == ([True] if hint else [])


def test_a_model_that_does_not_fit_its_nodes_is_a_warning() -> None:
    text = GOOD + "    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 1}\n"
    text = text.replace("max_nodes: 2}", "max_nodes: 2, default: true}")
    text += "jobs: {training: [{recipe: gpt3-175b, nodes: 1, settings: {MODEL: gpt3-175b}}]}\n"
    text += "storage: {mounts: [{path: /data, type: amlfs, tier: 500, size_tib: 128}]}\n"
    checked = check(text)
    assert "W1691" in ids(checked)
    assert checked.plan is not None


def test_a_shipped_project_that_changed_without_a_version_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    container, base = shipped("pyxis_enroot"), shipped("misc_ubuntu")
    released = {base.name: {base.version: "0" * 64}, container.name: {container.version: container.digest}}
    monkeypatch.setattr(lock, "read_lock", lambda _: released)
    checked = check(GOOD)
    assert ids(checked) == ["E1590"]
    assert "misc_ubuntu" in checked.problems[0].message
    assert checked.problems[0].hint == "cycleforge project bump misc_ubuntu"
    assert checked.plan is None


def local_project(folder: Path, size_bytes: int) -> str:
    """A definition with a local project that holds one incompressible file; returns its text."""
    scripts = folder / "site" / "specs" / "default" / "cluster-init" / "scripts"
    scripts.mkdir(parents=True)
    (folder / "site" / "project.ini").write_text("[project]\nname = site\nversion = 1.0.0\ntype = application\n")
    (scripts / "00-blob.sh").write_bytes(random.Random(1).randbytes(size_bytes))
    projects = "projects:\n  - {name: site, path: site}\n"
    return GOOD.replace("max_nodes: 2}", "max_nodes: 2, extra_projects: [site]}") + projects


def test_a_local_project_travels_with_the_deployment(tmp_path: Path) -> None:
    checked = check(local_project(tmp_path, 1000), tmp_path)
    assert ids(checked) == []
    assert checked.plan is not None
    assert PurePosixPath("projects/site/project.ini") in pipeline.render(checked.plan, tmp_path)


def test_a_local_project_that_is_too_large_is_a_problem_at_its_place(tmp_path: Path) -> None:
    checked = check(local_project(tmp_path, 2_000_000), tmp_path)
    assert set(ids(checked)) == {"E1801", "W1802"}
    assert checked.plan is None
    assert {problem.path for problem in checked.problems} == {("projects", 0, "path")}


def test_a_local_project_that_is_missing_is_a_problem_at_its_place(tmp_path: Path) -> None:
    text = local_project(tmp_path, 10).replace("path: site", "path: sites")
    checked = check(text, tmp_path)
    assert [problem.path for problem in checked.problems] == [("projects", 0, "path")]
    assert checked.plan is None
