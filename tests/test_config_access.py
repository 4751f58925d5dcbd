"""[access] and [privacy]: what is read from them, and how their mistakes are told."""

from pathlib import Path

import pytest

from gpulse.auth.oidc_provider import Provider
from gpulse.auth.proxy import TrustedProxy
from gpulse.config import Config, Oidc, Proxy, Roles, load
from gpulse.errors import ConfigError

PROXY = '[access.proxy]\nheader = "X-User"\n'
OIDC = '[access.oidc]\nclient_id = "gpulse"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gpulse.toml"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[access]\nanonymous = "write"', 'access.anonymous: cannot be "write"; allowed: "read" or "none"'),
        ('[access]\nhosts = ["http://a"]', 'access.hosts[1]: cannot be "http://a"; allowed: a host name'),
        ("[access]\nsession_days = 1", "access.session_days: cannot be less than session_idle_days"),
        (
            f'{PROXY}addresses = ["127.0.0.1"]',
            "127.0.0.1 is this machine itself, where everybody could",
        ),
        (f'{PROXY}addresses = ["::1"]', "::1 is this machine itself"),
        (f'{PROXY}addresses = ["0.0.0.0/0"]', "0.0.0.0/0 is this machine itself"),
        (f'{PROXY}addresses = ["proxy.lab"]', 'addresses[1]: cannot be "proxy.lab"; allowed: an address or a network'),
        (f"{PROXY}addresses = []", "access.proxy.addresses: cannot be empty"),
        (PROXY, 'access.proxy: "addresses" is missing'),
        (
            f'{PROXY}addresses = ["10.0.0.7"]\nroles.admin = ["a"]',
            "roles: means nothing without groups_header",
        ),
        (
            f'{PROXY}addresses = ["10.0.0.7"]\ndefault_role = "root"',
            'default_role: cannot be "root"',
        ),
        (f'{OIDC}issuer = "http://login.example.org"', "access.oidc.issuer: cannot be"),
        (f'{OIDC}issuer = "https://login.example.org?x=1"', "access.oidc.issuer: cannot be"),
        (f'{OIDC}issuer = "https://a"\nredirect_url = "https://b/"', "access.oidc.redirect_url: cannot be"),
        ('[privacy]\nothers = "none"', 'privacy.others: cannot be "none"; allowed: "full" or "names" or "anonymous"'),
    ],
)
def test_one_mistake(file: Path, text: str, told: str):
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert len(caught.value.problems) == 1
    assert told in caught.value.problems[0]


def test_what_is_read(file: Path):
    assert (Config().access.anonymous, Config().privacy.others) == (None, "names")
    file.write_text(f"""
        {PROXY}
        addresses = ["127.0.0.1", "10.0.0.0/8"]
        secret_file = "secret"
        groups_header = "X-Groups"
        roles = {{ admin = ["wheel"], viewer = ["students"] }}
        {OIDC}
        issuer = "https://login.example.org/realms/lab"
    """)
    access = load(file).access
    assert access.proxy is not None
    assert access.oidc is not None
    assert (access.proxy.secret_file, access.oidc.default_role) == (file.parent / "secret", "none")
    assert access.proxy.roles.of(frozenset({"students", "wheel"})) == "admin"
    assert access.proxy.roles.of(frozenset({"staff"})) is None
    assert Roles().any() is False


@pytest.mark.parametrize("content", [None, b"", b"short", b"two words of some length", b"\xff" * 20])
def test_a_secret_that_is_none(tmp_path: Path, content: bytes | None):
    secret = tmp_path / "secret"
    if content is not None:
        secret.touch(0o600)
        secret.write_bytes(content)
    with pytest.raises(ConfigError, match=r"access\.proxy\.secret_file: .*secret "):
        TrustedProxy(Proxy(header="X-User", addresses=("127.0.0.1",), secret_file=secret))


@pytest.mark.parametrize(
    ("mode", "who"), [(0o640, "its group"), (0o604, "everybody on this machine"), (0o644, "everybody on this machine")]
)
def test_a_secret_that_others_can_read(tmp_path: Path, mode: int, who: str):
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef0123")
    secret.chmod(mode)
    proxy = Proxy(header="X-User", addresses=("127.0.0.1",), secret_file=secret)
    oidc = Oidc(issuer="https://login.example.org", client_id="gpulse", client_secret_file=secret)
    told = f"{secret} can be read by {who}; run: chmod 600 {secret}"
    for read, name in (
        (lambda: TrustedProxy(proxy), "proxy.secret_file"),
        (lambda: Provider(oidc), "oidc.client_secret_file"),
    ):
        secret.chmod(mode)
        with pytest.raises(ConfigError) as caught:
            read()
        assert caught.value.problems == [f"access.{name}: {told}"]
        secret.chmod(0o600)
        read()
