"""misc_ubuntu: no background updates, package holds, bounded logs, no cores, one clock, limits."""

from __future__ import annotations

import subprocess

import pytest

from tests.bed.scripts.node import SYSTEMCTL, Node
from tests.projects.conftest import MakeNode

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


def test_needrestart_stays_quiet_when_a_later_package_brings_it(node: Node) -> None:
    (node.root / "etc/needrestart").rmdir()
    node.ok("10-automatic-updates.sh")
    assert "override_rc" in node.read("etc/needrestart/conf.d/99-cycleforge.conf")


def test_a_running_update_may_finish(node: Node) -> None:
    """Only the timers are stopped; the services are masked after the running one has ended."""
    for timer in ("apt-daily.timer", "apt-daily-upgrade.timer"):
        (node.state / "active" / timer).write_text("active\n")
    (node.state / "active/apt-daily-upgrade.service").write_text("activating\n")
    node.fake("sleep", 'echo inactive >"$FAKE_STATE/active/apt-daily-upgrade.service"')
    output = node.ok("10-automatic-updates.sh")
    assert "no update is running" in output
    assert node.calls("systemctl stop") == ["systemctl stop apt-daily.timer", "systemctl stop apt-daily-upgrade.timer"]
    assert not [call for call in node.calls() if "--now" in call]


def test_a_timer_is_stopped_before_it_is_masked(node: Node) -> None:
    """systemd lets a timer that is masked while it waits end as a failed unit."""
    (node.state / "active/apt-daily.timer").write_text("active\n")
    node.ok("10-automatic-updates.sh")
    calls = [call for call in node.calls("systemctl") if "apt-daily.timer" in call and "is-active" not in call]
    assert calls == [
        "systemctl stop apt-daily.timer",
        "systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer",
    ]


def test_the_wait_for_a_running_update_ends(node: Node) -> None:
    (node.state / "active/apt-daily.service").write_text("activating\n")
    node.attribute("cycleforge.apt.wait_s", "1")
    output = node.ok("10-automatic-updates.sh")
    assert "still runs after 1 s" in output


def test_el_waits_for_a_running_update_too(node: Node) -> None:
    node.os("almalinux", "8.10", "rhel centos fedora")
    (node.state / "active/dnf-automatic-install.service").write_text("activating\n")
    node.attribute("cycleforge.apt.wait_s", "1")
    assert "still runs after 1 s" in node.ok("10-automatic-updates.sh")
    (node.state / "active/dnf-automatic-install.service").unlink()
    assert "no update is running" in node.ok("10-automatic-updates.sh")


SNAP = """case "$*" in
    "get system refresh.hold") cat "$FAKE_STATE/snap_hold" 2>/dev/null || exit 1 ;;
    "refresh --hold") echo forever >"$FAKE_STATE/snap_hold" ;;
    *) exit 64 ;;
esac"""


def test_snaps_are_held_once(node: Node) -> None:
    node.fake("snap", SNAP)
    assert "snap refreshes: held (" in node.ok("10-automatic-updates.sh")
    assert "snap refreshes: held already" in node.ok("10-automatic-updates.sh")
    assert node.calls("snap refresh") == ["snap refresh --hold"]


@pytest.mark.parametrize("body", ["exit 1", "echo garbage; exit 10"])
def test_snaps_that_cannot_be_held_are_reported_and_no_failure(node: Node, body: str) -> None:
    node.fake("snap", body)
    output = node.ok("10-automatic-updates.sh")
    assert "WARNING: snap refresh --hold failed" in output
    assert "snap refreshes: not held" in output


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


@pytest.mark.parametrize("tool", ["dpkg-query", "apt-mark"])
def test_a_list_that_cannot_be_had_is_not_an_empty_one(node: Node, tool: str) -> None:
    node.fake(tool, "exit 2")
    assert "step 'package holds' ended with exit code 2" in node.fails("20-package-holds.sh")


@pytest.mark.parametrize("system", ["ubuntu", "almalinux"])
def test_bad_package_names_are_refused(node: Node, system: str) -> None:
    node.os(system, "9.4", "" if system == "ubuntu" else "rhel")
    node.write("etc/dnf/dnf.conf", "[main]\n")
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


def test_other_logs_are_rotated_by_size_every_hour(node: Node) -> None:
    (node.root / "etc/logrotate.d").mkdir()
    (node.state / "installed/logrotate.timer").touch()
    node.attribute("cycleforge.journal.max_mib", "2048")
    assert "each log at most 512 MiB, 2 files changed" in node.ok("30-logs-and-cores.sh")
    assert "0 files changed" in node.ok("30-logs-and-cores.sh")
    assert "\nmaxsize 512M\n" in node.read("etc/logrotate.d/00-cycleforge")
    assert "OnCalendar=\nOnCalendar=hourly" in node.read(
        "etc/systemd/system/logrotate.timer.d/20-cycleforge-misc_ubuntu.conf"
    )
    assert node.calls("systemctl try-restart logrotate") == ["systemctl try-restart logrotate.timer"]


def test_rotation_without_a_timer_is_left_to_cron(node: Node) -> None:
    """AlmaLinux 8 runs logrotate by cron."""
    (node.root / "etc/logrotate.d").mkdir()
    assert "1 files changed" in node.ok("30-logs-and-cores.sh")
    assert not (node.root / "etc/systemd/system/logrotate.timer.d").exists()


def test_a_node_without_logrotate(node: Node) -> None:
    assert "log rotation: logrotate is not installed" in node.ok("30-logs-and-cores.sh")


