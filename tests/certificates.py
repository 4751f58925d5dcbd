"""Certificates for tests: made in a moment, good or bad in the way that is wanted."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from gpulse_probe import fingerprint

DAY = timedelta(days=1)


class Made(NamedTuple):
    """A certificate and its key, not yet in files."""

    certificate: x509.Certificate
    key: Any

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def public_key(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    @property
    def fingerprint(self) -> str:
        return fingerprint.of_certificate(self.der)

    def key_pem(self, passphrase: bytes | None = None) -> bytes:
        way = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, way)

    def write(self, folder: Path, *also: "Made") -> tuple[Path, Path]:
        """The files of the certificate, with those of others behind it, and of the key."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        certificate.write_bytes(self.pem + b"".join(other.pem for other in also))
        key.touch(0o600)
        key.write_bytes(self.key_pem())
        return certificate, key

    def server(self, folder: Path) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.write(folder))
        return context


def make(
    *names: str,
    key: Any = None,
    signed_by: Made | None = None,
    begin: datetime | None = None,
    end: datetime | None = None,
) -> Made:
    """For these names and addresses, else for loopback; signed by itself unless somebody else is named."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hub" if signed_by else "itself")])
    now = datetime.now(UTC)
    signer = signed_by.key if signed_by else key
    identifier = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signed_by.certificate.subject if signed_by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin or now - DAY)
        .not_valid_after(end or now + 90 * DAY)
        .add_extension(
            x509.SubjectAlternativeName([_general(one) for one in names or ("localhost", "127.0.0.1")]), False
        )
        .add_extension(x509.BasicConstraints(ca=signed_by is None, path_length=None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False)
    )
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return Made(builder.sign(signer, algorithm), key)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
