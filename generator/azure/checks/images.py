"""Images: whether they exist in the region, are still offered, and whether their marketplace terms are accepted.

A plan in the image's answer means that its terms must be accepted once per subscription; plan and offer of the terms
are those of the answer, not always SKU and offer of the image.

Sources: https://learn.microsoft.com/rest/api/compute/virtual-machine-images/get, and the Azure CLI, which refuses
`az vm image terms accept` for images without a plan (azure-cli vm/custom.py, accept_terms).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from shlex import quote
from typing import Any, ClassVar

from msgspec import Struct

from ...catalog import release_of_build
from ...catalog.node_images import ImagePlan, image_plan
from ...plan.deployment import Plan
from ...problems.problem import KeyPath
from ...rules.base import quoted
from ..answers import Item, OddAnswer, below, described, listed_below, said, same
from ..check import Check, Finding, Remedy
from ..reader import Reader
from ..requests.compute import (
    ACCEPT_TERMS,
    GALLERY_IMAGE,
    GALLERY_VERSION,
    GALLERY_VERSIONS,
    IMAGE,
    IMAGE_VERSIONS,
    MANAGED_IMAGE,
    SERVER,
    TERMS,
)
from ..writer import Writer

_ID = re.compile(
    r"/subscriptions/(?P<owner>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/Microsoft\.Compute"
    r"(?:/galleries/(?P<gallery>[^/]+))?/images/(?P<image>[^/]+)(?:/versions/(?P<version>[^/]+))?/?",
    re.IGNORECASE,
)


class Urn(Struct, frozen=True):
    publisher: str
    offer: str
    sku: str
    version: str

    @property
    def is_latest(self) -> bool:
        """Whether the newest version is wanted, which cannot be asked for by this word."""
        return same(self.version, "latest")

    @property
    def text(self) -> str:
        """As the Azure CLI writes it."""
        return f"{self.publisher}:{self.offer}:{self.sku}:{self.version}"


class Wanted(Struct, frozen=True):
    """An image that something is made from."""

    image: str
    """URN, resource id or CycleCloud's name."""
    path: KeyPath
    title: str

    @property
    def urn(self) -> Urn | None:
        """Its parts where it is a URN."""
        parts = self.image.split(":")
        return Urn(*parts) if len(parts) == 4 and all(parts) else None


def wanted_images(plan: Plan) -> tuple[Wanted, ...]:
    """Every image once, with the first place that names it."""
    found: dict[str, Wanted] = {}
    for each in _wanted(plan):
        found.setdefault(each.image.casefold(), each)
    return tuple(found.values())


def _wanted(plan: Plan) -> Iterator[Wanted]:
    server, slurm = plan.server, plan.slurm
    if server is not None:
        if server.image is not None:
            yield Wanted(server.image.urn, ("server", "image_version"), "the CycleCloud server")
        if server.image_id is not None:
            yield Wanted(server.image_id, ("server", "image_id"), "the CycleCloud server")
        if server.jumpbox is not None:
            yield Wanted(server.jumpbox.image.urn, ("server", "jumpbox", "sku"), "the jumpbox")
    if slurm is not None:
        for each in plan.fleet:
            if each.is_node:
                yield Wanted(slurm.role_of(each).image, _image_path(plan, each.place), each.label)


def _image_path(plan: Plan, place: KeyPath) -> KeyPath:
    """The role's own image, or that of the cluster."""
    found: Any = plan.resolved
    for key in place:
        found = found[key]
    return (*place, "image") if found.get("image") else ("slurm", "image")


class OwnImage(Struct, frozen=True):
    owner: str
    group: str
    gallery: str | None
    image: str
    version: str | None
    can_be_asked: bool = True
    """False: it is shared from another tenant, or by a community."""

    @property
    def parts(self) -> dict[str, str]:
        """What requests need of it, without the version."""
        found = {"owner": self.owner, "group": self.group, "image": self.image}
        return found | {"gallery": self.gallery} if self.gallery else found


def own_image(wanted: Wanted) -> OwnImage | None:
    """The parts of an image's id; None for one that has no id."""
    if not wanted.image.startswith("/"):
        return None
    found = _ID.fullmatch(wanted.image)
    if found is None:
        return OwnImage("", "", None, wanted.image, None, can_be_asked=False)
    version = found["version"]
    is_named = version is not None and version.casefold() != "latest"
    return OwnImage(found["owner"], found["group"], found["gallery"], found["image"], version if is_named else None)


