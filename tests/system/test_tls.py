"""A real hub at https with real agents: its own certificate, renewed ones, strangers in its place, and the commands."""

import os
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gpulse.tls.own import own_fingerprint
from gpulse.tls.pair import now
from tests.certificates import DAY, Made, make
from tests.eavesdropper import Eavesdropper
from tests.hub.running import GPULSE
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Site, until

VERSIONS = list(interpreters())
OLDEST, NEWEST = interpreters()[VERSIONS[0]], interpreters()[VERSIONS[-1]]
# Agents trust nobody whom they were not told to.
NOBODY = {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": "/nonexistent"}


@pytest.fixture
def site_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    """A site whose hub has these lines in its gpulse.toml; this process trusts `trusted`."""
    sites: list[Site] = []

    def start(lines: str, trusted: Path | None = None) -> Site:
        folder = tmp_path / "site"
        folder.mkdir()
        (folder / "gpulse.toml").write_text(lines)
        site = Site(folder, NOBODY)
        sites.append(site)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted or site.data / "tls" / "certificate.pem"))
        return site

    yield start
    for site in sites:
        site.__exit__()


@pytest.fixture
def own(site_with: Callable[..., Site]) -> Site:
    return site_with("[tls]\nself_signed = true\n")


def fingerprint_told(site: Site) -> str:
    """As people read it where the hub was started."""
    found = until(lambda: re.search(r"--fingerprint (sha256:[0-9a-f]{64})\n", site.hub.said()))
    return found[1]


def shown_by(site: Site) -> x509.Certificate:
    """The certificate that a new connection gets."""
    host, port = site.url.removeprefix("https://").strip("/").split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port)), 10) as link, context.wrap_socket(link) as secured:
        return x509.load_der_x509_certificate(secured.getpeercert(True) or b"")


def port_of(site: Site) -> int:
    return int(site.url.rpartition(":")[2].strip("/"))


def connections(words: str) -> int:
    return words.count("connected to ")


def test_a_certificate_of_its_own(own: Site):
    known_by = fingerprint_told(own)
    assert known_by == own_fingerprint(own.data)
    assert own.url.startswith("https://127.0.0.1:")
    tokens = own.tokens("old,new")
    agents = [
        own.agent(name, "--fingerprint", known_by, token=tokens[name], quick=True, python=python)
        for name, python in (("old", OLDEST), ("new", NEWEST))
    ]
    for agent in agents:
        before = own.until_up(agent.node)["host"]["uptime_seconds"]
        own.hub.until(lambda agent=agent, before=before: own.hub.node(agent.node)["host"]["uptime_seconds"] > before)
        assert f"connected to {own.url.rstrip('/')} as {agent.node}" in agent.words
    # The same after a restart, and they come back.
    own.stop_hub()
    agents[0].says("lost ")
    own.start_hub()
    assert fingerprint_told(own) == known_by
    for agent in agents:
        until(lambda agent=agent: connections(agent.words) == 2, 30, lambda agent=agent: agent.words)
        own.until_up(agent.node)
    assert agents[0].end() == 0
    own.until_state("old", "down")
    assert "its agent was stopped" in own.hub.node("old")["reason"]


def test_agents_that_were_told_nothing_trust_nobody(own: Site):
    token = own.token("n1")
    agent = own.agent("n1", token=token, python=OLDEST)
    assert "its certificate is not trusted" in agent.says("with --fingerprint")
    assert own.state("n1") == "new"
    agent.end()
    own.agent("n1", "--ca", str(own.data / "tls" / "certificate.pem"), token=token)
    own.until_up("n1")


def test_an_agent_at_http_is_told_that_this_is_https(own: Site):
    url, own.url = own.url, own.url.replace("https:", "http:")
    agent = own.agent("n1", token="gpn_" + "0" * 12 + "_" + "1" * 48)
    own.url = url
    assert "refuses this node: this is https (400 this_is_https)" in agent.says("this is https")


def test_joining_over_tls(own: Site):
    token = own.token_command("create", "--join", "n[1-2]", "--expires", "1d")
    agent = own.agent("n1", "--fingerprint", fingerprint_told(own), token=token, python=OLDEST)
    own.until_up("n1")
    assert "joined https://" in agent.words


