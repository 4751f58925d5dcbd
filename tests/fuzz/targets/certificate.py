"""Certificates as an agent takes them from whoever answers in the hub's place."""

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_public_key

from gpulse_probe.fingerprint import NoCertificate, public_key
from tests.certificates import make

SEEDS = [
    make("a").der,
    b"\x30\x0f\x30\x0d\x02\x01\x01" + b"\x30\x00" * 5,
    b"\x30\x82\x01\x00\x30\x81\x80\xa0\x03\x02\x01\x02\x02\x01\x01",
]
WORDS = ["\\x30\\x80", "\\x30\\x82", "\\xa0\\x03\\x02\\x01\\x02", "\\x02\\x01\\x01"]


def fuzz(data: bytes) -> None:
    try:
        found = public_key(data)
    except NoCertificate as refused:
        assert str(refused)
        return
    assert found in data
    try:
        known = x509.load_der_x509_certificate(data).public_key()
    except Exception:  # noqa: BLE001 - it is another's parser, and what it cannot read says nothing
        return
    assert load_der_public_key(found) == known