def newest(answer: Iterable[Item]) -> str | None:
    """The newest of the listed versions, by its numbers; None: there is none."""
    names = [str(each.get("name")) for each in answer if each.get("name")]
    return max(names, key=_version, default=None)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in name.split("."))


def _marketplace(plan: Plan, reader: Reader, urn: Urn) -> Item | None:
    """The image, in at most two steps; None: the region does not have it."""
    parts = {"region": plan.location, "publisher": urn.publisher, "offer": urn.offer, "sku": urn.sku}
    version: str | None = urn.version
    if urn.is_latest:
        version = newest(reader.find_pages(IMAGE_VERSIONS(**parts)))
        if version is None:
            return None
    found = reader.find(IMAGE(**parts, version=str(version)))
    return None if found is None else described(found, "an image")


class _OfImages(Check):
    path = ("slurm", "image")
    question = "whether the images can be used"

    def needed(self, plan: Plan) -> bool:
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
        raise NotImplementedError

    def of_owner(self, plan: Plan, reader: Reader, wanted: Wanted, own: OwnImage) -> Iterator[Finding]:
        """Return what is wrong with an image of the user's own."""
        del plan, reader, wanted, own
        yield from ()


class ImageMissing(_OfImages):
    id = "E4401"
    summary = "An image, or this version of it, is not in the region, or not yet replicated to it."
    why = "Azure refuses every VM of it (PlatformImageNotFound, GalleryImageNotFound)."
    fix = "Choose a version that exists: the command lists them. Replicate an own image to the region."
    source = "https://learn.microsoft.com/rest/api/compute/virtual-machine-images/get"

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        if _marketplace(plan, reader, urn) is None:
            names = f"--publisher {quote(urn.publisher)} --offer {quote(urn.offer)} --sku {quote(urn.sku)}"
            text = f"{plan.location} has no image {quoted(wanted.image)} ({wanted.title})"
            yield self.finding(wanted.path, text, f"az vm image list --all -l {plan.location} {names} -o table")

    def of_owner(self, plan: Plan, reader: Reader, wanted: Wanted, own: OwnImage) -> Iterator[Finding]:
        if not own.can_be_asked:
            yield self.not_known(f"{wanted.image} ({wanted.title}) is in a gallery of another tenant", path=wanted.path)
            return
        body = _own_body(reader, own)
        if body is None:
            yield self.finding(wanted.path, f"there is no image {quoted(wanted.image)} ({wanted.title})")
        elif own.gallery is None:
            if not same(body.get("location"), plan.location):
                text = (
                    f"the image of {wanted.title} is in {said(body.get('location'))}, the VMs will be in "
                    f"{plan.location}"
                )
                yield self.finding(wanted.path, text, "copy it into a gallery, and replicate it to the region")
        else:
            yield from self._of_gallery(wanted, body, plan.location)

    def _of_gallery(self, wanted: Wanted, version: Item, region: str) -> Iterator[Finding]:
        """Source: https://learn.microsoft.com/rest/api/compute/gallery-image-versions/get"""
        regions = listed_below(described(version, "an image"), "properties", "publishingProfile", "targetRegions")
        if not any(same(each.get("name"), region) for each in regions):
            has = ", ".join(said(each.get("name")) for each in regions) or "none"
            text = f"the image of {wanted.title} is not replicated to {region}; its regions are {has}"
            yield self.finding(wanted.path, text, "az sig image-version update --target-regions …")
        state = below(version, "properties", "provisioningState")
        if state is not None and not same(state, "Succeeded"):
            yield self.finding(wanted.path, f"the image of {wanted.title} is not ready: its state is {said(state)}")


def _own_body(reader: Reader, own: OwnImage) -> Item | None:
    """A managed image, or a version of a gallery's image: the newest where none is named."""
    if own.gallery is None:
        return reader.find(MANAGED_IMAGE(**own.parts))
    if own.version is not None:
        return reader.find(GALLERY_VERSION(**own.parts, version=own.version))
    versions = reader.find_pages(GALLERY_VERSIONS(**own.parts))
    latest = newest(versions)
    return next((each for each in versions if each.get("name") == latest), None)


class _Deprecated(_OfImages):
    source = "https://learn.microsoft.com/azure/virtual-machines/deprecated-images"
    fix = "Choose the image that the message names, or a newer version."
    is_now: ClassVar[bool]
    """Whether it is about those of which no VM can be made any more, or about those to which that will happen."""

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        image = _marketplace(plan, reader, urn)
        if image is None:
            return
        status = below(image, "properties", "imageDeprecationStatus") or {}
        state = below(status, "imageState")
        if state is None or same(state, "Active") or same(state, "Deprecated") is not self.is_now:
            return
        day = str(status.get("scheduledDeprecationTime") or "").split("T")[0]
        other = below(status, "alternativeOption", "value")
        when = f" from {day}" if day and not self.is_now else ""
        text = f"{quoted(wanted.image)} ({wanted.title}) is deprecated{when}"
        hint = f"Azure names another: {said(other)}" if other else "choose another version or image"
        yield self.finding(wanted.path, text, hint)


