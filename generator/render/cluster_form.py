"""Building blocks of the parameter form: one declaration is a `[[[parameter]]]` section and a value."""

from __future__ import annotations

from msgspec import Struct, field

from ..cctemplate.writing import Raw, Writable, assignment, classad
from ..files.file import Json
from ..plan.vm_attributes import VmAttributes

Form = tuple[tuple[str, Writable], ...]
"""Attributes of a parameter's section."""

MAX_DISK_GB = 32767  # https://learn.microsoft.com/azure/virtual-machines/disks-types, largest managed disk
# Upstream spells the prefixes of its own partitions in upper case.
_UPSTREAM_PREFIXES = {"hpc": "HPC", "htc": "HTC", "gpu": "GPU"}


class Parameter(Struct, frozen=True):
    """One parameter; `kind` is its ParameterType, `form` further attributes of its section."""

    name: str
    label: str
    value: Json
    description: str = ""
    kind: str | None = None
    form: Form = ()
    late: str | None = None
    """What is known only at deployment: a key of the server's facts, or `secret:<name>`. Then `value` is None."""

    @property
    def lines(self) -> tuple[str, ...]:
        named: list[tuple[str, Writable]] = [("Label", self.label)]
        if self.description:
            named.append(("Description", self.description))
        if self.kind:
            named.append(("ParameterType", self.kind))
        if isinstance(self.value, bool | int | float | str):
            named.append(("DefaultValue", self.value))
        elif isinstance(self.value, list):
            named.append(("DefaultValue", [item for item in self.value if isinstance(item, str)]))
        return tuple(f"{name} {assignment(value)}" for name, value in (*named, *self.form))


class Group(Struct, frozen=True):
    """A box of the form."""

    name: str
    parameters: tuple[Parameter, ...]
    description: str = ""


class Tab(Struct, frozen=True):
    """A page of the form."""

    name: str
    order: int
    groups: tuple[Group, ...] = field(default=())


def prefix(name: str) -> str:
    """The part of parameter names that stands for a partition or mount, for example `Gpu_H100` for `gpu-h100`.

    Different names (of a-z, 0-9 and '-', neither first nor last '-') give prefixes that differ even without case, as
    CycleCloud compares parameters, and a prefix does not depend on which other partitions there are. That is why '-'
    becomes '_' and does not just vanish.
    """
    if name in _UPSTREAM_PREFIXES:
        return _UPSTREAM_PREFIXES[name]
    written = "_".join(part.capitalize() for part in name.split("-"))
    return f"P{written}_" if written[0].isdigit() else written


def number(low: int, high: int | None = None) -> Form:
    limits: Form = (("Config.MinValue", low),)
    if high is not None:
        limits += (("Config.MaxValue", high),)
    return (("Config.Plugin", "pico.form.NumberTextBox"), *limits, ("Config.IntegerOnly", True))


def choice(*values: str) -> Form:
    """A list to choose from that also takes other text."""
    entries = Raw("{" + ", ".join(f"[Value={classad(value)}]" for value in values) + "}")
    return (("Config.Plugin", "pico.form.Dropdown"), ("Config.FreeForm", True), ("Config.Entries", entries))


def only_if(condition: str) -> Form:
    """The parameter counts, and is shown, under a condition."""
    return (("Conditions.Excluded", Raw(f"!({condition})")),)


def shown_if(condition: str) -> Form:
    return (("Conditions.Hidden", Raw(f"!({condition})")),)


def switch(name: str, label: str, value: bool, text: str) -> Parameter:
    return Parameter(
        name, label, value, form=(("Widget.Plugin", "pico.form.BooleanCheckBox"), ("Widget.Label", text))
    )  # fmt: skip


def machine(name: str, label: str, vm_size: str) -> Parameter:
    return Parameter(name, label, vm_size, kind="Cloud.MachineType")


def machines(name: str, label: str, vm_sizes: tuple[str, ...]) -> Parameter:
    return Parameter(name, label, list(vm_sizes), kind="Cloud.MachineType", form=(("Config.MultiSelect", True),))


def image(name: str, label: str, image: str) -> Parameter:
    """An image: a name of CycleCloud, a marketplace URN or a resource id."""
    return Parameter(name, label, image, kind="Cloud.Image", form=(("Config.OS", "linux"),))


def extra_specs(name: str, role: str) -> Parameter:
    """Specs that an operator adds in the portal; empty in our own deployments."""
    text = f"Further cluster-init specs of {role}; they run after those of the template"
    return Parameter(name, "Extra cluster-init", None, text, "Cloud.ClusterInitSpecs")


def role_subnet(start: str, subnet: str | None) -> tuple[Parameter, ...]:
    """The subnet of a role whose nodes are in another one than the cluster; nothing for any other."""
    if subnet is None:
        return ()
    text = "resource group/network/subnet of these nodes, in place of that of the cluster"
    return (Parameter(f"{start}SubnetId", "Subnet", subnet, text, "Azure.Subnet", (("Required", True),)),)


def role_tags(start: str, own: VmAttributes) -> tuple[Parameter, ...]:
    """The tags of a role that has its own beside those of the deployment; nothing for any other."""
    if not own.tags:
        return ()
    text = "All tags of these VMs, in place of those of the cluster"
    return (Parameter(f"{start}NodeTags", "Tags", dict(own.tags), text, "Record", (("Config.MultiSelect", False),)),)


def disk(name: str, size_gb: int) -> Parameter:
    text = "Size of the OS disk in GB; 0 takes the size of the image"
    return Parameter(name, "OS disk", size_gb, text, form=number(0, MAX_DISK_GB))
