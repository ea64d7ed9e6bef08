"""misc_ubuntu: blob containers by blobfuse2."""

from __future__ import annotations

import pytest
import yaml

from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

UNIT = "etc/systemd/system/cycleforge-blob-data.service"


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("misc_ubuntu")
    made.fake("blobfuse2", "exit 0")
    made.write("proc/meminfo", "MemTotal: 1857830712 kB\n")
    for key, value in (("mounts", "data"), ("data.path", "/blob"), ("data.storage_account", "datasets0001"),
                       ("data.container", "train")):  # fmt: skip
        made.attribute(f"cycleforge.blobfuse.{key}", value)
    return made


def config(node: Node) -> dict[str, dict[str, object]]:
    content: dict[str, dict[str, object]] = yaml.safe_load(node.read("etc/cycleforge/blobfuse/data.yaml"))
    return content


def test_a_container_gets_a_config_without_a_secret_and_a_unit(node: Node) -> None:
    node.ok("60-blobfuse.sh")
    assert config(node)["azstorage"] == {
        "type": "block",
        "account-name": "datasets0001",
        "container": "train",
        "mode": "msi",
    }
    assert config(node)["block_cache"]["mem-size-mb"] == 65536
    unit = node.read(UNIT)
    assert (
        "blobfuse2 mount /blob --config-file=/etc/cycleforge/blobfuse/data.yaml --foreground -o allow_other\n" in unit
    )
    assert "Before=slurmd.service" in unit
    assert node.calls("systemctl restart") == ["systemctl restart cycleforge-blob-data.service"]


@pytest.mark.parametrize("memory_gib", [1, 4, 16, 64, 900])
def test_the_cache_fits_the_node_and_holds_what_is_read_ahead(node: Node, memory_gib: int) -> None:
    node.write("proc/meminfo", f"MemTotal: {memory_gib * 1024 * 1024} kB\n")
    node.ok("60-blobfuse.sh")
    cache = config(node)["block_cache"]
    assert isinstance(cache["mem-size-mb"], int)
    assert isinstance(cache["prefetch"], int)
    assert cache["prefetch"] * 32 <= cache["mem-size-mb"] <= memory_gib * 1024 // 4
    assert cache["prefetch"] > 0


def test_identity_endpoint_and_options(node: Node) -> None:
    for key, value in (
        ("identity_client_id", "0b0a-11"),
        ("endpoint", "https://a.blob.core.usgovcloudapi.net"),
        ("options", "ro"),
    ):
        node.attribute(f"cycleforge.blobfuse.data.{key}", value)
    node.ok("60-blobfuse.sh")
    assert config(node)["azstorage"]["appid"] == "0b0a-11"
    assert config(node)["azstorage"]["endpoint"] == "https://a.blob.core.usgovcloudapi.net"
    assert "-o allow_other,ro\n" in node.read(UNIT)


def test_without_blob_mounts_nothing_happens(node: Node) -> None:
    node.attribute("cycleforge.blobfuse.mounts", "")
    before = node.content()
    node.ok("60-blobfuse.sh")
    assert node.content() == before


def test_a_mount_that_left_the_definition_goes(node: Node) -> None:
    before = node.content()
    node.ok("60-blobfuse.sh")
    node.attribute("cycleforge.blobfuse.mounts", "")
    node.ok("60-blobfuse.sh")
    assert node.content() == before


def test_a_second_run_changes_nothing(node: Node) -> None:
    node.ok("60-blobfuse.sh")
    before = node.files()
    node.ok("60-blobfuse.sh")
    assert node.files() == before
    assert len(node.calls("systemctl restart")) == 1


def test_a_missing_program_is_installed_or_named(node: Node) -> None:
    node.remove("blobfuse2")
    node.fake("apt-get", "exit 100")
    assert "blobfuse2 is not installed and could not be" in node.fails("60-blobfuse.sh")
    node.fake("apt-get", f"ln -s {node.bin}/true {node.bin}/blobfuse2; exit 0")
    (node.bin / "true").symlink_to("/bin/true")
    node.ok("60-blobfuse.sh")
    assert "DPkg::Lock::Timeout=300" in node.calls("apt-get")[-1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data.path", "blob"),
        ("data.path", "/a b"),
        ("data.storage_account", "UPPER"),
        ("data.container", 'x"\nmode: key'),
        ("data.options", "a b"),
        ("data.endpoint", "http://x"),
        ("mounts", "a;b"),
        ("data.storage_account", ""),
    ],
)
def test_bad_values_are_named(node: Node, key: str, value: str) -> None:
    node.attribute(f"cycleforge.blobfuse.{key}", value)
    assert f"cycleforge.blobfuse.{key}" in node.fails("60-blobfuse.sh")
