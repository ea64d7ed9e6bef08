"""misc_ubuntu: no background updates, package holds, bounded logs, no cores, one clock, limits."""

from __future__ import annotations

import subprocess

import pytest

from tests.projects.conftest import MakeNode
from tests.projects.node import Node

SCRIPTS = ("10-automatic-updates.sh", "20-package-holds.sh", "30-logs-and-cores.sh", "40-time.sh", "50-limits.sh")
PACKAGES = """ii  linux-image-6.8.0-1030-azure
ii  linux-azure
ii  linux-libc-dev
ii  nvidia-driver-570-server
ii  libnvidia-compute-570
rc  linux-image-6.8.0-1001-azure
ii  slurm-smd
ii  doca-ofed
ii  python3
"""


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("misc_ubuntu")
    made.fake("dpkg-query", f"cat <<'END'\n{PACKAGES}END")
    made.fake("apt-mark", 'case "$1" in showhold) cat "$FAKE_STATE/held" 2>/dev/null || true ;;'
                          ' hold) shift; printf "%s\\n" "$@" >>"$FAKE_STATE/held" ;; esac')  # fmt: skip
    (made.state / "active/chrony.service").write_text("active\n")
    (made.root / "etc/needrestart").mkdir()
    return made


def held(node: Node) -> list[str]:
    file = node.state / "held"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("role", ["scheduler", "login", "execute"])
def test_ubuntu_timers_and_services_are_masked_on_every_role(node: Node, role: str) -> None:
    node.attribute("slurm.role", role)
    node.ok("10-automatic-updates.sh")
    masked = {path.name for path in (node.root / "etc/systemd/system").iterdir() if path.is_symlink()}
    assert masked == {
        "apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily.service", "apt-daily-upgrade.service",
        "unattended-upgrades.service",
    }  # fmt: skip
    assert 'Unattended-Upgrade "0"' in node.read("etc/apt/apt.conf.d/99-cycleforge")


def test_needrestart_settings_are_perl_that_restarts_nothing(node: Node) -> None:
    node.ok("10-automatic-updates.sh")
    text = node.read("etc/needrestart/conf.d/99-cycleforge.conf")
    code = 'our %nrconf = (restart => "a"); eval do { local $/; <STDIN> }; die $@ if $@;' \
           'print "$nrconf{restart} ", scalar(keys %{$nrconf{override_rc}})'  # fmt: skip
    result = subprocess.run(["perl", "-e", code], input=text, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "l 1"), result.stderr


def test_needrestart_is_left_out_where_it_is_not_installed(node: Node) -> None:
    (node.root / "etc/needrestart").rmdir()
    assert "needrestart settings: not installed" in node.ok("10-automatic-updates.sh")


def test_a_running_update_may_finish(node: Node) -> None:
    """Only the timers are stopped at once; the services are masked after the running one has ended."""
    (node.state / "active/apt-daily-upgrade.service").write_text("activating\n")
    node.fake("sleep", 'echo inactive >"$FAKE_STATE/active/apt-daily-upgrade.service"')
    output = node.ok("10-automatic-updates.sh")
    assert "no update is running" in output
    assert [call for call in node.calls("systemctl mask") if "--now" in call] == [
        "systemctl mask --now apt-daily.timer apt-daily-upgrade.timer"
    ]


def test_the_wait_for_a_running_update_ends(node: Node) -> None:
    (node.state / "active/apt-daily.service").write_text("activating\n")
    node.attribute("cycleforge.apt.wait_s", "1")
    output = node.ok("10-automatic-updates.sh")
    assert "still runs after 1 s" in output


def test_el_masks_dnf_timers(node: Node) -> None:
    node.os("almalinux", "9.4", "rhel centos fedora")
    node.ok("10-automatic-updates.sh")
    masked = {path.name for path in (node.root / "etc/systemd/system").iterdir() if path.is_symlink()}
    assert "dnf-automatic.timer" in masked
    assert not (node.root / "etc/apt").exists()


@pytest.mark.parametrize("script", ["10-automatic-updates.sh", "20-package-holds.sh"])
def test_an_unknown_system_is_reported_and_left_alone(node: Node, script: str) -> None:
    node.os("alpine", "3.20")
    before = node.content()
    assert "operating system 'alpine-3.20' is not known" in node.ok(script)
    assert node.content() == before


def test_installed_kernels_and_drivers_are_held(node: Node) -> None:
    node.attribute("cycleforge.packages.hold", "python3, cuda-*")
    node.ok("20-package-holds.sh")
    assert held(node) == [
        "linux-image-6.8.0-1030-azure", "linux-azure", "nvidia-driver-570-server", "libnvidia-compute-570",
        "doca-ofed", "python3",
    ]  # fmt: skip
    assert "0 newly held: none" in node.ok("20-package-holds.sh")


