"""A hub that others can reach lets nobody read who has not signed in, and says when they could read along.

No test listens where others could connect: a socket that only says so stands for it.
"""

import asyncio
import socket
from pathlib import Path
from typing import cast

import msgspec
import pytest

from gpulse.api.access import Access
from gpulse.api.server import reached_by_others
from gpulse.app import Hub, Operator
from gpulse.auth import local_socket
from gpulse.cli import hub_process
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Oidc, Proxy
from gpulse.config import Hub as HubSettings
from gpulse.store import Records

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nobody listens there


class Listening:
    """What is asked of a socket."""

    def __init__(self, host: str) -> None:
        self._host = host

    def getsockname(self) -> tuple[str, int]:
        return self._host, 7070


def listening(host: str) -> socket.socket:
    return cast(socket.socket, Listening(host))


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "10.0.0.7", "2001:db8::7", "fe80::1%eth0"])
def test_reached_by_others(host: str):
    assert reached_by_others(listening(host))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1"])
def test_reached_by_nobody_else(host: str):
    assert not reached_by_others(listening(host))


async def opened(config: Config, host: str, links: list[tuple[str, str]]) -> tuple[Access, bool]:
    """Who may ask, and whether the hub is at its socket meanwhile."""
    said: list[str] = []
    hub = Hub(config, said.append, Operator("ann", lambda role, code: links.append((role, code))))
    with Records(config.hub.data) as records:
        async with hub._people(records, listening(host)) as (access, _):
            local = local_socket.connect(config.hub.data, "http://127.0.0.1:7070")
            if local is not None:
                local.close()
            return access, local is not None


@pytest.mark.parametrize(
    ("host", "setting", "reads"),
    [
        ("127.0.0.1", None, True),
        ("127.0.0.1", "none", False),
        (EVERYWHERE, None, False),
        ("10.0.0.7", None, False),
        (EVERYWHERE, "read", True),
    ],
)
def test_who_has_not_signed_in(tmp_path: Path, host: str, setting: str | None, reads: bool):
    links: list[tuple[str, str]] = []
    config = Config(hub=HubSettings(data=tmp_path), access=AccessSettings(anonymous=setting))
    access, local = asyncio.run(opened(config, host, links))
    assert (access.anonymous.role == "viewer") is reads
    assert access.anonymous.name is None
    assert [role for role, _ in links] == ["admin"]
    # Another address is not reached by those of loopback.
    assert local is (host != "10.0.0.7")
    assert access.operator
    assert local_socket.connect(tmp_path, "http://127.0.0.1:7070") is None, "it ends with the hub"
    assert list(tmp_path.glob("*local-*")) == list(tmp_path.glob("*.sock")) == []


@pytest.mark.parametrize(
    "settings",
    [
        AccessSettings(hosts=("gpus.example.org",)),
        AccessSettings(proxy=Proxy(header="X-User", addresses=("10.0.0.7",))),
        AccessSettings(oidc=Oidc(issuer="https://login.example.org", client_id="gpulse")),
    ],
    ids=["hosts", "proxy", "oidc"],
)
def test_where_people_come_from_elsewhere_they_sign_in(tmp_path: Path, settings: AccessSettings):
    """Though it is loopback that the hub listens on."""
    for anonymous, reads in ((None, False), ("read", True)):
        access = msgspec.structs.replace(settings, anonymous=anonymous)
        config = Config(hub=HubSettings(data=tmp_path), access=access)
        found, _ = asyncio.run(opened(config, "127.0.0.1", []))
        assert (found.anonymous.role == "viewer") is reads


def test_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    class Ended(Exception):
        """In place of serving."""

    class Short:
        def __init__(self, config: Config, say: object, operator: Operator, tls: object) -> None:
            del config, say, tls
            self._operator = operator

        async def run(self, *_: object) -> None:
            assert self._operator.show_link is not None
            self._operator.show_link("admin", "CODE")
            raise Ended

    for host, hint in ((EVERYWHERE, True), ("127.0.0.1", False)):
        monkeypatch.setattr(hub_process, "listen", lambda *_, host=host: [listening(host)])
        monkeypatch.setattr(hub_process, "Hub", Short)
        with pytest.raises(Ended):
            hub_process.run_hub(Config(hub=HubSettings(data=tmp_path)), [])
        told = capsys.readouterr()
        assert "Sign in as admin: http://127.0.0.1:7070/#/sign-in/CODE\n" in told.out
        elsewhere = f"The same from elsewhere: http://{socket.gethostname()}:7070/#/sign-in/CODE\n"
        assert (elsewhere in told.out) is hint
        assert (hub_process.IN_THE_CLEAR in told.err) is hint
