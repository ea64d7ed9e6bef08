"""Images that VMs are made from: their size, their terms, whether they are still serviced, what the catalogue knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from .. import catalog
from ..catalog.node_images import image_plan, image_row
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site, quoted
from .roles import roles


class OsDiskTooSmall(DefinitionRule):
    id = "E0716"
    summary = "An OS disk is smaller than the image that it would hold."
    why = (
        "Azure refuses such a VM: the specified disk size is smaller than the size of the corresponding disk in the VM "
        "image."
    )
    fix = "Choose at least the size that the message names, or leave os_disk_gb out."
    source = "https://github.com/Azure/azhpc-images/blob/master/packer/source.pkr.hcl"

    def check(self, site: Site) -> Iterator[Problem]:
        for node in roles(site):
            asked, row = node.settings.os_disk_gb, image_row(node.image)
            size = row.os_disk_gib if row is not None else None
            if asked is not None and size is not None and asked < size:
                text = f"the OS disk of {node.label} has {asked} GB, its image {node.image} has {size} GB"
                yield self.problem((*node.path, "os_disk_gb"), text, f"os_disk_gb: {size}")


class ServerDiskUnknown(DefinitionRule):
    id = "W0727"
    summary = "It is not known whether the server's image fits on its OS disk."
    why = "The size of the CycleCloud image is not published, and Azure refuses a disk that is smaller than the image."
    fix = "Leave server.os_disk_gb out, or silence this rule when a deployment has shown that the disk is large enough."
    source = "https://learn.microsoft.com/azure/cyclecloud/qs-install-marketplace"

    def check(self, site: Site) -> Iterator[Problem]:
        server = site.definition.server
        if server.existing is None and server.image_id is None and server.os_disk_gb is not None:
            text = f"whether the CycleCloud image fits on an OS disk of {server.os_disk_gb} GB is not published"
            yield self.problem(("server", "os_disk_gb"), text)


class UnknownTerms(DefinitionRule):
    id = "I0726"
    summary = "It is not known whether an image has marketplace terms."
    why = "A node whose image has terms that nobody accepted for the subscription does not start."
    fix = "Ask for its plan with the command of the deployment's README, and accept the terms if there is one."
    source = "https://learn.microsoft.com/cli/azure/vm/image/terms"

    def check(self, site: Site) -> Iterator[Problem]:
        seen: set[Path] = set()
        for node in roles(site):
            if node.image_path not in seen and is_urn(node.image) and image_plan(node.image) == "unknown":
                seen.add(node.image_path)
                text = f"whether the image {quoted(node.image)} has marketplace terms is not known"
                yield self.problem(node.image_path, text)


class JumpboxOutOfSupport(DefinitionRule):
    id = "W0717"
    summary = "The Windows release of the jumpbox gets no security updates any more."
    why = "Microsoft has ended its servicing; its image disappears from the marketplace afterwards."
    fix = "Remove server.jumpbox.sku, or choose a release in support, for example win11-25h2-pro."
    source = "https://learn.microsoft.com/lifecycle/products/windows-11-home-and-pro"

    def check(self, site: Site) -> Iterator[Problem]:
        jumpbox = site.definition.server.jumpbox
        found = re.fullmatch(r"win11-(\w+)-(pro|ent|avd)[\w-]*", jumpbox.sku.lower()) if jumpbox is not None else None
        if jumpbox is None or found is None:
            return
        edition = "pro" if found[2] == "pro" else "ent"
        end = catalog.support().windows_11.releases.get(found[1], {}).get(edition)
        if catalog.out_of_support(end):
            text = f"the servicing of {quoted(jumpbox.sku)} ended on {end}"
            yield self.problem(("server", "jumpbox", "sku"), text, "sku: win11-25h2-pro")


class ImageFacts(Struct, frozen=True):
    """What the catalogue knows of a node image."""

    os: str
    arch: tuple[str, ...]
    variant: str
    """GPU driver variant: `nvidia`, `v100` or `rocm`."""


_URN = re.compile(r"[^:/\s]+:[^:/\s]+:[^:/\s]+:[^:/\s]+")


def is_urn(image: str) -> bool:
    """Whether the text has the four parts of a marketplace URN."""
    return _URN.fullmatch(image) is not None


def image_variant(urn: str) -> str:
    """GPU driver variant that an HPC image's SKU names."""
    return next((variant for variant in ("v100", "rocm") if variant in urn.lower()), "nvidia")


def image_facts(image: str) -> ImageFacts | None:
    """Facts of a CycleCloud image name or of a known HPC image; None for others, about which nothing can be said."""
    row = image_row(image)
    return ImageFacts(row.os, tuple(row.arch), image_variant(image)) if row else None
