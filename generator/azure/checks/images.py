"""Images: there in the region, not deprecated, replicated, and their marketplace terms accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ...catalog import release_of_build
from ...catalog.node_images import ImagePlan
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ...rules.wording import quoted
from ..check import Check, Finding, Remedy
from ..findings import images
from ..findings.answers import described
from ..findings.images import Urn, Wanted, wanted_images
from ..findings.own_images import OwnImage, own_image
from ..reader import Reader
from ..requests.compute import (
    ACCEPT_TERMS,
    GALLERY_IMAGE,
    GALLERY_VERSION,
    GALLERY_VERSIONS,
    IMAGE,
    IMAGE_VERSIONS,
    MANAGED_IMAGE,
    TERMS,
)
from ..requests.deployments import SERVER
from ..writer import Writer

Body = Mapping[str, Any]
_DEPRECATED = "https://learn.microsoft.com/azure/virtual-machines/deprecated-images"
_TERMS = "https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage"


def _marketplace(plan: Plan, reader: Reader, urn: Urn) -> Body | None:
    """The image, in at most two steps; None: the region does not have it."""
    parts = {"region": plan.location, "publisher": urn.publisher, "offer": urn.offer, "sku": urn.sku}
    version: str | None = urn.version
    if urn.is_latest:
        version = images.newest(reader.find_pages(IMAGE_VERSIONS(**parts)))
        if version is None:
            return None
    found = reader.find(IMAGE(**parts, version=str(version)))
    return None if found is None else described(found, "an image")


class _OfImages(Check):
    path = ("slurm", "image")
    question = "whether the images can be used"

    def needed(self, plan: Plan) -> bool:
        """Whether Azure can be asked about one."""
        return any(each.urn is not None or own_image(each) is not None for each in wanted_images(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """All images at once; one of which nothing is known hides nothing of the others."""
        wanted = wanted_images(plan)
        for found in reader.together([partial(self._one, plan, reader, each) for each in wanted]):
            yield from found

    def _one(self, plan: Plan, reader: Reader, wanted: Wanted) -> list[Finding]:
        urn, own = wanted.urn, own_image(wanted)
        if urn is not None:
            return list(self.of_marketplace(plan, reader, wanted, urn))
        return list(self.of_owner(plan, reader, wanted, own)) if own is not None else []

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        """What is wrong with a marketplace image."""
        raise NotImplementedError

    def of_owner(self, plan: Plan, reader: Reader, wanted: Wanted, own: OwnImage) -> Iterator[Finding]:
        """What is wrong with somebody's own image."""
        del plan, reader, wanted, own
        yield from ()


class ImageMissing(_OfImages):
    id = "E4401"
    summary = "An image, or this version of it, is not in the region, or not yet replicated to it."
    why = "Azure refuses every VM of it (PlatformImageNotFound, GalleryImageNotFound)."
    fix = "Choose a version that exists: the command lists them. Replicate an own image to the region."
    source = "https://learn.microsoft.com/rest/api/compute/virtual-machine-images/get"

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        """It is not in the region."""
        if _marketplace(plan, reader, urn) is None:
            yield self.finding(*images.missing(wanted, plan.location))

    def of_owner(self, plan: Plan, reader: Reader, wanted: Wanted, own: OwnImage) -> Iterator[Finding]:
        """It is nowhere, or elsewhere."""
        if not own.can_be_asked:
            yield self.not_known(f"{wanted.image} ({wanted.title}) is of another tenant's gallery", path=wanted.path)
            return
        body = _own_body(reader, own)
        if body is None:
            yield self.finding(wanted.path, f"there is no image {quoted(wanted.image)} ({wanted.title})")
        elif own.gallery is None:
            yield from (self.finding(*found) for found in images.managed_faults(wanted, body, plan.location))
        else:
            yield from (self.finding(*found) for found in images.gallery_faults(wanted, body, plan.location))


def _own_body(reader: Reader, own: OwnImage) -> Body | None:
    """A managed image, or a version of a gallery's image: the newest where none is named."""
    if own.gallery is None:
        return reader.find(MANAGED_IMAGE(**own.parts))
    if own.version is not None:
        return reader.find(GALLERY_VERSION(**own.parts, version=own.version))
    versions = reader.find_pages(GALLERY_VERSIONS(**own.parts))
    newest = images.newest(versions)
    return next((each for each in versions if each.get("name") == newest), None)


class ImageDeprecated(_OfImages):
    id = "E4402"
    summary = "An image is deprecated: no VM can be made of it any more."
    why = "Azure refuses it (ImageVersionDeprecated)."
    fix = "Choose the image that the message names, or a newer version."
    source = _DEPRECATED
    question = "whether the images are still offered"

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        """It is, today."""
        image = _marketplace(plan, reader, urn)
        if image is not None and images.is_deprecated(image):
            yield from (self.finding(*found) for found in images.deprecated(wanted, image))


