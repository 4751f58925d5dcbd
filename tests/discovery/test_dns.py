"""DNS: addresses and SRV records of a real name server, that also dies and comes back."""

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from gpulse.config import DnsTable
from gpulse.discovery import asking, dns
from gpulse.discovery.asking import Answer, Found
from gpulse.discovery.dns import Dns
from gpulse.errors import DiscoveryError
from tests.discovery.consul_server import wait_until
from tests.discovery.dns_server import NameServer, name_server
from tests.discovery.following import following
from tests.ports import free_port

__all__ = ["name_server"]

KEPT = "; the nodes it listed before are kept"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gpulse.toml"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses and deadlines that a test can wait for."""
    monkeypatch.setattr(asking, "_jitter", lambda _low, _high: 0.02)
    monkeypatch.setattr(dns, "DEADLINE_SECONDS", 5.0)


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline that a test can let pass, where nobody gives a good answer."""
    monkeypatch.setattr(dns, "DEADLINE_SECONDS", 0.5)


def table(server: NameServer, name: str, more: str = "") -> str:
    return f'[[dns]]\nname = "{name}"\nserver = "{server.address}"\nrefresh_seconds = 0.1\n{more}\n'


def ask(server: NameServer, name: str, **more: object) -> Answer:
    return asyncio.run(Dns(DnsTable(name=name, server=server.address, **more)).ask(first=True))


def test_addresses(name_server, file):
    async def run() -> None:
        name_server.hosts("10.0.0.7 gpu.test", "10.0.0.8 gpu.test", "fd00::7 gpu.test", "10.0.0.9 other.test")
        name_server.start()
        file.write_text(table(name_server, "gpu.test", 'group = "lab"\nuser = "ops"'))
        async with following(file) as seen:
            await seen.nodes("10.0.0.7", "10.0.0.8", "fd00::7")
            assert {(target.group, target.user, target.port) for target in seen.targets} == {("lab", "ops", None)}
            assert [target.host for target in seen.targets] == seen.names()
            name_server.hosts("10.0.0.8 gpu.test", "10.0.0.10 gpu.test")
            await seen.nodes("10.0.0.10", "10.0.0.8")
            file.write_text(table(name_server, "gpu.test.", 'record = "A"\ntransport = "pull"'))
            await seen.until(lambda: seen.targets[0].transport == "pull")
            assert [target.port for target in seen.targets] == [None, None]
            assert seen.said == []

    asyncio.run(run())


def test_services(name_server, file):
    async def run() -> None:
        name_server.start(
            "srv-host=_gpulse._tcp.test,gpu01.test,7080,10,5",
            "srv-host=_gpulse._tcp.test,gpu02.test,7081,20,5",
            "srv-host=_gpulse._tcp.test,gpu02.test,7082",
            "srv-host=_none._tcp.test",
        )
        file.write_text(table(name_server, "_gpulse._tcp.test", 'record = "SRV"'))
        async with following(file) as seen:
            await seen.nodes("gpu01.test", "gpu02.test")
            assert [target.port for target in seen.targets] == [None, None]
            file.write_text(table(name_server, "_gpulse._tcp.test", 'record = ["SRV"]\ntransport = "pull"'))
            await seen.nodes("gpu01.test", "gpu02.test", "gpu02.test:7082")
            assert [target.port for target in seen.targets] == [7080, 7081, 7082]
            assert seen.said == []
            file.write_text(table(name_server, "_none._tcp.test", 'record = "SRV"'))
            await seen.nodes()
            assert seen.said == ["dns _none._tcp.test: lists no node"]

    asyncio.run(run())


def test_a_server_that_dies_and_comes_back(name_server, file, monkeypatch):
    async def run() -> None:
        name_server.hosts("10.0.0.7 gpu.test")
        name_server.start()
        file.write_text(table(name_server, "gpu.test") + '[[nodes]]\nhosts = "x"\n')
        async with following(file) as seen:
            await seen.nodes("x", "10.0.0.7")
            name_server.stop()
            monkeypatch.setattr(dns, "DEADLINE_SECONDS", 0.5)
            await seen.told("dns gpu.test: no answer to A")
            await asyncio.sleep(0.7)
            assert len(seen.said) == 1
            assert seen.said[0].endswith(KEPT)
            assert seen.names() == ["x", "10.0.0.7"]
            name_server.hosts("10.0.0.8 gpu.test")
            name_server.start()
            await seen.nodes("x", "10.0.0.8")
            assert seen.said[1:] == ["dns gpu.test: answers again"]
            # The name is taken out of the zone.
            name_server.hosts("10.0.0.8 other.test")
            await seen.told("dns gpu.test: there is no such name (NXDOMAIN); look at its spelling and its zone" + KEPT)
            assert seen.names() == ["x", "10.0.0.8"]

    asyncio.run(run())


def test_names_that_have_no_answer(name_server):
    name_server.hosts("10.0.0.7 gpu.test")
    name_server.start()
    with pytest.raises(DiscoveryError, match="NXDOMAIN"):
        ask(name_server, "gone.test")
    with pytest.raises(DiscoveryError, match=r"no answer to A: .*REFUSED"):
        ask(name_server, "gpu.example.org")
    with pytest.raises(DiscoveryError, match=r"no answer to A: .*label"):
        ask(name_server, "g" * 64 + ".test")
    # The name is there, without such records: that is an answer.
    assert ask(name_server, "gpu.test", record="AAAA").found == []


@pytest.mark.usefixtures("unanswered")
def test_a_server_that_never_answers():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(DiscoveryError, match=r"^no answer to A within 0\.5 s$"):
            asyncio.run(Dns(DnsTable(name="gpu.test", server=server)).ask(first=True))


@pytest.mark.parametrize("answer", [b"", b"x", b"\0" * 12, b"\xff" * 600])
@pytest.mark.usefixtures("unanswered")
def test_a_server_that_answers_nonsense(answer):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as strange:
        strange.bind(("127.0.0.1", 0))
        strange.settimeout(5)

        def reply() -> None:
            question, sender = strange.recvfrom(1000)
            strange.sendto(question[:2] + answer, sender)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(DiscoveryError, match=r"^no answer to A"):
            asyncio.run(Dns(DnsTable(name="gpu.test", server=f"127.0.0.1:{strange.getsockname()[1]}")).ask(first=True))
        thread.join()


def test_a_large_answer_comes_by_tcp(name_server, monkeypatch):
    monkeypatch.setattr(dns, "DEADLINE_SECONDS", 10.0)
    addresses = {f"10.1.{number // 250}.{number % 250}" for number in range(3000)}
    name_server.hosts(*(f"{address} gpu.test" for address in addresses))
    name_server.start()
    answer = ask(name_server, "gpu.test")
    assert {found.host for found in answer.found} == addresses


def test_more_than_an_answer_can_hold(name_server):
    """64 KiB is the most that DNS can say at once: a part is no answer."""
    name_server.hosts(*(f"10.1.{number // 250}.{number % 250} gpu.test" for number in range(5000)))
    name_server.start()
    with pytest.raises(DiscoveryError, match="it has more A records than fit into an answer; divide them among"):
        ask(name_server, "gpu.test")


@pytest.mark.parametrize(("ttl", "pause"), [(0, 30.0), (60, 60.0), (86400, 300.0)])
def test_it_is_asked_again_when_the_answer_is_over(name_server, ttl, pause):
    name_server.hosts("10.0.0.7 gpu.test")
    name_server.start(f"local-ttl={ttl}")
    assert ask(name_server, "gpu.test", record="A") == Answer([Found("10.0.0.7", "10.0.0.7")], pause)


def test_without_a_server_the_system_is_asked(monkeypatch):
    """The system's own may know nothing here: whatever it says, it is said in our words."""
    monkeypatch.setattr(dns, "DEADLINE_SECONDS", 0.2)
    with pytest.raises(DiscoveryError):
        asyncio.run(Dns(DnsTable(name="no-such-name.invalid")).ask(first=True))


@pytest.mark.usefixtures("unanswered")
def test_what_is_not_asked_any_more_ends(file):
    """Also while it waits for an answer that never comes."""

    async def run() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            file.write_text(f'[[dns]]\nname = "gpu.test"\nserver = "127.0.0.1:{silent.getsockname()[1]}"\n')
            async with following(file) as seen:
                await seen.told("no answer to A")
        wait_until(lambda: not any(thread.name.startswith("dns ") for thread in threading.enumerate()), 10)

    asyncio.run(run())


@pytest.mark.usefixtures("unanswered")
def test_a_port_nobody_listens_on():
    with pytest.raises(DiscoveryError, match=r"^no answer to A"):
        asyncio.run(Dns(DnsTable(name="gpu.test", server=f"127.0.0.1:{free_port()}")).ask(first=True))