def test_a_kernel_that_refuses_the_pattern_is_reported_and_asked_again(node: Node) -> None:
    node.fake("sysctl", "exit 1")
    output = node.ok("30-logs-and-cores.sh")
    assert "WARNING: the kernel did not take" in output
    assert "pattern not in effect yet" in output
    node.fake("sysctl", "exit 0")
    assert "pattern in effect" in node.ok("30-logs-and-cores.sh")
    assert len(node.calls("sysctl")) == 2


def test_cores_are_off_unless_asked_for(node: Node) -> None:
    node.ok("30-logs-and-cores.sh")
    assert "* soft core 0" in node.read("etc/security/limits.d/90-cycleforge-core.conf")
    assert "hard" not in node.read("etc/security/limits.d/90-cycleforge-core.conf")
    assert "kernel.core_pattern = core.%e.%p" in node.read("etc/sysctl.d/90-cycleforge-core.conf")
    assert "\nDefaultLimitCORE=0:infinity\n" in node.read("etc/systemd/system.conf.d/90-cycleforge-core.conf")
    node.attribute("cycleforge.core_dumps", "True")
    node.ok("30-logs-and-cores.sh")
    assert not [path for path in node.files() if "cycleforge-core" in path]


@pytest.mark.parametrize("collector", ["apport.service", "abrt-ccpp.service"])
def test_the_crash_collector_goes_before_the_pattern_is_set(node: Node, collector: str) -> None:
    node.write(f"usr/lib/systemd/system/{collector}", "[Unit]\n")
    node.ok("30-logs-and-cores.sh")
    calls = [call for call in node.calls() if collector in call or call.startswith("sysctl")]
    assert calls[:2] == [f"systemctl stop {collector}", f"systemctl --quiet mask {collector}"]
    assert calls[-1].startswith("sysctl --quiet --load")
    assert "1 installed, 0 masked" in node.ok("30-logs-and-cores.sh")


def test_a_collector_that_came_later_does_not_keep_its_pattern(node: Node) -> None:
    node.ok("30-logs-and-cores.sh")
    node.write("usr/lib/systemd/system/apport.service", "[Unit]\n")
    node.forget()
    node.ok("30-logs-and-cores.sh")
    assert len(node.calls("sysctl")) == 1


# A unit that is enabled with --now runs, except where a condition of it does not hold.
ENABLE = """
if [[ "$*" == *"enable --now "* && "${!#}" != "${REFUSED:-}" ]]; then echo active >"$FAKE_STATE/active/${!#}"; fi
"""


def clocks(node: Node, *installed: str) -> None:
    """These clock services are installed, none runs."""
    (node.state / "active/chrony.service").unlink()
    for unit in installed:
        (node.state / "installed" / unit).touch()
    node.fake("systemctl", ENABLE + SYSTEMCTL)


def test_a_running_clock_is_left_alone(node: Node) -> None:
    assert "chrony.service runs" in node.ok("40-time.sh")
    assert not node.calls("systemctl --quiet enable")


def test_a_stopped_clock_is_started(node: Node) -> None:
    clocks(node, "chronyd.service")
    assert "chronyd.service was off, now it runs" in node.ok("40-time.sh")
    assert node.calls("systemctl --quiet enable") == ["systemctl --quiet enable --now chronyd.service"]


def test_a_clock_whose_condition_does_not_hold_is_not_taken_for_running(node: Node) -> None:
    """systemd says success for a unit that it skips."""
    clocks(node, "chrony.service", "systemd-timesyncd.service")
    assert "systemd-timesyncd.service was off" in node.ok("40-time.sh", REFUSED="chrony.service")


@pytest.mark.parametrize("installed", [[], ["chrony.service"]])
def test_no_clock_at_all_is_reported(node: Node, installed: list[str]) -> None:
    clocks(node, *installed)
    assert "WARNING: no clock service runs" in node.ok("40-time.sh", REFUSED="chrony.service")


@pytest.mark.parametrize(("other", "warned"), [("systemd-timesyncd.service", True), ("chronyd.service", False)])
def test_two_clock_services_are_reported(node: Node, other: str, warned: bool) -> None:
    """On Ubuntu chronyd.service is another name of chrony.service."""
    (node.state / "active" / other).write_text("active\n")
    assert ("several clock services run" in node.ok("40-time.sh")) == warned


def test_chrony_gets_the_clock_of_the_host_where_the_image_does_not_name_it(node: Node) -> None:
    node.write("dev/ptp_hyperv", "")
    node.write("etc/chrony/chrony.conf", "confdir /etc/chrony/conf.d\npool ntp.ubuntu.com\n")
    node.ok("40-time.sh")
    node.ok("40-time.sh")
    assert "\nrefclock PHC /dev/ptp_hyperv " in node.read("etc/chrony/conf.d/cycleforge.conf")
    assert node.calls("systemctl restart") == ["systemctl restart chrony.service"]


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("etc/chrony/chrony.conf", "refclock PHC /dev/ptp0 poll 3\nconfdir /x\n", "in chrony.conf"),
        ("etc/chrony.conf", "  refclock  PHC /dev/ptp_hyperv poll 3\n", "in chrony.conf"),
        ("etc/chrony.conf", "#refclock PHC /dev/ptp0\npool x\n", "WARNING: chrony does not read the host's clock"),
        ("etc/other.conf", "", "not chrony"),
    ],
)
def test_a_host_clock_that_is_named_or_cannot_be_is_left(node: Node, path: str, text: str, words: str) -> None:
    node.write("dev/ptp_hyperv", "")
    node.write(path, text)
    before = node.content()
    assert words in node.ok("40-time.sh")
    assert node.content() == before


def test_without_a_host_clock_nothing_is_written(node: Node) -> None:
    node.write("etc/chrony/chrony.conf", "confdir /etc/chrony/conf.d\n")
    assert "/dev/ptp_hyperv is not there" in node.ok("40-time.sh")


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
