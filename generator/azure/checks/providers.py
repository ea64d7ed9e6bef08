"""Resource providers and features that the subscription must have registered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from ...plan.deployment import Plan
from ..check import Check, Finding, Remedy
from ..reader import Reader
from ..refusals import NotAsked
from ..requests import resource_manager
from ..writer import Writer

_REGISTERED = "registered"
_LIMIT_S = 600
LOOK_AFTER_S = 10.0


def register(namespace: str, writer: Writer) -> None:
    """Register a provider and wait until it is, at most ten minutes.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-providers-and-types
    """
    writer.do(resource_manager.register(namespace))
    end = time.monotonic() + _LIMIT_S
    while True:
        writer.forget()
        state = str(writer.get(resource_manager.provider(namespace))["registrationState"])
        if state.casefold() == _REGISTERED:
            return
        if time.monotonic() + LOOK_AFTER_S > end:
            raise NotAsked(f"{namespace} is {state} after {_LIMIT_S // 60} minutes; Azure continues")
        time.sleep(LOOK_AFTER_S)


class UnregisteredProvider(Check):
    id = "E4201"
    summary = "A resource provider that the deployment needs is not registered in the subscription."
    why = "Azure refuses its resources with MissingSubscriptionRegistration; some registrations take minutes."
    fix = "`cycleforge preflight NAME --fix`, or the command that the finding prints, once per subscription."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-providers-and-types"
    question = "whether every resource provider is registered"
    path = ("azure", "subscription_id")

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        listed = reader.pages(resource_manager.providers())
        states = {str(each["namespace"]).casefold(): str(each["registrationState"]) for each in listed}
        for name in plan.providers:
            state = states.get(name.casefold())
            if state is None:
                text = f"the cloud of this subscription does not have the provider {name}"
                yield self.finding(self.path, text, "choose another region, or leave out what needs it")
            elif state.casefold() != _REGISTERED:
                yield self.finding(
                    self.path,
                    f"the provider {name} is {state}",
                    f"az provider register --namespace {name} --wait",
                    Remedy(f"register the provider {name}", partial(register, name)),
                )


class HostEncryptionFeature(Check):
    id = "E4202"
    summary = "VMs shall encrypt at the host, and the subscription does not have the feature."
    why = "Azure refuses the VM: the server while the deployment runs, a node when a job already waits for it."
    fix = (
        "`az feature register --namespace Microsoft.Compute --name EncryptionAtHost`, then register Microsoft.Compute."
    )
    source = "https://learn.microsoft.com/azure/virtual-machines/disks-enable-host-based-encryption-cli"
    question = "whether the subscription has encryption at host"
    path = ("security", "encryption_at_host")

    def needed(self, plan: Plan) -> bool:
        """Whether it is asked for, of all machines or of a role's nodes."""
        of_nodes = plan.slurm is not None and plan.slurm.has_vm_attribute("EncryptionAtHost", True)
        return plan.security.encryption_at_host or of_nodes

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Its state; a feature that the subscription has never asked about counts as one that it has not."""
        del plan
        found = reader.find(resource_manager.feature("Microsoft.Compute", "EncryptionAtHost"))
        state = "NotRegistered" if found is None else str(found["properties"]["state"])
        if state.casefold() != _REGISTERED:
            hint = (
                "az feature register --namespace Microsoft.Compute --name EncryptionAtHost, wait until az feature show "
                "says Registered, then az provider register --namespace Microsoft.Compute"
            )
            yield self.finding(self.path, f"the feature EncryptionAtHost is {state}", hint)
