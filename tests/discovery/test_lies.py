"""Consul and name servers that lie: names that are none, loops, wrong types, no end, and no time to live."""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gpulse.config.sections import ConsulTable, DnsTable
from gpulse.discovery import dns as dns_source
from gpulse.discovery.consul import Consul, decode
from gpulse.discovery.dns import Dns
from gpulse.errors import DiscoveryError
from tests.discovery.consul_server import entry, running

HOSTILE = (
    "gpu1;id",
    "$(id)",
    "`id`",
    "gpu1 -oProxyCommand=id",
    "-oProxyCommand=id",
    "<img src=x onerror=alert(1)>",
    "../../etc/passwd",
    "gpu1/../gpu2",
    "gpu1\n[hub]",
    "gpu1\x1b[2J",
    "gpu1\u202e",
    "gpu1\0",
    "",
    " ",
    ".",
    "..",
    "x" * 300,
    "gpu1@evil",
    "gpu1:22",
    "gpu[1-100000]",
    "@all",
    "fe80::1%;id",
)


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_consul_with_a_name_that_is_none(name: str):
    for one in (
        entry(name),
        entry("gpu2", address=name) if name else entry(name),
        entry("gpu2", service_address=name or " "),
    ):
        problems: list[str] = []
        found = decode(json.dumps([one, entry("honest")]).encode(), problems)
        assert [node.name for node in found] == ["honest"]
        assert len(problems) == 1 and len(problems[0]) < 500


@pytest.mark.parametrize(
    "one",
    [
        entry("gpu1", port=99999999),
        entry("gpu1", port=-1),
        entry("gpu1", meta={"group": "x" * 10_000, "rack": "\x1b[2J"}),
        entry("gpu1", meta={"group": "a\nb", "rack": "\u202e"}),
    ],
)
def test_consul_with_values_that_are_none(one: dict[str, Any]):
    (node,) = decode(json.dumps([one]).encode(), [])
    assert node.port is None or 1 <= node.port <= 65535
    assert (node.group, node.rack) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"{}",
        b"5",
        b'[{"Node": {"Node": 5}, "Service": {}}]',
        b'[{"Node": {"Node": "a"}, "Service": {"Port": "22"}}]',
        b'[{"Node": {"Node": "a"}, "Service": {"Port": 1e99}}]',
        b'[{"Node": {"Node": ["a"]}, "Service": {}}]',
        b"[" * 1_000_000,
        b'[{"Node": ' * 100_000,
        b"\xff\xfe",
        b"",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_consul_with_an_answer_that_is_none(body: bytes):
    with pytest.raises(DiscoveryError) as why:
        decode(body, [])
    assert len(str(why.value)) < 500


def decoding(count: int, name: str) -> float:
    body = json.dumps([entry(f"{name}{number}") for number in range(count)]).encode()
    took = []
    for _ in range(3):
        problems: list[str] = []
        began = time.thread_time()
        found = decode(body, problems)
        took.append(time.thread_time() - began)
        assert len(found) + len(problems) == count
    return min(took)


@pytest.mark.parametrize("name", ["gpu", "$(id)"])
def test_a_hundred_thousand_entries(name: str):
    """Twice as many take twice as long."""
    assert decoding(100_000, name) < 3 * decoding(50_000, name) + 0.05


def test_consul_that_leads_elsewhere(tmp_path: Any):
    """The token is sent nowhere but to the address in the settings."""
    (tmp_path / "token").write_text("secret-of-consul")
    with running() as elsewhere, running() as consul:
        elsewhere.lists(entry("evil"))
        consul.headers = {"Location": f"{elsewhere.url}/v1/health/service/gpu"}
        for status in ("301", "302", "307", "308"):
            consul.fault = status
            table = ConsulTable(url=consul.url, service="gpu", acl_token_file=tmp_path / "token")
            with pytest.raises(DiscoveryError, match=status):
                asyncio.run(Consul(table).ask(first=True))
        assert elsewhere.asked == []
        assert {token for _path, _query, token in consul.asked} == {"secret-of-consul"}


# A name server of our own: no honest one would say any of this.


def name_of(text: str) -> bytes:
    return b"".join(bytes([len(part)]) + part.encode("latin-1") for part in text.split(".")) + b"\0"