def test_a_busy_package_lock_is_waited_for_and_then_named(node: Node) -> None:
    node.fake("apt-mark", '[[ "$1" == showhold ]]')
    node.attribute("cycleforge.apt.wait_s", "1")
    output = node.fails("20-package-holds.sh")
    assert "within 1 s" in output
    assert "another program holds the package lock" in output
    assert "cycleforge.apt.wait_s" in output


def test_holds_can_be_switched_off(node: Node) -> None:
    node.attribute("cycleforge.packages.hold_kernel", "False")
    node.ok("20-package-holds.sh")
    assert held(node) == []


def test_bad_package_names_are_refused(node: Node) -> None:
    node.attribute("cycleforge.packages.hold", "$(reboot)")
    assert "cycleforge.packages.hold is '$(reboot)'" in node.fails("20-package-holds.sh")


@pytest.mark.parametrize(
    "conf",
    [
        "[main]\ngpgcheck=1\n",
        "[main]\nexclude=foo kernel\n",
        "[main]\nexcludepkgs = foo\n[other]\nx=1\n",
        "gpgcheck=1\n",
        "",
    ],
)
def test_dnf_excludes_extend_what_is_there(node: Node, conf: str) -> None:
    node.os("almalinux", "8.10", "rhel centos fedora")
    node.write("etc/dnf/dnf.conf", conf)
    node.ok("20-package-holds.sh")
    text = node.read("etc/dnf/dnf.conf")
    (line,) = [line for line in text.splitlines() if line.startswith("exclude")]
    words = line.removeprefix("excludepkgs=").split()
    assert {"kernel", "kernel-core", "nvidia-driver*"} <= set(words)
    assert len(words) == len(set(words))
    assert ("foo" in words) == ("foo" in conf)
    kept = [line for line in conf.splitlines() if not line.startswith("exclude")]
    assert [line for line in text.splitlines() if line in kept] == kept
    assert text.index("[main]") < text.index(line)
    before = node.files()
    node.ok("20-package-holds.sh")
    assert node.files() == before


def test_journal_is_bounded_and_applied_once(node: Node) -> None:
    node.attribute("cycleforge.journal.max_mib", "2048")
    node.ok("30-logs-and-cores.sh")
    node.ok("30-logs-and-cores.sh")
    assert "SystemMaxUse=2048M" in node.read("etc/systemd/journald.conf.d/90-cycleforge.conf")
    assert node.calls("systemctl try-restart") == ["systemctl try-restart systemd-journald.service"]


def test_cores_are_off_unless_asked_for(node: Node) -> None:
    node.ok("30-logs-and-cores.sh")
    assert "* soft core 0" in node.read("etc/security/limits.d/90-cycleforge-core.conf")
    assert "hard" not in node.read("etc/security/limits.d/90-cycleforge-core.conf")
    assert "kernel.core_pattern = core.%e.%p" in node.read("etc/sysctl.d/90-cycleforge-core.conf")
    node.attribute("cycleforge.core_dumps", "True")
    node.ok("30-logs-and-cores.sh")
    assert not [path for path in node.files() if "cycleforge-core" in path]


def test_the_crash_collector_goes_before_the_pattern_is_set(node: Node) -> None:
    node.write("usr/lib/systemd/system/apport.service", "[Unit]\n")
    node.ok("30-logs-and-cores.sh")
    calls = [call for call in node.calls() if "apport" in call or call.startswith("sysctl")]
    assert calls[0] == "systemctl mask --now apport.service"
    assert calls[-1].startswith("sysctl --quiet --load")


def test_a_running_clock_is_left_alone(node: Node) -> None:
    assert "chrony.service runs" in node.ok("40-time.sh")
    assert not node.calls("systemctl enable")


def test_a_stopped_clock_is_started(node: Node) -> None:
    (node.state / "active/chrony.service").unlink()
    (node.state / "installed/chronyd.service").touch()
    assert "chronyd.service was off, now it runs" in node.ok("40-time.sh")
    assert node.calls("systemctl enable") == ["systemctl enable --now chronyd.service"]


def test_no_clock_at_all_is_reported(node: Node) -> None:
    (node.state / "active/chrony.service").unlink()
    assert "no clock service is installed" in node.ok("40-time.sh")


def test_limits_do_not_repeat_what_the_slurm_project_ships(node: Node) -> None:
    node.ok("50-limits.sh")
    assert "memlock unlimited" in node.read("etc/security/limits.d/90-cycleforge-memlock.conf")
    node.write("etc/security/limits.d/slurm-limits.conf", "* hard memlock unlimited\n* soft memlock unlimited\n")
    assert "memlock by slurm-limits.conf" in node.ok("50-limits.sh")
    assert not (node.root / "etc/security/limits.d/90-cycleforge-memlock.conf").exists()
    assert node.read("etc/security/limits.d/90-cycleforge.conf").count("1048576") == 4


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_second_run_changes_nothing(node: Node, script: str) -> None:
    node.ok(script)
    before = node.files()
    node.ok(script)
    assert node.files() == before
