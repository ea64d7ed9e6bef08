"""A certificate of the stand-in site, made for this run: self-signed, as the first one of a real site."""

from __future__ import annotations

import datetime
import functools
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@functools.cache
def certificate() -> Path:
    """A PEM file with key and certificate; the same one for all tests of this process."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path = Path(tempfile.mkdtemp(prefix="cfc")) / "site.pem"
    path.write_bytes(pem + signed.public_bytes(serialization.Encoding.PEM))
    return path


def fingerprint() -> str:
    """SHA-256 of that certificate in the usual notation."""
    signed = x509.load_pem_x509_certificate(certificate().read_bytes())
    return ":".join(f"{byte:02X}" for byte in signed.fingerprint(hashes.SHA256()))
