"""misc_ndv4: the PMIx that Slurm's plugin and MPI programs load."""

from __future__ import annotations

import pytest

from tests.bed.scripts.node import A100, Node
from tests.projects.conftest import NDV4_SCRIPTS
from tests.projects.pmix import BARE, DISTRIBUTION, SLURM_LIB, plugin, repository


@pytest.fixture
def node(gpu_node: Node) -> Node:
    return gpu_node


@pytest.mark.parametrize(
    "folder", [SLURM_LIB, "usr/lib64/slurm", "usr/lib/x86_64-linux-gnu/slurm-wlm", "opt/slurm/lib64/slurm"]
)
def test_pmix_of_the_image_is_reported_with_its_version(node: Node, folder: str) -> None:
    plugin(node, folder=folder)
    node.write("opt/pmix/4.2.9/lib/libpmix.so", "")
    node.fake("apt-get", "exit 1")
    assert "PMIx: PMIx 4.2.9 (/opt/pmix/4.2.9/lib/libpmix.so), in the image" in node.ok("60-pmix.sh")
    assert node.calls("apt-get") == []


@pytest.mark.parametrize(
    ("name", "version", "tool", "call"),
    [
        ("ubuntu", "22.04", "apt-get", "apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends pmix"),
        ("ubuntu", "24.04", "apt-get", "apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends pmix"),
        ("almalinux", "8.10", "dnf", "dnf --assumeyes --setopt=install_weak_deps=False install pmix"),
        ("almalinux", "9.4", "dnf", "dnf --assumeyes --setopt=install_weak_deps=False install pmix"),
    ],
)
def test_a_missing_pmix_is_installed_from_its_package(
    node: Node, name: str, version: str, tool: str, call: str
) -> None:
    node.os(name, version)
    plugin(node)
    repository(node, tool, "pmix")
    assert "PMIx 4.2.9 (/opt/pmix/4.2.9/lib/libpmix.so), installed" in node.ok("60-pmix.sh")
    assert node.calls(tool) == [call]


@pytest.mark.parametrize("size", ["Standard_D4as_v5", A100, "Standard_Unknown_v9"])
def test_pmix_is_the_same_on_nodes_without_gpus(node: Node, size: str) -> None:
    node.vm_size(size)
    plugin(node)
    repository(node, "apt-get", "pmix")
    assert "PMIx 4.2.9" in node.ok("60-pmix.sh")


def test_the_pmix_of_a_distribution_is_another_package(node: Node) -> None:
    plugin(node, DISTRIBUTION)
    repository(node, "apt-get", "libpmix2", brings="usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so.2")
    node.fake("dpkg-query", "case $* in *--search*) echo libpmix2:amd64: x ;; *) echo 4.1.2-2 ;; esac")
    assert "PMIx 4.1.2-2 (/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so.2), installed" in node.ok("60-pmix.sh")


def test_a_pmix_that_the_linker_does_not_see_is_shown_to_it(node: Node) -> None:
    """Below /opt/pmix, while the plug-in asks for the bare name."""
    plugin(node, BARE)
    node.write("opt/pmix/4.2.9/lib/libpmix.so", "")
    node.fake(
        "ldconfig",
        """if [[ "$1" != -p ]]; then touch "$FAKE_STATE/ran"
elif [[ -e "$FAKE_STATE/ran" ]]; then
    printf '\\tlibpmix.so.2 (libc6,x86-64) => /x/libpmix.so.2\\n'
    printf '\\tlibpmix.so (libc6,x86-64) => /opt/pmix/4.2.9/lib/libpmix.so\\n'
fi""",
    )
    assert "PMIx 4.2.9 (/opt/pmix/4.2.9/lib/libpmix.so), in the image" in node.ok("60-pmix.sh")
    assert node.read("etc/ld.so.conf.d/90-cycleforge-pmix.conf") == "/opt/pmix/4.2.9/lib\n"


@pytest.mark.parametrize("how", ["no such package", "no network", "unknown system"])
def test_a_pmix_that_cannot_be_had_is_a_warning_with_what_to_do(node: Node, how: str) -> None:
    plugin(node)
    if how == "unknown system":
        node.os("opensuse-leap", "15.6")
    repository(node, "apt-get")
    if how == "no network":
        node.fake("apt-get", "exit 100")
    output = node.ok("60-pmix.sh")
    assert "finds no /opt/pmix/4.2.9/lib/libpmix.so: no repository offers any of: pmix libpmix2" in output
    assert "  do:  use an HPC image" in output
    assert ("is not known here" in output) == (how == "unknown system")


def test_a_package_without_the_library_is_a_warning(node: Node) -> None:
    plugin(node)
    repository(node, "apt-get", "pmix", brings="opt/pmix/5.0.1/lib/libpmix.so")
    assert "the package pmix libpmix2 did not bring it" in node.ok("60-pmix.sh")


def test_the_package_lists_are_renewed_once(node: Node) -> None:
    """Those of an image may be empty."""
    plugin(node)
    node.fake(
        "apt-get",
        """case "$*" in
    *update*) touch "$FAKE_STATE/lists" ;;
    *" pmix") [[ -e "$FAKE_STATE/lists" ]] || exit 100; mkdir -p "$CYCLEFORGE_ROOT/opt/pmix/4.2.9/lib"
        touch "$CYCLEFORGE_ROOT/opt/pmix/4.2.9/lib/libpmix.so" ;;
    *) exit 100 ;;
esac""",
    )
    assert "PMIx 4.2.9" in node.ok("60-pmix.sh")
    assert len([call for call in node.calls("apt-get") if call.endswith(" update")]) == 1


def test_a_slurm_without_the_plugin_and_no_slurm_at_all(node: Node) -> None:
    assert "Slurm is not installed" in node.ok("60-pmix.sh")
    node.fake("slurmd", "exit 0")
    assert "this Slurm has no PMIx plug-in" in node.ok("60-pmix.sh")


def test_nothing_of_slurmds_environment_is_set_for_pmix(node: Node) -> None:
    """PMIX_MCA_ptl, psec and gds of the older projects worked around PMIx 3; 4.2.9 runs without."""
    plugin(node)
    node.write("opt/pmix/4.2.9/lib/libpmix.so", "")
    for script in NDV4_SCRIPTS:
        node.ok(script)
    assert not [path for path in node.files() if path.startswith("etc/") and "PMIX_" in node.read(path)]
