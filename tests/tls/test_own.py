"""A certificate of the hub's own: it is made once, its key stays, and it is good for where the hub is."""

import socket
import ssl
import subprocess
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from gpulse.errors import GpulseError, TlsError
from gpulse.tls import own
from gpulse.tls.files import own_files
from gpulse.tls.own import make_own, own_fingerprint
from gpulse.tls.pair import load, now
from tests.certificates import DAY, make
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS

NAMES = ["hub.example.org", "10.1.2.3"]


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def covered(files):
    told = load(files).certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*told.get_values_for_type(x509.DNSName), *map(str, told.get_values_for_type(x509.IPAddress))}


def test_it_is_made_once(data):
    files = make_own(data, NAMES)
    certificate, key = files.certificate.read_bytes(), files.key.read_bytes()
    assert make_own(data, NAMES) == files
    assert (files.certificate.read_bytes(), files.key.read_bytes()) == (certificate, key)
    assert own_fingerprint(data) == load(files).fingerprint
    assert sorted(path.name for path in files.key.parent.iterdir()) == ["certificate.pem", "key.pem"]


def test_nobody_else_can_read_the_key(data):
    files = make_own(data, NAMES)
    assert files.key.stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o777 == 0o700
    assert files.key.parent.stat().st_mode & 0o777 == 0o700


def test_what_it_is_good_for(data):
    files = make_own(data, [*NAMES, "fe80::1%eth0", "HUB2.example.org.", "bücher.example.org", "x" * 300])
    assert covered(files) >= {*NAMES, "localhost", "127.0.0.1", "::1", "fe80::1", "hub2.example.org"}
    assert "xn--bcher-kva.example.org" in covered(files)
    certificate = load(files).certificate
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc > 3650 * DAY
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_another_name_makes_another_certificate_of_the_same_key(data):
    before = make_own(data, NAMES), own_fingerprint(data)
    certificate = before[0].certificate.read_bytes()
    make_own(data, [*NAMES, "moved.example.org"])
    assert before[0].certificate.read_bytes() != certificate
    assert "moved.example.org" in covered(before[0])
    assert own_fingerprint(data) == before[1]


def test_it_is_made_anew_before_its_end(data, monkeypatch):
    monkeypatch.setattr(own, "LIFETIME", 300 * DAY)
    files = make_own(data, NAMES)
    known_by = own_fingerprint(data)
    monkeypatch.undo()
    make_own(data, NAMES)
    assert load(files).certificate.not_valid_after_utc > now() + 3000 * DAY
    assert own_fingerprint(data) == known_by


@pytest.mark.parametrize("content", [b"", b"nonsense", make().pem])
def test_a_damaged_certificate_is_made_anew(data, content):
    files = make_own(data, NAMES)
    known_by = own_fingerprint(data)
    files.certificate.write_bytes(content)
    make_own(data, NAMES)
    assert own_fingerprint(data) == known_by


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_damaged_key_is_told_and_never_replaced(data, content):
    files = make_own(data, NAMES)
    files.key.write_bytes(content)
    with pytest.raises(TlsError, match=r"key\.pem is damaged; put a copy of it in its place, or remove it"):
        make_own(data, NAMES)
    assert files.key.read_bytes() == content


def test_a_key_of_another_kind_is_told(data):
    files = make_own(data, NAMES)
    files.key.write_bytes(make(key=rsa.generate_private_key(65537, 2048)).key_pem())
    with pytest.raises(TlsError, match="is not the key that gpulse made"):
        make_own(data, NAMES)


def test_no_certificate_yet(data):
    with pytest.raises(TlsError, match="start it once, with `gpulse up`"):
        own_fingerprint(data)


def test_a_folder_that_cannot_be_used(data):
    data.write_text("a file")
    with pytest.raises(GpulseError, match="cannot be used"):
        make_own(data, NAMES)
    data.unlink()
    data.mkdir()
    own_files(data).key.parent.write_text("a file")
    with pytest.raises(GpulseError, match="cannot be used"):
        make_own(data, NAMES)


def test_several_at_once_have_one_key(data):
    found = []

    def make_one():
        files = make_own(data, NAMES)
        found.append(files.key.read_bytes())

    threads = [threading.Thread(target=make_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert load(own_files(data)).fingerprint == own_fingerprint(data)


@pytest.mark.parametrize("version", interpreters())
def test_every_python_can_trust_it(data, version):
    """As an authority of its own (--ca): also those that look closely at certificates."""
    files = make_own(data, NAMES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)

    def serve():
        link, _ = listener.accept()
        with link, context.wrap_socket(link, server_side=True) as secured:
            secured.sendall(b"hello")

    thread = threading.Thread(target=serve)
    thread.start()
    script = (
        "import socket, ssl, sys\n"
        "context = ssl.create_default_context(cafile=sys.argv[1])\n"
        "link = socket.create_connection(('127.0.0.1', int(sys.argv[2])), 20)\n"
        "print(context.wrap_socket(link, server_hostname='127.0.0.1').recv(5).decode())\n"
    )
    command = [interpreters()[version], "-c", script, files.certificate, str(listener.getsockname()[1])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    thread.join(20)
    listener.close()
    assert ran.stdout == "hello\n", ran.stderr
