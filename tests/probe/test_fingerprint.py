"""The fingerprint of a hub's key: read from real certificates, and from nothing that could be read two ways."""

import hashlib
import subprocess

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse_probe import fingerprint
from gpulse_probe.fingerprint import NoCertificate, of_certificate, public_key, read
from tests.certificates import make

KEYS = {
    "RSA 2048": lambda: rsa.generate_private_key(65537, 2048),
    "RSA 4096": lambda: rsa.generate_private_key(65537, 4096),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}
SMALL = make(key=ec.generate_private_key(ec.SECP256R1()))
MANY_NAMES = make(*(f"node{number:05}.example.org" for number in range(4000)))


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_kind(kind):
    made = make(key=KEYS[kind]())
    assert public_key(made.der) == made.public_key
    assert of_certificate(made.der) == "sha256:" + hashlib.sha256(made.public_key).hexdigest()


def test_long_certificates():
    assert len(MANY_NAMES.der) > 1 << 16
    assert public_key(MANY_NAMES.der) == MANY_NAMES.public_key


def test_a_renewed_certificate_of_the_same_key_has_the_same_fingerprint():
    authority = make("authority.example.org")
    renewed = make("hub.example.org", key=SMALL.key, signed_by=authority)
    assert renewed.der != SMALL.der
    assert renewed.fingerprint == SMALL.fingerprint
    assert renewed.fingerprint != authority.fingerprint


def test_a_certificate_of_version_1(tmp_path):
    """Without the part that tells the version."""
    key, file = tmp_path / "key", tmp_path / "certificate"
    ask = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"]
    subprocess.run([*ask, "-keyout", key, "-out", tmp_path / "ask"], check=True, capture_output=True)
    sign = ["openssl", "x509", "-req", "-in", tmp_path / "ask", "-signkey", key, "-outform", "DER", "-out", file]
    subprocess.run(sign, check=True, capture_output=True)
    der = file.read_bytes()
    certificate = x509.load_der_x509_certificate(der)
    assert certificate.version is x509.Version.v1
    assert load_der_public_key(public_key(der)) == certificate.public_key()


def test_what_people_can_do_by_hand(tmp_path):
    """As docs/tls.md says."""
    file, _ = SMALL.write(tmp_path)
    command = f"openssl x509 -in {file} -noout -pubkey | openssl pkey -pubin -outform der | sha256sum"
    told = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout  # noqa: S602 - a pipe
    assert SMALL.fingerprint == "sha256:" + told.split()[0]


def test_as_people_give_it():
    assert read(" SHA256:" + "0123456789abcdefABCDEF00" * 2 + "f" * 16 + "\n").islower()
    assert read(SMALL.fingerprint) == SMALL.fingerprint


@pytest.mark.parametrize(
    "text", ["", "sha256:", "0" * 64, "sha256:" + "0" * 63, "sha256:" + "g" * 64, "sha1:" + "0" * 64]
)
def test_what_is_no_fingerprint(text):
    with pytest.raises(ValueError, match="a fingerprint is sha256: and 64 digits"):
        read(text)


def part(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 + len(length))) + length + content


# Serial number, signature, issuer, validity, subject and key, each the shortest of its kind.
BODY = b"\x02\x01\x01" + b"\x30\x00" * 4 + b"\x30\x02\x05\x00"


def test_the_shortest_form_of_one():
    assert public_key(part(0x30, part(0x30, BODY))) == b"\x30\x02\x05\x00"
    assert public_key(part(0x30, part(0x30, b"\xa0\x03\x02\x01\x02" + BODY) + b"\x30\x00")) == b"\x30\x02\x05\x00"


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"\x30",
        b"\x30\x80" + part(0x30, BODY) + b"\0\0",
        b"\x30\x81\x13" + part(0x30, BODY),
        b"\x30\x82\x00\x13" + part(0x30, BODY),
        b"\x30\x84\x00\x00\x00\x13" + part(0x30, BODY),
        b"\x30\xff" + part(0x30, BODY),
        part(0x30, part(0x30, BODY)) + b"\0",
        part(0x31, part(0x30, BODY)),
        part(0x30, part(0xA0, BODY)),
        part(0x30, part(0x30, BODY[:-1])),
        part(0x30, part(0x30, BODY[:11])),
        part(0x30, part(0x30, b"\xa0\x80\x02\x01\x02\0\0" + BODY)),
        part(0x30, part(0x30, b"\xa1\x03\x02\x01\x02" + BODY)),
        part(0x30, part(0x30, b"\xa0\x03\x02\x01\x02" * 2 + BODY)),
        part(0x30, part(0x30, b"\x1f\x02\x01\x01" + BODY)),
    ],
    ids=repr,
)
def test_what_is_not_written_in_the_one_strict_way(der):
    with pytest.raises(NoCertificate):
        public_key(der)


CHANGES = st.lists(
    st.tuples(st.sampled_from(["set", "insert", "delete"]), st.integers(0, 1 << 12), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


@given(CHANGES)
@settings(max_examples=400)
def test_never_read_otherwise_than_by_others(changes):
    """Where somebody else reads a changed certificate too, both find the same key."""
    der = bytearray(SMALL.der)
    for kind, at, value in changes:
        place = at % len(der)
        if kind == "set":
            der[place] = value
        elif kind == "insert":
            der.insert(place, value)
        else:
            del der[place]
    try:
        found = public_key(bytes(der))
    except NoCertificate:
        return
    try:
        known = x509.load_der_x509_certificate(bytes(der)).public_key()
    except Exception:  # noqa: BLE001 - it is another's parser, and what it cannot read says nothing
        return
    assert load_der_public_key(found) == known


@given(st.binary(max_size=200))
def test_anything_at_all(data):
    try:
        assert public_key(data) in data
    except NoCertificate as refused:
        assert str(refused)


def test_digests_are_told_one_way():
    assert fingerprint.PREFIX == "sha256:"
    assert len(SMALL.fingerprint) == 71
