"""A certificate for the loopback: with a token azure-core speaks to https only."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Certificate:
    """Two PEM files. A client that trusts `certificate` (REQUESTS_CA_BUNDLE, SSL_CERT_FILE) accepts the server."""

    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """For a server of ours."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.num_tickets = 0  # our clients resume no session
        return context

    def client_context(self) -> ssl.SSLContext:
        """For a client of ours: trusts this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.certificate))


def self_signed(folder: Path, hosts: Sequence[str] = ()) -> Certificate:
    """Made anew, valid for a day, for 127.0.0.1, localhost and these hosts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
    names += [x509.DNSName(host) for host in hosts]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem = serialization.PrivateFormat.PKCS8
    made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, serialization.NoEncryption()))
    return made