@pytest.mark.parametrize("python", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_somebody_in_the_hubs_place_gets_no_token(own: Site, python: str, tmp_path: Path):
    known_by = fingerprint_told(own)
    agent = own.agent("n1", "--fingerprint", known_by, token=own.token("n1"), quick=True, python=python)
    own.until_up("n1")
    own.stop_hub()
    stranger = make()
    joining = own.token_command("create", "--join", "n2", "--expires", "1d")
    with Eavesdropper(stranger.server(tmp_path / "stranger"), port_of(own)) as listening:
        joiner = own.agent("n2", "--fingerprint", known_by, token=joining, quick=True, python=python)
        for one in (agent, joiner):
            assert stranger.fingerprint in one.says("it has another key than it should")
        until(lambda: listening.visits >= 4)
    assert listening.heard == b""
    # When the hub is back, so are they.
    own.start_hub()
    own.until_up("n1")
    own.until_up("n2")


def settings(folder: Path) -> str:
    return f'[tls]\ncertificate = "{folder}/certificate.pem"\nkey = "{folder}/key.pem"\n'


@pytest.fixture
def authority(tmp_path: Path) -> tuple[Made, Path]:
    made = make("authority")
    return made, made.write(tmp_path / "authority")[0]


def test_renewed_while_agents_are_connected(
    site_with: Callable[..., Site], authority: tuple[Made, Path], tmp_path: Path
):
    signer, trusted = authority
    files = tmp_path / "files"
    first = make(signed_by=signer)
    first.write(files)
    site = site_with(settings(files), trusted)
    assert "--fingerprint" not in site.hub.said()
    tokens = site.tokens("pinned,trusting,late,later,last")
    by_key = ("--fingerprint", first.fingerprint)
    by_authority = ("--ca", str(trusted))
    agents = {
        "pinned": site.agent("pinned", *by_key, token=tokens["pinned"], python=OLDEST),
        "trusting": site.agent("trusting", *by_authority, token=tokens["trusting"]),
    }
    for name in agents:
        site.until_up(name)

    def renew(made: Made) -> None:
        told = site.hub.said().count("the certificate was renewed")
        made.write(files)
        until(lambda: site.hub.said().count("the certificate was renewed") > told)
        assert shown_by(site).public_bytes(Encoding.DER) == made.der
        for name, agent in agents.items():
            before = site.until_up(name)["host"]["uptime_seconds"]
            site.hub.until(lambda name=name, before=before: site.hub.node(name)["host"]["uptime_seconds"] > before)
            assert connections(agent.words) == 1

    # With its key, as certbot does it when it is told to: who knows the key comes in as before.
    renew(make(signed_by=signer, key=first.key))
    late = site.agent("late", *by_key, token=tokens["late"])
    site.until_up("late")
    # With another key: who trusts the authority comes in, who knows the old key does not, and nobody is cut off.
    renew(make(signed_by=signer))
    later = site.agent("later", *by_authority, token=tokens["later"], python=OLDEST)
    site.until_up("later")
    last = site.agent("last", *by_key, token=tokens["last"])
    assert "nothing was sent to it" in last.says("it has another key than it should")
    assert site.state("last") == "new"
    for agent in (late, later, *agents.values()):
        assert connections(agent.words) == 1


def test_a_broken_renewal_is_told_and_changes_nothing(site_with: Callable[..., Site], authority, tmp_path: Path):
    signer, trusted = authority
    files = tmp_path / "files"
    first = make(signed_by=signer)
    first.write(files)
    site = site_with(settings(files), trusted)
    (files / "key.pem").write_bytes(make().key_pem())
    until(lambda: "the renewed certificate is not used: " in site.hub.said())
    assert shown_by(site).public_bytes(Encoding.DER) == first.der
    make(signed_by=signer, end=now() + timedelta(days=3)).write(files)
    until(lambda: "the certificate was renewed" in site.hub.said())
    until(lambda: "The hub's certificate expires on" in site.hub.said())
    assert site.hub.said().count("is not used") == 1
    assert "expires on" in site.hub.get("api/v1/hub")["notices"][0]


def up(folder: Path, lines: str, *words: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "gpulse.toml").write_text(lines)
    return subprocess.run(
        [GPULSE, "up", "--no-local", "--port", "0", "--data", folder / "data", *words],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_files_that_cannot_be_used_are_told_at_the_start(tmp_path: Path):
    files = tmp_path / "files"
    made = make()
    made.write(files)
    (files / "key.pem").write_bytes(make().key_pem())
    ran = up(tmp_path / "a", settings(files))
    assert (ran.returncode != 0, ran.stdout) == (True, "")
    assert f"{files}/key.pem is not the key of the certificate in {files}/certificate.pem" in ran.stderr
    assert "Traceback" not in ran.stderr
    (files / "key.pem").unlink()
    assert (
        f"{files}/key.pem cannot be read: No such file or directory; see tls.key"
        in up(tmp_path / "a", settings(files)).stderr
    )


def test_an_expired_certificate_is_told(site_with: Callable[..., Site], tmp_path: Path):
    files = tmp_path / "files"
    old = make(begin=now() - 90 * DAY, end=now() - DAY)
    old.write(files)
    site = site_with(settings(files))
    until(lambda: "The hub's certificate expired on" in site.hub.said())
    assert old.fingerprint in site.hub.said()


# The commands.


def gpulse(home: Path, *words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    full = {name: value for name, value in os.environ.items() if not name.startswith("GPULSE_")}
    ran = subprocess.run(
        [GPULSE, *words],
        env={**full, **NOBODY, "HOME": str(home), **environment},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


def test_commands_know_a_hub_by_its_fingerprint(own: Site, tmp_path: Path):
    known_by = fingerprint_told(own)
    home = tmp_path / "person"
    home.mkdir()
    ask = ("nodes", "--hub", own.url)
    assert "the hub has no nodes yet" in gpulse(home, *ask, "--fingerprint", known_by).stdout
    assert "the hub has no nodes yet" in gpulse(home, *ask, GPULSE_FINGERPRINT=known_by).stdout
    assert "its certificate is not trusted" in gpulse(home, *ask, code=2).stderr
    wrong = "sha256:" + "0" * 64
    told = gpulse(home, *ask, "--fingerprint", wrong, code=2).stderr
    assert f"has another key than the hub should: {known_by} instead of {wrong}" in told
    assert "a fingerprint is sha256: and 64 digits" in gpulse(home, *ask, "--fingerprint", "x", code=2).stderr
    plain = own.url.replace("https:", "http:")
    assert (
        "goes with a hub at https://" in gpulse(home, "who", "--hub", plain, "--fingerprint", known_by, code=2).stderr
    )
    assert "this is https; ask again with https://" in gpulse(home, "who", "--hub", plain, code=2).stderr


def test_commands_tell_a_stranger_nothing(tmp_path: Path):
    home = tmp_path / "person"
    home.mkdir()
    with Eavesdropper(make().server(tmp_path)) as stranger:
        told = gpulse(home, "nodes", "--hub", stranger.url, "--fingerprint", make().fingerprint, code=2).stderr
    assert "nothing was sent to it" in told
    assert (stranger.visits, stranger.heard) == (1, b"")


def test_commands_on_the_hubs_machine_find_its_certificate(site_with: Callable[..., Site], tmp_path: Path):
    site = site_with("[tls]\nself_signed = true\n")
    home = tmp_path / "person"
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "gpulse").symlink_to(site.data)
    assert "the hub has no nodes yet" in gpulse(home, "nodes", "--hub", site.url).stdout
    with Eavesdropper(make().server(tmp_path)) as stranger:
        assert "is not trusted" in gpulse(home, "nodes", "--hub", stranger.url, code=2).stderr
    assert stranger.heard == b""
    (home / "gpulse.toml").write_text(
        f'[hub]\nport = {port_of(site)}\ndata = "{site.data}"\n[tls]\nself_signed = true\n'
    )
    gpulse(home, "export", str(home / "static"), "--config", "gpulse.toml")
    assert (home / "static" / "index.html").exists()
