"""Starting CycleCloud through the system, and finding out whose process serves the site."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.bed.server.program import context, module, run_steps

if TYPE_CHECKING:
    from tests.bed.server.harness import Server


def asked(server: Server) -> list[str]:
    log = server.fake / "systemctl.log"
    return log.read_text().splitlines() if log.exists() else []


def systemctl(server: Server, text: str) -> None:
    path = server.bin / "systemctl"
    path.write_text(f'#!/bin/bash\nprintf "systemctl %s\\n" "$*" >>"{server.fake}/systemctl.log"\n{text}')
    path.chmod(0o755)


def test_scope_of_its_own_without_a_unit(server: Server) -> None:
    server.unpack()
    assert run_steps(context(server), "settings", "startup") is None
    started = [line for line in asked(server) if line.startswith("systemd-run")]
    program = server.root / "opt/cycle_server/cycle_server"
    assert started == ["systemd-run --quiet --scope --collect true",
                       f"systemd-run --quiet --scope --collect {program} start"]  # fmt: skip
    assert [call[1] for call in server.called("cycle_server")][:2] == ["stop", "start"]
    environments = [call["environment"] for call in server.site.calls if call["name"] == "cycle_server"]
    assert all(f"\0HOME={server.root}/root\0" in f"\0{text}" for text in environments), "ours is gone after the boot"


@pytest.mark.parametrize("web_unit", ["absent", "restarts along", "stays"])
def test_units_of_the_system_are_restarted(server: Server, web_unit: str) -> None:
    """What `cycle_server_webserver` does when `cycle_server` is restarted is not published: all three are played."""
    number = {"absent": "", "restarts along": '$(wc -l <"$FAKE_DIR/systemctl.log")', "stays": "17"}[web_unit]
    systemctl(server, f'if [ "$1" = show ]; then echo "{number}"; fi\n')
    server.unpack()
    assert run_steps(context(server), "settings") is None
    restarts = [line for line in asked(server) if line.startswith("systemctl restart")]
    wanted = ["systemctl restart cycle_server.service"]
    if web_unit == "stays":
        wanted.append("systemctl restart cycle_server_webserver.service")
    assert restarts == wanted
    assert server.called("cycle_server") == [], "nothing is started beside the unit"


def test_site_that_was_started_by_hand_is_stopped_first(server: Server) -> None:
    systemctl(server, 'if [ "$1" = is-active ]; then exit 3; fi\n')
    server.unpack()
    assert run_steps(context(server), "settings") is None
    assert server.called("cycle_server") == [["cycle_server", "stop"]]


def test_unit_that_does_not_start_is_named(server: Server) -> None:
    systemctl(server, 'if [ "$1" = restart ]; then echo "Job for cycle_server.service failed" >&2; exit 1; fi\n')
    server.unpack(steps={"settings": 20})
    problem = run_steps(context(server), "settings")
    assert "`systemctl restart cycle_server.service` failed with 1: Job for cycle_server" in problem.message


def test_a_server_that_was_never_started_is_started(server: Server) -> None:
    """`await_startup` fails with "CycleServer is not running"."""
    server.unpack()
    made = context(server)
    assert run_steps(made, "settings") is None
    server.site.running = False
    assert run_steps(made, "startup") is None
    assert [call[1] for call in server.called("cycle_server")] == ["stop", "start", "await_startup", "start"]


def test_a_server_that_was_never_started_is_started_by_its_unit(server: Server) -> None:
    systemctl(server, "")
    server.unpack(steps={"startup": 5})
    server.site.running = False
    run_steps(context(server), "startup")
    assert "systemctl start cycle_server.service" in asked(server)
    assert server.called("cycle_server start") == []


def test_a_server_that_is_slow_is_not_started_twice(server: Server) -> None:
    server.unpack()
    made = context(server)
    assert run_steps(made, "settings") is None
    server.site.faults.slow_start = 2
    assert run_steps(made, "startup") is None
    assert [call[1] for call in server.called("cycle_server")].count("start") == 1


def test_listener_is_found_by_its_port() -> None:
    service = module("service")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert os.getpid() in service._listeners(port)
        with socket.create_connection(("127.0.0.1", port)):
            pass
    assert service._listeners(port) == []


def test_listener_of_ipv6_is_found() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        assert os.getpid() in module("service")._listeners(listening.getsockname()[1])


def test_nobody_listens(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server.unpack(steps={"independent": 5})
    made = context(server, CYCLEFORGE_PORTAL=f"https://127.0.0.1:{port}")
    assert run_steps(made, "independent").message.startswith(f"no process listens on port {port}")


def test_web_server_in_our_control_group_is_restarted_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    service = module("service")
    monkeypatch.setattr(service, "_groups", lambda _: "0::/system.slice/cycleforge-bootstrap.service\n")
    server.unpack()
    problem = run_steps(context(server), "independent")
    assert problem.permanent
    assert "belongs to cycleforge-bootstrap.service" in problem.message
    assert len(server.called("cycle_server start")) == 1


def test_a_process_whose_control_group_cannot_be_read_is_not_taken_for_someone_elses(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have ended meanwhile: the next look decides."""
    service = module("service")
    beyond_the_last = 2**22 + 1  # /proc/sys/kernel/pid_max is 4194304 at most, proc(5)
    monkeypatch.setattr(service, "_listeners", lambda _: [beyond_the_last])
    server.unpack()
    with pytest.raises(module("core").StepError, match=f"process {beyond_the_last}, .* is unknown"):
        service.Independence().is_reached(context(server))
