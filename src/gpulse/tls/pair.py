"""A certificate and its private key, read from their files and checked, with what is wrong with them in words."""

import shlex
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from gpulse.config.files import read_bytes, reason
from gpulse.errors import TlsError
from gpulse.tls.files import Files
from gpulse_probe import fingerprint

# Whoever renews certificates by hand needs some days.
SOON = timedelta(days=14)
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


class Pair(NamedTuple):
    """A certificate with its key, ready to secure connections."""

    context: ssl.SSLContext
    certificate: x509.Certificate

    @property
    def fingerprint(self) -> str:
        # The probe has no annotations: they would cost every node memory.
        told: str = fingerprint.of_certificate(self.certificate.public_bytes(Encoding.DER))  # type: ignore[no-untyped-call]
        return told

    @property
    def self_signed(self) -> bool:
        return self.certificate.issuer == self.certificate.subject

    def trouble(self, now: datetime) -> str:
        """What people should know of its time, "" while all is well."""
        begin, end = self.certificate.not_valid_before_utc, self.certificate.not_valid_after_utc
        if now >= end:
            return f"The hub's certificate expired on {end:%Y-%m-%d}, and browsers and agents refuse it; renew it"
        if now < begin:
            return f"The hub's certificate is not valid before {begin:%Y-%m-%d %H:%M} UTC; look at this machine's clock"
        return f"The hub's certificate expires on {end:%Y-%m-%d}; renew it" if end - now < SOON else ""


def load(files: Files) -> Pair:
    """TlsError where the two cannot be used: which file, why, and what helps."""
    chain = _certificates(files.certificate)
    key = _public_part(files.key)
    if chain[0].public_key() != key:
        if key in [other.public_key() for other in chain[1:]]:
            raise TlsError(f"{files.certificate}: the certificate that {files.key} belongs to must be the first in it")
        raise TlsError(
            f"{files.key} is not the key of the certificate in {files.certificate}; name two that were made together"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        # An empty password: nobody is asked for one, should the key have been replaced by such a one just now.
        context.load_cert_chain(files.certificate, files.key, password="")
    except OSError as error:
        raise TlsError(f"{files.certificate} and {files.key} cannot be used: {reason(error)}") from error
    return Pair(context, chain[0])


def now() -> datetime:
    return datetime.now(UTC)


def _certificates(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_content(path, "tls.certificate"))
    except ValueError as error:
        raise TlsError(f"{path} has no certificate that can be read; tls.certificate is a file in PEM form") from error


def _public_part(path: Path) -> Any:
    try:
        return load_pem_private_key(_content(path, "tls.key"), None).public_key()
    except TypeError as error:
        raise TlsError(
            f"{path} is protected by a passphrase, which a service cannot be asked for; take it away with:"
            f" openssl pkey -in {shlex.quote(str(path))} -out NEW"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(f"{path} has no private key that can be read; tls.key is a file in PEM form") from error


def _content(path: Path, setting: str) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {reason(error)}; see {setting}") from error