class ImageDeprecatedSoon(_OfImages):
    id = "W4403"
    summary = "An image will be deprecated: from a day on no VM can be made of it."
    why = "Nodes are made of it whenever a job needs one, so the cluster stops growing on that day."
    fix = "Choose the image that the message names, or a newer version."
    source = _DEPRECATED
    question = "whether the images will still be offered"

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        """It will be."""
        image = _marketplace(plan, reader, urn)
        if image is not None and not images.is_deprecated(image):
            yield from (self.finding(*found) for found in images.deprecated(wanted, image))


class TermsNotAccepted(_OfImages):
    id = "E4404"
    summary = "The marketplace terms of an image are not accepted in this subscription."
    why = "Azure refuses every VM of it (MarketplacePurchaseEligibilityFailed, ResourcePurchaseValidationFailed)."
    fix = "Read the terms and accept them, once per subscription: the command does, and `preflight --fix`."
    source = _TERMS
    question = "whether the terms of the images are accepted"

    def needed(self, plan: Plan) -> bool:
        """Whether there is an image that could have terms."""
        return bool(plan.image_terms) or super().needed(plan)

    def _one(self, plan: Plan, reader: Reader, wanted: Wanted) -> list[Finding]:
        """Those that the image itself names; of one that only CycleCloud knows by name, those of the catalogue."""
        if wanted.urn is not None or own_image(wanted) is not None:
            return super()._one(plan, reader, wanted)
        named = (terms for terms in plan.image_terms if wanted.title in terms.used_by)
        plans = (ImagePlan(terms.publisher, terms.product, terms.name) for terms in named)
        return [found for each in plans for found in self._terms(reader, each, wanted.path, wanted.title)]

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        """Those of the plan that the image's answer names."""
        image = _marketplace(plan, reader, urn)
        found = images.plan_of(image) if image is not None else None
        if found is not None:
            yield from self._terms(reader, found, wanted.path, wanted.title)

    def of_owner(self, plan: Plan, reader: Reader, wanted: Wanted, own: OwnImage) -> Iterator[Finding]:
        """Those that a gallery's image has kept from the one that it was made from."""
        del plan
        if own.gallery is None or not own.can_be_asked:
            return
        image = reader.find(GALLERY_IMAGE(**own.parts))
        found = images.purchase_plan(image) if image is not None else None
        if found is not None:
            yield from self._terms(reader, found, wanted.path, wanted.title)

    def _terms(self, reader: Reader, plan: ImagePlan, path: KeyPath, title: str) -> Iterator[Finding]:
        parts = {"publisher": plan.publisher, "offer": plan.product, "plan": plan.name}
        agreement = reader.get(TERMS(**parts))
        for found in images.not_accepted(plan, agreement, path, title):
            text = f"accept the terms of {plan.publisher}:{plan.product}:{plan.name}"
            link = (agreement.get("properties") or {}).get("licenseTextLink")
            more = f" ({link})" if link else ""
            yield self.finding(*found, Remedy(f"{text}{more}", partial(_accept, parts)))


def _accept(parts: Mapping[str, str], writer: Writer) -> None:
    """The same document back, with `accepted`: its signature is that of the text that was shown."""
    agreement = writer.get(TERMS(**parts))
    body = {**agreement, "properties": {**agreement["properties"], "accepted": True}}
    writer.do(ACCEPT_TERMS(**parts, body=body))


class UpgradedBeforeItExists(Check):
    id = "E4405"
    summary = "The definition says that the server was upgraded, but the server does not exist yet."
    why = (
        "A new server runs the CycleCloud of its image. Template and versions of Slurm would be those of a newer one, "
        "and nodes fail while they install what this one does not have."
    )
    fix = (
        "Take server.release out, or have server.image_version name a build of that release; upgrade the server first "
        "where it is another VM."
    )
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/upgrade-and-migrate"
    question = "whether the server that was upgraded exists"
    path = ("server", "release")

    def needed(self, plan: Plan) -> bool:
        """Whether the server runs another release than its image holds."""
        server = plan.server
        return (
            server is not None
            and server.image is not None
            and release_of_build(server.image.version) not in (None, server.release)
        )

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """The VM."""
        server = plan.server
        if server is None or server.image is None:
            return
        if reader.find(SERVER(group=plan.resource_group, name=server.vm_name)) is None:
            text = (
                f"server.release is {server.release}, but {server.vm_name} does not exist yet, and its image holds "
                f"CycleCloud {release_of_build(server.image.version)}"
            )
            yield self.finding(self.path, text, f"release: {release_of_build(server.image.version)}")