def answer_to(question: bytes, records: bytes, count: int, flags: int = 0x8580) -> bytes:
    """The question again, and these records."""
    end = question.index(b"\0", 12) + 5
    return question[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question[12:end] + records


def record(kind: int, data: bytes, ttl: int = 60, name: bytes = b"\xc0\x0c") -> bytes:
    return name + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def srv(target: bytes, port: int = 7080) -> bytes:
    return record(33, struct.pack(">HHH", 0, 0, port) + target)


@contextmanager
def name_server(say: Callable[[bytes], bytes]) -> Iterator[str]:
    """By UDP and TCP, the same."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        udp.bind(tcp.getsockname())
        tcp.listen()
        ended = threading.Event()
        for one in (tcp, udp):
            one.settimeout(0.1)

        def by_udp() -> None:
            while not ended.is_set():
                try:
                    question, who = udp.recvfrom(4096)
                    said = say(question)
                    # What does not fit is asked for again by TCP.
                    udp.sendto(said if len(said) < 1200 else answer_to(question, b"", 0, 0x8780), who)
                except TimeoutError:
                    continue
                except OSError:
                    return

        def by_tcp() -> None:
            while not ended.is_set():
                try:
                    connection, _who = tcp.accept()
                except TimeoutError:
                    continue
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    try:
                        question = connection.recv(4096)[2:]
                        said = say(question)[:65535]
                        connection.sendall(struct.pack(">H", len(said)) + said)
                    except OSError:
                        # Who asked has gone.
                        continue

        threads = [threading.Thread(target=by_udp), threading.Thread(target=by_tcp)]
        for thread in threads:
            thread.start()
        try:
            yield f"127.0.0.1:{tcp.getsockname()[1]}"
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def asked(say: Callable[[bytes], bytes], kind: str = "A", seconds: float = 3.0) -> Any:
    """Ask a lying server. DiscoveryError is the only way to fail, and it costs little time of the processor."""
    with name_server(say) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dns_source, "DEADLINE_SECONDS", seconds)
        table = DnsTable(name="gpus.test", record=kind, server=server, refresh_seconds=30.0)
        began = time.thread_time()
        try:
            return asyncio.run(Dns(table).ask(first=True))
        finally:
            assert time.thread_time() - began < 2.0


def test_the_server_can_be_honest():
    """Else all that follows would fail for another reason."""
    answer = asked(lambda question: answer_to(question, record(1, bytes([10, 0, 0, 7])), 1))
    assert [node.host for node in answer.found] == ["10.0.0.7"]
    answer = asked(lambda question: answer_to(question, srv(name_of("gpu7.test")), 1), "SRV")
    assert [(node.host, node.port) for node in answer.found] == [("gpu7.test", 7080)]


LOOPS = {
    "to itself": record(1, bytes(4), name=b"\xc0\x1b"),
    "to and fro": record(1, bytes(4), name=b"\xc0\x1d\xc0\x1b"),
    "forward": record(1, bytes(4), name=b"\xc3\xff"),
    "in the data": record(33, struct.pack(">HHH", 0, 0, 1) + b"\xc0\x2d"),
    "a label without end": record(1, bytes(4), name=b"\x3f" * 500),
    "a strange label": record(1, bytes(4), name=b"\x80\x01"),
    "a name of itself": record(5, b"\xc0\x0c"),
    "short data": b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 60_000),
    "a long address": record(1, bytes(400)),
    "cut": record(1, bytes(4))[:5],
}


@pytest.mark.parametrize("records", LOOPS)
@pytest.mark.parametrize("kind", ["A", "SRV"])
def test_loops_and_broken_records(records: str, kind: str):
    try:
        answer = asked(lambda question: answer_to(question, LOOPS[records], 1), kind, seconds=1.0)
    except DiscoveryError as why:
        assert len(str(why)) < 1000
    else:
        assert answer.found == []


def test_counts_that_are_lies():
    with pytest.raises(DiscoveryError):
        asked(lambda question: answer_to(question, record(1, bytes(4)), 65535), seconds=1.0)


def test_an_alias_chain_that_ends_nowhere():
    chain = b"".join(
        record(5, name_of(f"a{number + 1}.test"), name=name_of(f"a{number}.test")) for number in range(500)
    )
    first = record(5, name_of("a0.test"))
    try:
        answer = asked(lambda question: answer_to(question, first + chain, 501), seconds=1.0)
    except DiscoveryError:
        return
    assert answer.found == []


@pytest.mark.parametrize(
    "target", [b"\x05;id\n\x1b\0", b"\x0c<img src=x/>\0", b"\x08$(id)`x`\0", b"\x05../..\0", b"\x03a\0b\0", b"\x01-\0"]
)
def test_services_on_hosts_that_are_none(target: bytes):
    answer = asked(lambda question: answer_to(question, srv(target) + srv(name_of("gpu7.test")), 2), "SRV")
    assert [node.host for node in answer.found] == ["gpu7.test"]
    assert len(answer.problems) == 1
    assert answer.problems[0].isprintable()


@pytest.mark.parametrize("ttl", [0, 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_time_to_live_that_is_none(ttl: int):
    """It is neither asked without a pause, nor never again."""
    try:
        answer = asked(lambda question: answer_to(question, record(1, bytes([10, 0, 0, 7]), ttl), 1), seconds=1.0)
    except DiscoveryError:
        assert ttl == 0xFFFFFFFF
        return
    assert 30.0 <= answer.pause_seconds <= 30.0 * dns_source.MOST_REFRESHES


def test_as_many_as_fit_into_an_answer():
    records = b"".join(record(1, struct.pack(">I", 0x0A000000 + number)) for number in range(4000))
    answer = asked(lambda question: answer_to(question, records, 4000), seconds=10.0)
    assert len(answer.found) == 4000


def test_records_of_another_kind_and_name():
    other = record(1, bytes([10, 6, 6, 6]), name=name_of("evil.test")) + record(16, b"\x04gpu1") + record(28, bytes(16))
    try:
        answer = asked(lambda question: answer_to(question, other, 3), seconds=1.0)
    except DiscoveryError:
        return
    assert answer.found == []


def test_an_answer_to_another_question():
    with pytest.raises(DiscoveryError):
        asked(lambda question: b"xx" + answer_to(question, record(1, bytes(4)), 1)[2:], seconds=1.0)
