"""slurm_nhc: hooks, units, attributes."""

from __future__ import annotations

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    return healthy(make_node("slurm_nhc"))


@pytest.mark.parametrize(("hook", "words"), [("prolog.sh", "gate"), ("epilog.sh", "epilog")])
@pytest.mark.parametrize(("code", "refused"), [(0, False), (1, False), (124, False), (3, True)])
def test_hooks_fail_only_for_a_sick_node(node: Healthy, hook: str, words: str, code: int, refused: bool) -> None:
    """With the real paths replaced, as they run without our library."""
    fake = node.write("health.sh", f'echo "$*" >"$FAKE_STATE/hook"\nexit {code}\n')
    text = (node.spec / "files" / hook).read_text().replace("/opt/cycleforge/slurm_nhc/health.sh", str(fake))
    text = text.replace("export PATH=", "# PATH=")
    result = node.command("-c", text)
    assert (result.returncode != 0) == refused
    assert (node.state / "hook").read_text() == words + "\n"


@pytest.mark.parametrize(("state", "code", "refused"), [
    ("sick", 1, True), ("sick", 124, True), ("sick", 2, True), ("sick", 0, False), ("clear", 1, False),
])  # fmt: skip
def test_a_gate_that_fails_itself_is_answered_by_what_stands(
    node: Healthy, state: str, code: int, refused: bool
) -> None:
    fake = node.write("health.sh", f"exit {code}\n")
    node.write("var/lib/cycleforge/health/standing", f"state={state}\n")
    text = (node.spec / "files/prolog.sh").read_text().replace("/opt/cycleforge/slurm_nhc/health.sh", str(fake))
    text = text.replace("export PATH=", "# PATH=")
    assert (node.command("-c", text).returncode != 0) == refused
    node.write("run/cycleforge/standing", "state=clear\n")
    assert node.command("-c", text).returncode == 0, "the newest state is there while the disk takes nothing"


@pytest.mark.parametrize("hook", ["prolog.sh", "epilog.sh"])
def test_hooks_pass_on_nodes_without_the_health_layer(node: Healthy, hook: str) -> None:
    result = node.command(str(node.spec / "files" / hook))
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


# ---------------------------------------------------------------- installation


def test_the_scheduler_writes_the_hooks_once(node: Healthy) -> None:
    node.attribute("slurm.role", "scheduler")
    shared = node.root / "sched/cluster"
    for kind in ("prolog", "epilog"):
        (shared / f"{kind}.d").mkdir(parents=True)
        (node.root / "etc/slurm").mkdir(exist_ok=True)
        (node.root / f"etc/slurm/{kind}.d").symlink_to(shared / f"{kind}.d")
    assert "2 of 2 hooks changed" in node.ok("10-hooks.sh")
    assert "0 of 2 hooks changed" in node.ok("10-hooks.sh")
    for kind in ("prolog", "epilog"):
        assert (shared / f"{kind}.d/20-cycleforge_health.sh").stat().st_mode & 0o777 == 0o755
        assert (node.root / f"etc/slurm/{kind}.d").is_symlink()
    node.attribute("cycleforge.health.enabled", "False")
    node.ok("10-hooks.sh")
    assert not list(shared.rglob("*.sh"))


def test_a_scheduler_without_slurm_is_told_what_to_do(node: Healthy) -> None:
    node.attribute("slurm.role", "scheduler")
    assert "/etc/slurm/prolog.d is missing on the scheduler" in node.fails("10-hooks.sh")


@pytest.mark.parametrize("role", ["scheduler", "login"])
def test_no_checks_where_no_jobs_run(make_node: MakeNode, role: str) -> None:
    node = make_node("slurm_nhc")
    node.attribute("slurm.role", role)
    node.ok("20-health.sh")
    assert not (node.root / "opt").exists()


def test_the_timer_and_its_interval(node: Healthy) -> None:
    node.attribute("cycleforge.health.interval_s", "600")
    node.ok("20-health.sh")
    assert "OnUnitActiveSec=600\n" in node.read("etc/systemd/system/cycleforge-health.timer")
    assert node.calls("systemctl restart") == ["systemctl restart cycleforge-health.timer"]


