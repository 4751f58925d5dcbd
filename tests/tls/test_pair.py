"""A certificate and its key: what is wrong with them is told by file, cause and what helps."""

from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from gpulse.errors import TlsError
from gpulse.tls.files import Files
from gpulse.tls.pair import load, now
from tests.certificates import DAY, make


def files(folder, made, *also):
    return Files(*made.write(folder, *also))


@pytest.mark.parametrize(
    "key", [lambda: rsa.generate_private_key(65537, 2048), ed25519.Ed25519PrivateKey.generate, lambda: None]
)
def test_good_ones(tmp_path, key):
    made = make(key=key())
    pair = load(files(tmp_path, made))
    assert pair.fingerprint == made.fingerprint
    assert pair.self_signed
    assert pair.trouble(now()) == ""


def test_one_that_an_authority_signed(tmp_path):
    authority = make("authority")
    pair = load(files(tmp_path, make(signed_by=authority), authority))
    assert not pair.self_signed


def broken(tmp_path, what):
    made, other = make(), make()
    found = files(tmp_path, made)
    if what == "no certificate":
        found.certificate.unlink()
    elif what == "no key":
        found.key.unlink()
    elif what == "a folder":
        found.key.unlink()
        found.key.mkdir()
    elif what == "not PEM":
        found.certificate.write_bytes(made.der)
    elif what == "a key that is none":
        found.key.write_text("nothing")
    elif what == "a damaged certificate":
        found.certificate.write_bytes(made.pem.replace(b"MII", b"AAA", 1))
    elif what == "another key":
        found.key.write_bytes(other.key_pem())
    elif what == "a passphrase":
        found.key.write_bytes(made.key_pem(b"secret"))
    else:
        found.certificate.write_bytes(other.pem + made.pem)
    return found


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no certificate", "certificate.pem cannot be read: No such file or directory; see tls.certificate"),
        ("no key", "key.pem cannot be read: No such file or directory; see tls.key"),
        ("a folder", "key.pem cannot be read: Is a directory; see tls.key"),
        ("not PEM", "certificate.pem has no certificate that can be read; tls.certificate is a file in PEM form"),
        ("a damaged certificate", "certificate.pem has no certificate that can be read"),
        ("a key that is none", "key.pem has no private key that can be read; tls.key is a file in PEM form"),
        ("another key", "key.pem is not the key of the certificate in"),
        ("a passphrase", "key.pem is protected by a passphrase, which a service cannot be asked for"),
        ("wrong order", "must be the first in it"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, what, words):
    with pytest.raises(TlsError) as told:
        load(broken(tmp_path, what))
    assert words in str(told.value)
    assert str(tmp_path) in str(told.value)
    assert "BEGIN" not in str(told.value)


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (-90 * DAY, -DAY, "The hub's certificate expired on"),
        (-90 * DAY, 13 * DAY, "The hub's certificate expires on"),
        (-90 * DAY, 15 * DAY, ""),
        (timedelta(hours=1), 90 * DAY, "is not valid before"),
    ],
)
def test_its_time(tmp_path, begin, end, words):
    pair = load(files(tmp_path, make(begin=now() + begin, end=now() + end)))
    told = pair.trouble(now())
    assert told.startswith("The hub's certificate") if words else told == ""
    assert words in told


def test_a_key_that_others_can_read_is_told(tmp_path):
    found = files(tmp_path, make())
    assert found.exposed() == ""
    found.key.chmod(0o644)
    assert found.exposed() == f"{found.key} can be read by everybody on this machine; run: chmod 600 {found.key}"
    found.key.chmod(0o640)
    assert found.exposed() == ""
