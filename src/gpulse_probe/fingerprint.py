"""What a hub at https is known by where no authority vouches for it: the SHA-256 of its public key.

Of the key and not of the certificate, so that a renewed certificate with the same key is the same hub.
"""

from hashlib import sha256

PREFIX = "sha256:"
_DIGITS = 64
_MOST_LENGTH_BYTES = 3
_SEQUENCE, _INTEGER, _VERSION = 0x30, 0x02, 0xA0
# What stands before the key in a certificate, after the version: serial number, signature, issuer, validity, subject.
_BEFORE_KEY = (_INTEGER, _SEQUENCE, _SEQUENCE, _SEQUENCE, _SEQUENCE)


class NoCertificate(Exception):
    """What should be a certificate is none, or is not written as one has to be."""


def read(text):
    """A fingerprint as people give it, in the one way it is written; ValueError where it is none."""
    plain = text.strip().lower()
    digits = plain[len(PREFIX) :]
    if not plain.startswith(PREFIX) or len(digits) != _DIGITS or digits.strip("0123456789abcdef"):
        raise ValueError("a fingerprint is %s and %d digits, 0 to 9 and a to f" % (PREFIX, _DIGITS))
    return plain


def of_certificate(der):
    """The fingerprint of the key in a certificate."""
    return PREFIX + sha256(public_key(der)).hexdigest()


def public_key(der):
    """The part of a certificate that is its key (SubjectPublicKeyInfo), as it stands there.

    Only what is written in the one strict way (DER) is read: whoever wrote a certificate that is read one way here and
    another way where the connection is secured could show one key and use another.
    """
    at, end = _part(der, 0, len(der), _SEQUENCE)
    if end != len(der):
        raise NoCertificate("something follows the certificate")
    at, end = _part(der, at, end, _SEQUENCE)
    if der[at : at + 1] == bytes((_VERSION,)):
        at = _part(der, at, end, _VERSION)[1]
    for tag in _BEFORE_KEY:
        at = _part(der, at, end, tag)[1]
    return der[at : _part(der, at, end, _SEQUENCE)[1]]


def _part(der, at, end, tag):
    """Where the content of the part that stands at a place begins, and where it ends."""
    if end - at < 2 or der[at] != tag:
        raise NoCertificate("byte %d: another part was expected" % at)
    size, start = der[at + 1], at + 2
    if size >= 0x80:
        count = size - 0x80
        if not 1 <= count <= _MOST_LENGTH_BYTES or count > end - start:
            raise NoCertificate("byte %d: no length" % at)
        size = int.from_bytes(der[start : start + count], "big")
        start += count
        if size < 0x80 or size < 1 << 8 * (count - 1):
            raise NoCertificate("byte %d: a length that is not told in the shortest way" % at)
    if size > end - start:
        raise NoCertificate("byte %d: it is cut off" % at)
    return start, start + size
