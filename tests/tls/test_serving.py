"""The certificate in use is followed: renewed files are taken, broken ones are told of once, and nobody is cut off."""

import asyncio
import os

import pytest
from cryptography import x509

from gpulse.config import Access, Config, Hub, Tls
from gpulse.errors import TlsError
from gpulse.tls import serving
from gpulse.tls.files import Files
from gpulse.tls.pair import now
from gpulse.tls.serving import ServingTls, serving_tls
from tests.certificates import DAY, make
from tests.patience import PATIENCE_SECONDS

RENEWED = "the certificate was renewed: new connections get the one that is valid until "


@pytest.fixture
def first():
    return make()


@pytest.fixture
def files(first, tmp_path):
    return Files(*first.write(tmp_path))


@pytest.fixture
def tls(files, tmp_path):
    made = ServingTls(files, b"")
    pass_a_tick(tmp_path)
    return made


def pass_a_tick(folder):
    """Until what is written gets another time than what was: older kernels count it in ticks of some milliseconds."""
    scratch = folder / "scratch"
    scratch.touch()
    before = scratch.stat().st_ctime_ns
    while scratch.stat().st_ctime_ns == before:
        scratch.touch()


def test_nothing_is_said_while_nothing_changes(tls, first):
    assert [tls.look() for _ in range(3)] == [""] * 3
    assert tls.pair.fingerprint == first.fingerprint


def test_renewed_files_are_taken(tls, tmp_path):
    renewed = make()
    renewed.write(tmp_path)
    assert tls.look() == RENEWED + f"{renewed.certificate.not_valid_after_utc:%Y-%m-%d}"
    assert tls.pair.fingerprint == renewed.fingerprint
    assert tls.look() == ""


def test_the_two_are_replaced_one_after_the_other(tls, files, first):
    renewed = make()
    files.certificate.write_bytes(renewed.pem)
    assert tls.look() == ""
    assert tls.pair.fingerprint == first.fingerprint
    files.key.write_bytes(renewed.key_pem())
    assert tls.look().startswith(RENEWED)
    assert tls.pair.fingerprint == renewed.fingerprint


@pytest.mark.parametrize("content", [b"", b"nonsense", make().pem, None])
def test_a_broken_pair_is_told_once_and_the_old_one_stays(tls, files, first, tmp_path, content):
    if content is None:
        files.certificate.unlink()
    else:
        files.certificate.write_bytes(content)
    told = [tls.look() for _ in range(4)]
    assert told[1].startswith("the renewed certificate is not used: ")
    assert told[1].endswith("; the one before stays in use")
    assert str(files.certificate) in told[1]
    assert [told[0], *told[2:]] == ["", "", ""]
    assert tls.pair.fingerprint == first.fingerprint
    pass_a_tick(tmp_path)
    files.certificate.write_bytes(first.pem)
    assert tls.look().startswith(RENEWED)


def test_a_link_that_is_switched(first, tmp_path):
    """As certbot does it: live/fullchain.pem leads into archive, to another file after each renewal."""
    live, archive = tmp_path / "live", tmp_path / "archive"
    live.mkdir()
    renewed = make()
    for number, made in enumerate((first, renewed)):
        made.write(archive / str(number))
    for name in ("certificate.pem", "key.pem"):
        (live / name).symlink_to(archive / "0" / name)
    tls = ServingTls(Files(live / "certificate.pem", live / "key.pem"), b"")
    for name in ("certificate.pem", "key.pem"):
        (live / "new").symlink_to(archive / "1" / name)
        (live / "new").replace(live / name)
    assert tls.look().startswith(RENEWED)
    assert tls.pair.fingerprint == renewed.fingerprint


def test_a_folder_that_is_switched(first, tmp_path):
    """As Kubernetes does it with secrets: one link is switched, and both files are others at once."""
    first.write(tmp_path / "0")
    renewed = make()
    renewed.write(tmp_path / "1")
    (tmp_path / "now").symlink_to("0")
    tls = ServingTls(Files(tmp_path / "now" / "certificate.pem", tmp_path / "now" / "key.pem"), b"")
    (tmp_path / "new").symlink_to("1")
    (tmp_path / "new").replace(tmp_path / "now")
    assert tls.look().startswith(RENEWED)
    assert tls.pair.fingerprint == renewed.fingerprint


def test_a_file_of_the_same_size_and_time(tls, files, first):
    renewed = make(key=first.key)
    seen = files.certificate.stat()
    files.certificate.write_bytes(renewed.pem.ljust(seen.st_size, b"\n"))
    os.utime(files.certificate, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert tls.look().startswith(RENEWED)


def test_the_files_are_looked_at_by_themselves(tls, tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "LOOK_SECONDS", 0.02)
    said: list[str] = []
    (tmp_path / "key.pem").chmod(0o644)

    async def scene():
        following = asyncio.create_task(tls.follow(said.append))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not said:
                await asyncio.sleep(0.01)
            make().write(tmp_path)
            while not any(words.startswith(RENEWED) for words in said):
                await asyncio.sleep(0.01)
        following.cancel()

    asyncio.run(scene())
    assert "chmod 600" in said[0]


def test_what_is_said_of_its_time(tmp_path):
    tls = ServingTls(Files(*make(end=now() + DAY).write(tmp_path)), b"")
    assert "expires on" in tls.notice()
    pass_a_tick(tmp_path)
    make().write(tmp_path)
    tls.look()
    assert tls.notice() == ""


def test_browsers_are_held_to_https_where_it_cannot_hurt(tls, first, tmp_path):
    assert not tls.strict(443), "they do not trust it"
    signed = make(signed_by=first)
    real = ServingTls(Files(*signed.write(tmp_path / "real", first)), b"")
    assert real.strict(443)
    assert not real.strict(7070), "another port of this host may be at http"


def test_as_the_settings_say(tmp_path, files, first):
    assert serving_tls(Config(), b"") is None
    given = serving_tls(Config(tls=Tls(certificate=files.certificate, key=files.key)), b"")
    assert given is not None
    assert given.pair.fingerprint == first.fingerprint
    for host in ("0.0.0.0", "::", "127.0.0.1", "hub.example.org"):  # noqa: S104 - nothing listens
        own = serving_tls(Config(hub=Hub(host=host, data=tmp_path / "data"), tls=Tls(self_signed=True)), b"")
        assert own is not None
        assert own.pair.self_signed
    named = Config(
        hub=Hub(data=tmp_path / "data"), tls=Tls(self_signed=True), access=Access(hosts=("gpus.example.org",))
    )
    again = serving_tls(named, b"")
    assert again is not None
    names = again.pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "gpus.example.org" in names.get_values_for_type(x509.DNSName)
    assert again.pair.fingerprint == own.pair.fingerprint
    with pytest.raises(TlsError):
        serving_tls(Config(tls=Tls(certificate=tmp_path / "none", key=files.key)), b"")
