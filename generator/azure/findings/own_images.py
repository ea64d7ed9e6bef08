"""Images that somebody made: managed ones, and those of galleries, by the parts of their ids."""

from __future__ import annotations

import re

from ...records import record
from .images import Wanted

_ID = re.compile(
    r"/subscriptions/(?P<owner>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/Microsoft\.Compute"
    r"(?:/galleries/(?P<gallery>[^/]+))?/images/(?P<image>[^/]+)(?:/versions/(?P<version>[^/]+))?/?",
    re.IGNORECASE,
)


@record
class OwnImage:
    """An image with a resource id."""

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
