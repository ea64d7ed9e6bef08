"""`custom_vm_sizes:` VM sizes that the catalogue does not have, as the definition describes them."""

from typing import Literal

from .fields import Section, setting


class CustomGpus(Section):
    """The GPUs of each VM."""

    count: int = setting(text="GPUs of one VM.", change="node restart", unit="GPUs", ge=1, le=64, example=8)
    vendor: Literal["NVIDIA", "AMD"] = setting(
        text="Whose GPUs; drivers, checks and jobs depend on it.", change="node restart", example="NVIDIA"
    )
    model: str = setting(text="Model, for example H100 or MI300X.", change="node restart", min_length=1, example="B300")
    memory_gb: int | None = setting(
        None,
        text="Memory of one GPU; without it no model is fitted to the GPUs.",
        unit="GB",
        ge=1,
        le=10000,
        example=288,
    )


class CustomInfiniBand(Section):
    """The InfiniBand of each VM."""

    nics: int = setting(text="InfiniBand ports of one VM.", change="node restart", unit="ports", ge=1, le=64, example=8)
    gbps_per_nic: int = setting(
        text="Speed of one port.", change="node restart", unit="Gb/s", ge=1, le=10000, example=800
    )


class CustomVmSize(Section):
    """A VM size that Azure offers and the catalogue does not have; `cycleforge list vm-sizes --from` prints it."""

    name: str = setting(text="Name of the VM size.", change="node restart", example="Standard_ND128example_v9")
    vcpus: int = setting(text="vCPUs of one VM.", change="node restart", unit="vCPUs", ge=1, le=10000, example=128)
    memory_gib: float = setting(
        text="Memory of one VM.", change="node restart", unit="GiB", gt=0, le=1000000, example=1900
    )
    guest_memory_mib: int | None = setting(
        None,
        text="Memory that `slurmd -C` prints on such a VM as RealMemory; default: not known.",
        change="node restart",
        unit="MiB",
        ge=512,
        le=1000000000,
        example=1913651,
    )
    architecture: Literal["x86_64", "aarch64"] = setting(
        text="Architecture of its processors; aarch64 is what Azure calls Arm64.",
        change="node restart",
        example="x86_64",
    )
    gpus: CustomGpus | None = setting(None, text="GPUs; none by default.", change="node restart", example={})
    infiniband: CustomInfiniBand | None = setting(
        None, text="InfiniBand; none by default.", change="node restart", example={}
    )
    nvme_disks: int | None = setting(
        None,
        text="Local NVMe disks of one VM; default: not known, and no node checks them.",
        change="node restart",
        unit="disks",
        ge=0,
        le=128,
        example=8,
    )
    premium_storage: bool | None = setting(
        None, text="Whether premium disks can be attached; default: not known.", example=True
    )
    encryption_at_host: bool | None = setting(
        None, text="Whether it supports encryption at host; default: not known.", example=True
    )
    quota_family: str | None = setting(
        None,
        text="Quota family, as `az vm list-usage` names it; default: not known.",
        example="standardNDEXAMPLEv9Family",
    )
