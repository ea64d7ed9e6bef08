"""Names of parameters: those of cyclecloud-slurm where it has them, unique everywhere."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from generator.render.cluster_form import Parameter, choice, prefix
from generator.render.cluster_parameters import parameters
from tests.bed.parts import lustre, minimal, mount, node_array
from tests.bed.plans import slurm_of
from tests.cluster_template.plans import gpu

# Functional parameters of cyclecloud-slurm 4.0.9's template that this one keeps for the same purpose.
UPSTREAM = """
    Region SchedulerMachineType loginMachineType HPCMachineType HTCMachineType GPUMachineType Autoscale
    MaxHTCExecuteNodeCount MaxHPCExecuteNodeCount MaxGPUExecuteNodeCount HPCMaxScalesetSize HTCUseLowPrio
    HTCSpotMaxPrice GPUUseLowPrio GPUSpotMaxPrice DefineNodesAvailabilityZone HPCAvailabilityZone HTCAvailabilityZone
    GPUAvailabilityZone NumberLoginNodes MaxLoginNodeCount SubnetId configuration_slurm_ha_enabled UseBuiltinSched
    NFSSchedType NFSSchedAddress NFSSchedExportPath NFSSchedMountOptions SchedFilesystemSize UseBuiltinShared NFSType
    NFSAddress NFSSharedExportPath NFSSharedMountOptions FilesystemSize Credentials ManagedIdentity BootDiskSize
    NodeTags configuration_slurm_version configuration_slurm_accounting_enabled configuration_slurm_accounting_url
    configuration_slurm_accounting_storageloc configuration_slurm_accounting_user
    configuration_slurm_accounting_password configuration_slurm_accounting_custom_certificate
    EnableTerminateNotification additional_slurm_config configuration_slurm_launch_parameters NodeNameIsHostname
    NodeNamePrefix SchedulerHostName SchedulerImageName LoginImageName HPCImageName HTCImageName GPUImageName
    SchedulerClusterInitSpecs LoginClusterInitSpecs HTCClusterInitSpecs HPCClusterInitSpecs GPUClusterInitSpecs
    ReturnProxy UsePublicNetwork ExecuteNodesPublic SchedulerZone SchedulerHAZone EnableNodeHealthChecks
    configuration_monitoring_enabled configuration_identity_client_id configuration_ingestion_endpoint
"""
# Ours alone: what the stock template has once for all partitions, for some of them, or not at all.
OWN = """
    GPUMaxScalesetSize HTCMaxScalesetSize HPCUseLowPrio HPCSpotMaxPrice HPCBootDiskSize SchedulerBootDiskSize
    DataMountType DataMountAddress DataMountExportPath DataMountOptions
"""
NAMES = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?\Z")
RESERVED = frozenset({"scheduler", "login"})
"""Node names of the template itself; a partition cannot have them."""


def test_names_of_the_stock_template_are_kept() -> None:
    plan = gpu()
    arrays = (*slurm_of(plan).node_arrays, node_array("gpu", is_default=False))
    plan = replace(plan, slurm=replace(slurm_of(plan), node_arrays=arrays))
    found = sorted(parameter.name for parameter in parameters(plan, slurm_of(plan)))
    assert found == sorted(f"{UPSTREAM} {OWN}".split())


@given(st.lists(NAMES.filter(lambda name: name not in RESERVED), unique=True, min_size=2, max_size=12))
@example(["a-b", "ab", "a--b"])
@example(["hpc", "h-pc", "hp-c"])
@example(["100g", "p100g", "p-100g", "p100g-a"])
@example(["gpu-h100", "gpuh100", "gpu-h-100"])
def test_partitions_and_mounts_never_share_a_parameter(names: list[str]) -> None:
    base = minimal()
    arrays = tuple(node_array(name, os_disk_gb=64) for name in names)
    mounts = tuple(mount(name, f"/{name}") for name in names)
    plan = replace(base, mounts=mounts, slurm=replace(slurm_of(base), node_arrays=arrays))
    found = [parameter.name.lower() for parameter in parameters(plan, slurm_of(plan))]
    assert len(found) == len(set(found))
    assert all(name.isidentifier() for name in found)


@given(NAMES, NAMES)
def test_a_prefix_depends_on_the_name_alone(one: str, other: str) -> None:
    assert (prefix(one).lower() == prefix(other).lower()) == (one == other)


def test_prefixes() -> None:
    names = ("hpc", "htc", "gpu", "debug", "gpu-h100", "100g")
    assert [prefix(name) for name in names] == ["HPC", "HTC", "GPU", "Debug", "Gpu_H100", "P100g_"]


def test_a_declaration_prints_its_section() -> None:
    text = Parameter("P", "Label", ["1", "2"], "Two words", "StringList", (("Required", True),)).lines
    assert text == (
        "Label = Label", 'Description = "Two words"', "ParameterType = StringList", 'DefaultValue := {"1", "2"}',
        "Required = true",
    )  # fmt: skip
    assert Parameter("P", "Label", None).lines == ("Label = Label",)
    assert str(choice('a"b')[-1]) == "('Config.Entries', Raw(text='{[Value=\"a\\\\\"b\"]}'))"


def test_known_sizes_and_addresses_are_defaults_of_the_form() -> None:
    plan = replace(minimal(), mounts=(replace(lustre(), address="10.0.0.5", address_fact=None),))
    address = next(found for found in parameters(plan, slurm_of(plan)) if found.name == "DataMountAddress")
    assert (address.value, address.late) == ("10.0.0.5", None)
    assert 'DefaultValue = "10.0.0.5"' in address.lines
