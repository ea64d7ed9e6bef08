"""The certificate of an accounting database's authority: PEM that the definition holds, or a file beside it."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from .model.definition import Definition
from .model.slurm import ExistingDatabase

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----\s.*?-----END \1-----", re.DOTALL)
_MOST_BYTES = 256 * 1024
"""More than the certificates of all public authorities take, and less than would fill the parameters of a cluster."""


class Certificate(Struct, frozen=True):
    """A certificate, or the reason why there is none: exactly one of the two is set."""

    text: str | None
    """PEM as the cluster gets it: certificates, and nothing else."""
    fault: str | None
    """Why there is none, for a message; it never quotes the content."""


def certificate_of(definition: Definition, folder: Path) -> Certificate | None:
    """The certificate that the definition names, read beside it in `folder`; None where it names none."""
    accounting = definition.slurm.accounting if definition.slurm else None
    given = accounting.certificate if isinstance(accounting, ExistingDatabase) else None
    if given is None:
        return None
    return checked(given) if "-----BEGIN" in given else _read(folder, given)


def _read(folder: Path, name: str) -> Certificate:
    try:
        path = folder / name
        if not path.is_file():
            return Certificate(None, "is neither a PEM certificate nor a file beside the definition")
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        return Certificate(None, f"cannot be read: {reason}")
    try:
        return checked(content.decode("ascii"))
    except UnicodeDecodeError:
        return Certificate(None, "names a file that is not PEM: it has bytes that are not ASCII (DER has)")


def checked(text: str) -> Certificate:
    """Return the PEM certificates of the text without what surrounds them."""
    if len(text) > _MOST_BYTES:
        return Certificate(None, f"is longer than {_MOST_BYTES // 1024} KiB")
    found = list(_BLOCK.finditer(text))
    labels = {match[1] for match in found}
    if any("PRIVATE KEY" in label for label in labels) or re.search(r"BEGIN [A-Z0-9 ]*PRIVATE KEY", text):
        return Certificate(None, "holds a private key, which must never be in a definition or a deployment")
    if labels != {"CERTIFICATE"}:
        others = ", ".join(sorted(labels - {"CERTIFICATE"}))
        return Certificate(
            None, f"holds {others}, which is not a certificate" if others else "holds no PEM certificate"
        )
    blocks = ["".join(f"{line.strip()}\n" for line in match[0].splitlines()) for match in found]
    if not all(map(_is_x509, blocks)):
        return Certificate(None, "holds a block CERTIFICATE whose content is not an X.509 certificate")
    return Certificate("".join(blocks), None)


def _is_x509(block: str) -> bool:
    """Whether OpenSSL reads it; imported here, because few definitions have one."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=block)
    except (ssl.SSLError, ValueError):
        return False
    return True
