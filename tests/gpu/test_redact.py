"""What a capture hides, and what it must not touch."""

from __future__ import annotations

import json

import pytest

from tests.gpu import commands, redact
from tests.gpu.test_run import LOADING, record


# Layout: utkuozdemir/nvidia_gpu_exporter@e656cd8 (MIT), internal/captures, h100-80gb-hbm3 590.48.01, and its -q -x.
@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("    GPU PDI                                            : 0x737bb8d09327f7d9\n", "0x737bb8d09327f7d9"),
        ("    GPU PDI                                            : 0x737bb8d09327f7d9\r\n", "0x737bb8d09327f7d9"),
        ("\t\t<gpu_pdi>0x737bb8d09327f7d9</gpu_pdi>\n", "0x737bb8d09327f7d9"),
        ("        GPU Fabric GUID                                : 0x1c5a9be80a3fd6f1\n", "0x1c5a9be80a3fd6f1"),
        ("\t\t\t<gpu_fabric_guid>0x1c5a9be80a3fd6f1</gpu_fabric_guid>\n", "0x1c5a9be80a3fd6f1"),
        ("        Chassis Serial Number                          : 1821325191103\n", "1821325191103"),
        ('{"entities": [{"entity_id": 0, "serial_num": "1654321000005"}]}', "1654321000005"),
        ("\t\t\t<process_name>/home/me/a --if=1<2</process_name>\n", "/home/me"),
        ("\t\t\t<process_name>python x\ny</process_name> z</process_name>\n", "y"),
    ],
)
def test_what_one_device_or_program_alone_has_is_replaced(text: str, hidden: str) -> None:
    clean = redact.Redactor([], [])
    found = clean.text(text)
    assert hidden not in found
    assert len(found.splitlines()) == 1
    assert clean.text(f"once more {hidden}x {text}").endswith(found)


@pytest.mark.parametrize(
    "text",
    [
        "    Board ID                                           : 0x500\n",
        "    GPU Part Number                                    : 2330-885-A1\n",
        "    Minor Number                                       : 0\n",
        "    Serial Number                                      : N/A\n",
        "\t\t<gpu_fabric_guid>0x0000000000000000</gpu_fabric_guid>\n",
    ],
)
def test_what_many_devices_have_stays(text: str) -> None:
    assert redact.Redactor([], ["box"]).text(text) == text


def test_a_short_number_is_replaced_in_its_place_only() -> None:
    found = redact.Redactor([], []).text("<chassis_serial_number>12</chassis_serial_number> 12 links\n")
    assert found == "<chassis_serial_number>01</chassis_serial_number> 12 links\n"


SPOKEN = ["NVIDIA H100 80GB HBM3", *(path.read_text(encoding="utf-8") for path in commands.scripts())]


@pytest.mark.parametrize("name", ["gpu", "H100", "nvidia", "link", "hopper", "hbm3"])
def test_a_host_with_the_name_of_a_thing_changes_no_thing(name: str) -> None:
    hosts = redact.names_to_hide([f"{name}.corp.example", name], SPOKEN)
    assert hosts == [f"{name}.corp.example"]
    text = "GPU 0: NVIDIA H100 80GB HBM3\n\t Link 0: 26.562 GB/s\nHopper gpu_count\n"
    clean = redact.Redactor([], hosts)
    assert clean.text(text) == text
    assert clean.text(f"on {name}.corp.example: x") == "on node-1: x"
    assert clean.left(text) == []


def test_other_hosts_are_hidden_where_a_name_stands() -> None:
    assert redact.names_to_hide(["gandalf"], SPOKEN) == ["gandalf"]
    clean = redact.Redactor([], ["gandalf"])
    text = "<gandalf>on GANDALF, gandalf.corp</gandalf> gandalf_count my-gandalf\n"
    assert clean.text(text) == "<gandalf>on node-1, node-1.corp</gandalf> gandalf_count my-gandalf\n"


XID = "NVRM: Xid (PCI:0001:00:00): 31, pid=4242, name=secret_train, Ch 00000008, intr 00000000."
"""Form: NVIDIA/open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/rc/kernel_rc.c (krcReportXid)."""


def messages(*lines: str) -> list[str]:
    return [
        json.loads(line)["MESSAGE"] for line in redact.of_kernel("".join(f"{line}\n" for line in lines)).splitlines()
    ]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (record(LOADING), LOADING),
        (record(list(LOADING.encode())), LOADING),
        (record("nvidia-nvswitch0: SXid (PCI:0000:c0:00.0): 12028, Non-fatal"), "nvidia-nvswitch0: SXid"),
        (record("nvidia 0000:01:00.0: enabling device (0000 -> 0002)"), "nvidia 0000"),
        (record(XID), "name=program, Ch 00000008"),
        (record("Command line: root=UUID=1 host=gandalf nvidia.x=1"), redact.NO_GPU_IN_IT),
        (record("a.out[7]: segfault at 0 in libnvidia-ml.so.1"), redact.NO_GPU_IN_IT),
    ],
)
def test_only_records_of_the_driver_keep_their_text(line: str, kept: str) -> None:
    (message,) = messages(line)
    assert kept in message
    assert "secret" not in message


def test_other_records_go_and_so_does_what_no_kernel_wrote() -> None:
    assert messages(record("eth0 up"), record(LOADING), record("eth1 up"), record(XID, facility="1")) == [LOADING]
    assert redact.of_kernel(record("NVRM: cut")[:-9]) == ""
    assert redact.of_kernel(record(XID, _CMDLINE="a secret")).count("secret") == 0
    assert redact.of_kernel("-- No entries --\n") == "-- No entries --\n"