class ImageDeprecated(_Deprecated):
    id = "E4402"
    summary = "An image is deprecated: no VM can be made of it any more."
    why = "Azure refuses it (ImageVersionDeprecated)."
    question = "whether the images are still offered"
    is_now = True


class ImageDeprecatedSoon(_Deprecated):
    id = "W4403"
    summary = "An image will be deprecated: from a day on no VM can be made of it."
    why = "Nodes are made of it whenever a job needs one, so the cluster stops growing on that day."
    question = "whether the images will still be offered"
    is_now = False


class TermsNotAccepted(_OfImages):
    id = "E4404"
    summary = "The marketplace terms of an image are not accepted in this subscription."
    why = "Azure refuses every VM of it (MarketplacePurchaseEligibilityFailed, ResourcePurchaseValidationFailed)."
    fix = "Read the terms and accept them, once per subscription: the command does, and `preflight --fix`."
    source = "https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage"
    question = "whether the terms of the images are accepted"

    def needed(self, plan: Plan) -> bool:
        """Whether there is an image that could have terms."""
        return bool(plan.image_terms) or super().needed(plan)

    def _one(self, plan: Plan, reader: Reader, wanted: Wanted) -> list[Finding]:
        """Those that the image itself names; of one that only CycleCloud knows by name, those of the catalogue."""
        if wanted.urn is not None or own_image(wanted) is not None:
            return super()._one(plan, reader, wanted)
        named = image_plan(wanted.image)
        if not isinstance(named, ImagePlan):
            return []
        return list(self._terms(reader, named, wanted.path, wanted.title))

    def of_marketplace(self, plan: Plan, reader: Reader, wanted: Wanted, urn: Urn) -> Iterator[Finding]:
        """Those of the plan that the image's answer names."""
        image = _marketplace(plan, reader, urn)
        if image is None or below(image, "properties", "plan") is None:
            return
        parts = tuple(str(below(image, "properties", "plan", key) or "") for key in ("publisher", "product", "name"))
        if not all(parts):
            raise OddAnswer("the plan of an image is not complete")
        yield from self._terms(reader, ImagePlan(*parts), wanted.path, wanted.title)

    def of_owner(self, plan: Plan, reader: Reader, wanted: Wanted, own: OwnImage) -> Iterator[Finding]:
        """Those that a gallery's image has kept from the one that it was made from."""
        del plan
        if own.gallery is None or not own.can_be_asked:
            return
        image = reader.find(GALLERY_IMAGE(**own.parts))
        found = below(described(image, "an image"), "properties", "purchasePlan") if image is not None else None
        if found:
            parts = (str(below(found, key) or "") for key in ("publisher", "product", "name"))
            yield from self._terms(reader, ImagePlan(*parts), wanted.path, wanted.title)

    def _terms(self, reader: Reader, plan: ImagePlan, path: KeyPath, title: str) -> Iterator[Finding]:
        parts, name = (
            {"publisher": plan.publisher, "offer": plan.product, "plan": plan.name},
            f"{plan.publisher}:{plan.product}:{plan.name}",
        )
        agreement = reader.get(TERMS(**parts))
        accepted = below(agreement, "properties", "accepted")
        if not isinstance(accepted, bool):
            raise OddAnswer("the answer about marketplace terms does not say whether they are accepted")
        if accepted:
            return
        link = below(agreement, "properties", "licenseTextLink")
        remedy = Remedy(f"accept the terms of {name}{f' ({link})' if link else ''}", partial(_accept, parts))
        names = " ".join(f"--{key} {quote(value)}" for key, value in parts.items())
        text = f"the terms of {name} ({title}) are not accepted in this subscription"
        yield self.finding(path, text, f"az vm image terms accept {names}", remedy)


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
        server = plan.server
        if server is None or server.image is None:
            return
        if reader.find(SERVER(group=plan.resource_group, name=server.vm_name)) is None:
            text = (
                f"server.release is {server.release}, but {server.vm_name} does not exist yet, and its image holds "
                f"CycleCloud {release_of_build(server.image.version)}"
            )
            yield self.finding(self.path, text, f"release: {release_of_build(server.image.version)}")
