"""What proves to others that they talk to this server: fingerprints of the site's certificate and the SSH host keys."""

import base64
import binascii
import hashlib
import socket
import ssl
from typing import Dict, List
from urllib.parse import urlsplit

from .core import Context, StepError, portal_url
from .service import portal_port


def collect(context: Context) -> bool:
    """Put them into the status file."""
    context.shown["site"] = {
        "address": portal_url(context),
        "certificateSha256": certificate_sha256(context),
        "sshHostKeys": host_keys(context),
    }
    return True


def certificate_sha256(context: Context) -> str:
    """SHA-256 of the certificate that the site shows, as `openssl x509 -fingerprint -sha256` prints it."""
    host, port = urlsplit(portal_url(context)).hostname or "localhost", portal_port(context)
    # The certificate is only read: whom to trust is what people decide with its fingerprint.
    context_of_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context_of_tls.check_hostname = False
    context_of_tls.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout=30) as plain, context_of_tls.wrap_socket(plain) as secure:
            certificate = secure.getpeercert(True) or b""
    except (OSError, ValueError) as error:
        raise StepError("the site's certificate cannot be read: {}".format(error)) from None
    digest = hashlib.sha256(certificate).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def host_keys(context: Context) -> List[Dict[str, str]]:
    """Type and fingerprint of each SSH host key, as `ssh-keygen -l` prints them; StepError if there is none."""
    folder = context.paths.root / "etc/ssh"
    found = []
    for path in sorted(folder.glob("ssh_host_*_key.pub")):
        fields = path.read_text(encoding="utf-8").split()
        try:
            blob = base64.b64decode(fields[1].encode("ascii"), validate=True)
        except (IndexError, UnicodeError, binascii.Error):
            raise StepError("{} is not a public key".format(path)) from None
        digest = base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")
        found.append({"type": fields[0], "fingerprint": "SHA256:" + digest})
    if not found:
        raise StepError("there is no public host key in {}".format(folder))
    return found