def test_deep_checks_run_at_converge_and_before_slurmd_at_boot(node: Healthy) -> None:
    node.attribute("cycleforge.health.deep_s", "300")
    node.ok("20-health.sh")
    service = node.read("etc/systemd/system/cycleforge-health-deep.service")
    assert "Before=slurmd.service" in service
    assert "TimeoutStartSec=" in service
    assert "health.sh deep boot\n" in service
    assert "After=cycleforge-health-deep.service" in node.read(
        "etc/systemd/system/slurmd.service.d/20-cycleforge-slurm_nhc.conf"
    )
    assert node.result("deep")["kind"] == "deep"
    assert "systemctl restart cycleforge-health-idle.timer" in node.calls("systemctl restart")


@pytest.mark.parametrize("key", ["cycleforge.health.enabled", "cycleforge.health.deep_s"])
def test_what_is_switched_off_leaves_nothing_that_acts(make_node: MakeNode, key: str) -> None:
    node = healthy(make_node("slurm_nhc"), deep_s=300)
    off = {"cycleforge.health.enabled": "False", "cycleforge.health.deep_s": "0"}
    node.attribute(key, off[key])
    node.ok("20-health.sh")
    units = [path for path in node.files() if path.startswith("etc/systemd/system")]
    assert not [path for path in units if "deep" in path or "idle" in path]
    # Whether a prolog can run at all is asked without deep checks, too.
    joining = ["etc/systemd/system/slurmd.service.d/25-cycleforge-join.conf"] if key.endswith("deep_s") else []
    assert [path for path in units if "slurmd" in path] == joining
    if key == "cycleforge.health.enabled":
        assert units == []
        assert not (node.root / "opt/cycleforge/slurm_nhc/health.sh").exists()


def test_the_configuration_of_a_size_shows_every_figure_with_unit_and_source(node: Healthy) -> None:
    quick, deep = node.read("etc/cycleforge/nhc/quick.conf"), node.read("etc/cycleforge/nhc/deep.conf")
    conf = "# Azure/azurehpc-health-checks:conf/nd96amsr_a100_v4.conf\n"
    assert conf + "* || cycleforge memory expected_kib=1857830712 tolerance_percent=3\n" in quick
    assert (
        conf + "* || cycleforge gpu_copy_to_device floor_gb_per_s=21 warn_below_gb_per_s=22.05 lock_mhz=1400\n" in deep
    )
    assert "* || cycleforge mounts paths=/sched,/shared\n" in quick
    assert "H100" not in quick


def test_a_mount_of_another_cluster_is_not_expected(node: Healthy) -> None:
    node.attribute("cycleforge.mounts", "/sched")
    node.ok("20-health.sh")
    node.lose_mount()
    assert node.quick()["verdict"] == "pass"


def test_the_scheduler_makes_the_folder_of_results(node: Healthy) -> None:
    node.attribute("slurm.role", "scheduler")
    for kind in ("prolog", "epilog"):
        (node.root / f"etc/slurm/{kind}.d").mkdir(parents=True)
    assert "results: off" in node.ok("10-hooks.sh")
    node.attribute("cycleforge.health.results", "/sched/results")
    assert "/sched/results made" in node.ok("10-hooks.sh")
    assert (node.root / "sched/results").stat().st_mode & 0o777 == 0o755
    assert "/sched/results is there" in node.ok("10-hooks.sh")
    node.attribute("cycleforge.health.results", "/elsewhere/results")
    assert "results stay on the nodes" in node.ok("10-hooks.sh")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cycleforge.mounts", "sched shared"),
        ("cycleforge.health.unmeasured", "ignore"),
        ("cycleforge.health.interval_s", "5"),
        ("cycleforge.health.nhc", "yes"),
        ("cycleforge.health.results", "results"),
        ("cycleforge.health.site_checks", "site.conf"),
        ("cycleforge.health.idle_deep_h", "-1"),
    ],
)
def test_bad_attributes_stop_the_converge(node: Healthy, key: str, value: str) -> None:
    node.attribute(key, value)
    output = node.fails("20-health.sh")
    assert key in output
    assert "expected" in output


def test_a_second_run_changes_nothing(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), deep_s=300)
    before = node.files()
    node.ok("20-health.sh")
    assert node.files() == before
    assert node.calls("systemctl restart") == []
