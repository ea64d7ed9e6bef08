"""Images: whether they exist in the region, are still offered, and whether their marketplace terms are accepted.

A plan in the image's answer means that its terms must be accepted once per subscription; plan and offer of the terms
are those of the answer, not always SKU and offer of the image.

Sources: https://learn.microsoft.com/rest/api/compute/virtual-machine-images/get, and the Azure CLI, which refuses
`az vm image terms accept` for images without a plan (azure-cli vm/custom.py, accept_terms).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from ...catalog.node_images import ImagePlan
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ...records import record
from ...rules.wording import quoted
from .answers import Found, Item, OddAnswer, below, described, listed_below, said, same


@record
class Urn:
    """A marketplace image."""

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


@record
class Wanted:
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
        yield Wanted(slurm.scheduler.image, _image_path(plan, "scheduler"), "the scheduler")
        if slurm.login.max_count:
            yield Wanted(slurm.login.image, _image_path(plan, "login"), "the login nodes")
        for index, array in enumerate(slurm.node_arrays):
            yield Wanted(array.image, _image_path(plan, "partitions", index), f"partition {array.partition}")


def _image_path(plan: Plan, *keys: str | int) -> KeyPath:
    """The role's own image, or that of the cluster."""
    found: object = plan.resolved.get("slurm")
    for key in keys:
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and isinstance(key, int) and key < len(found):
            found = found[key]
    own = isinstance(found, dict) and found.get("image")
    return ("slurm", *keys, "image") if own else ("slurm", "image")


# ------------------------------------------------------------ marketplace


def newest(answer: Iterable[Item]) -> str | None:
    """The newest of the listed versions, by its numbers; None: there is none."""
    names = [str(each.get("name")) for each in answer if each.get("name")]
    return max(names, key=_version, default=None)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in name.split("."))


def plan_of(image: Item) -> ImagePlan | None:
    """The plan in the answer about an image; None: it has none."""
    plan = below(described(image, "an image"), "properties", "plan")
    if plan is None:
        return None
    parts = tuple(str(below(image, "properties", "plan", key) or "") for key in ("publisher", "product", "name"))
    if not all(parts):
        raise OddAnswer("the plan of an image is not complete")
    return ImagePlan(*parts)


def missing(wanted: Wanted, region: str) -> Found:
    """No such image in the region."""
    urn = wanted.urn
    look = ""
    if urn is not None:
        names = f"--publisher {quote(urn.publisher)} --offer {quote(urn.offer)} --sku {quote(urn.sku)}"
        look = f"az vm image list --all -l {region} {names} -o table"
    return Found(wanted.path, f"{region} has no image {quoted(wanted.image)} ({wanted.title})", look)


def deprecated(wanted: Wanted, image: Item) -> Iterator[Found]:
    """An image that nobody may use any more, or soon.

    Source: https://learn.microsoft.com/azure/virtual-machines/deprecated-images
    """
    status = below(described(image, "an image"), "properties", "imageDeprecationStatus") or {}
    state = below(image, "properties", "imageDeprecationStatus", "imageState")
    if state is None or same(state, "Active"):
        return
    day = str(status.get("scheduledDeprecationTime") or "").split("T")[0]
    other = below(image, "properties", "imageDeprecationStatus", "alternativeOption", "value")
    when = f" from {day}" if day and not same(state, "Deprecated") else ""
    text = f"{quoted(wanted.image)} ({wanted.title}) is deprecated{when}"
    yield Found(
        wanted.path, text, f"Azure names another: {said(other)}" if other else "choose another version or image"
    )


def is_deprecated(image: Item) -> bool:
    """Whether no VM can be made of it any more."""
    state = below(described(image, "an image"), "properties", "imageDeprecationStatus", "imageState")
    return same(state, "Deprecated")


# ------------------------------------------------------------ terms


def not_accepted(plan: ImagePlan, agreement: Item, path: KeyPath, title: str) -> Iterator[Found]:
    """Terms that nobody has accepted; OddAnswer where the agreement does not say."""
    accepted = below(agreement, "properties", "accepted")
    if not isinstance(accepted, bool):
        raise OddAnswer("the answer about marketplace terms does not say whether they are accepted")
    if not accepted:
        text = (
            f"the terms of {plan.publisher}:{plan.product}:{plan.name} ({title}) are not accepted in this subscription"
        )
        yield Found(path, text, accept_line(plan))


def accept_line(plan: ImagePlan) -> str:
    """What accepts them."""
    names = f"--publisher {quote(plan.publisher)} --offer {quote(plan.product)} --plan {quote(plan.name)}"
    return f"az vm image terms accept {names}"


# ------------------------------------------------------------ own images


def gallery_faults(wanted: Wanted, version: Item, region: str) -> Iterator[Found]:
    """A version of a gallery image that is not replicated to the region, or that is excluded from it.

    Source: https://learn.microsoft.com/rest/api/compute/gallery-image-versions/get
    """
    regions = listed_below(described(version, "an image"), "properties", "publishingProfile", "targetRegions")
    here = [each for each in regions if same(each.get("name"), region)]
    if not here:
        has = ", ".join(said(each.get("name")) for each in regions) or "none"
        text = f"the image of {wanted.title} is not replicated to {region}; its regions are {has}"
        yield Found(wanted.path, text, "az sig image-version update --target-regions …")
    state = below(version, "properties", "provisioningState")
    if state is not None and not same(state, "Succeeded"):
        yield Found(wanted.path, f"the image of {wanted.title} is not ready: its state is {said(state)}")


def purchase_plan(definition: Item) -> ImagePlan | None:
    """The marketplace plan that a gallery image has kept from the image that it was made from."""
    plan = below(described(definition, "an image"), "properties", "purchasePlan")
    if not plan:
        return None
    parts = (
        str(below(definition, "properties", "purchasePlan", key) or "") for key in ("publisher", "product", "name")
    )
    return ImagePlan(*parts)


def managed_faults(wanted: Wanted, image: Item, region: str) -> Iterator[Found]:
    """A managed image that is in another region than the VMs."""
    if not same(image.get("location"), region):
        text = f"the image of {wanted.title} is in {said(image.get('location'))}, the VMs will be in {region}"
        yield Found(wanted.path, text, "copy it into a gallery, and replicate it to the region")
