"""A certificate that the hub makes and signs itself: it is known by the fingerprint of its key, which stays."""

import contextlib
import ipaddress
import os
import secrets
import socket
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpulse.errors import TlsError
from gpulse.store.sqlite import make_folder
from gpulse.tls.files import Files, own_files
from gpulse.tls.pair import load, now

LIFETIME = timedelta(days=3652)
# It is made anew at a start so long before its end.
_AHEAD = timedelta(days=366)
# Clocks of others are late.
_BEFORE = timedelta(days=1)
_LONGEST_COMMON_NAME = 64
# Addresses for examples, where nobody is: which of this machine's own would be used is told without sending anything.
_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def make_own(data: Path, names: list[str]) -> Files:
    """The hub's own certificate, made where there is none that is good for these names and for long enough.

    The key is made once: who knows the hub by its fingerprint knows it after that too.
    """
    files = own_files(data)
    # Each by itself: a folder that is made on the way to another is open to all.
    make_folder(data)
    make_folder(files.key.parent)
    try:
        if not files.key.exists():
            _write_key(files.key)
        if not _good(files, names):
            _replace(files.certificate, _certificate(files.key, names))
    except OSError as error:
        raise TlsError(
            f"{error.filename or files.key.parent} cannot be read or made: {error.strerror};"
            " the hub keeps its own certificate there"
        ) from error
    return files


def own_fingerprint(data: Path) -> str:
    """That of the certificate which the hub made there; TlsError where there is none."""
    files = own_files(data)
    if not files.certificate.exists():
        raise TlsError(f"the hub has no certificate in {files.certificate.parent} yet; start it once, with `gpulse up`")
    return load(files).fingerprint


def _good(files: Files, names: list[str]) -> bool:
    if not files.certificate.exists():
        return False
    try:
        certificate = load(files).certificate
        told = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (TlsError, x509.ExtensionNotFound, ValueError):
        # Damaged, or of another key. A key that is damaged itself is told of when the new certificate is made.
        return False
    covered = {*told.get_values_for_type(x509.DNSName), *map(str, told.get_values_for_type(x509.IPAddress))}
    return certificate.not_valid_after_utc - now() > _AHEAD and covered >= {_plain(name) for name in names} - {""}


def _certificate(key_file: Path, names: list[str]) -> bytes:
    try:
        key = load_pem_private_key(key_file.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise TlsError(
            f"{key_file} is damaged; put a copy of it in its place, or remove it: then the hub has a new fingerprint,"
            " which all agents have to be told"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TlsError(f"{key_file} is not the key that gpulse made; remove it, or name it in tls.key")
    wanted = sorted({_plain(name) for name in (*names, *_of_this_machine())} - {""})
    title = f"gpulse on {socket.gethostname()}"[:_LONGEST_COMMON_NAME]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    begin = now() - _BEFORE
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(list(map(_general, wanted))), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _of_this_machine() -> list[str]:
    """Names and addresses by which it may be reached, as far as they are known without asking for long."""
    found = ["localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()]
    for family, address in _ELSEWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as link:
            # No way there by this family: then there is no address of it either.
            link.connect((address, 9))
            found.append(link.getsockname()[0])
    return found


def _plain(name: str) -> str:
    """As it stands in a certificate."""
    try:
        return str(ipaddress.ip_address(name.partition("%")[0]))
    except ValueError:
        pass
    try:
        return name.lower().rstrip(".").encode("idna").decode("ascii")
    except UnicodeError:
        # No name that anybody could ask for.
        return ""


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(path: Path) -> None:
    """Whole or not at all; of several who do so at once, the first wins."""
    content = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    new = _written(path, content, 0o600)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()


def _replace(path: Path, content: bytes) -> None:
    _written(path, content, 0o644).replace(path)


def _written(path: Path, content: bytes, mode: int) -> Path:
    """A new file beside it, safely on the disk."""
    new = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return new
