"""Consul: recorded answers, blocking queries and failures, over real HTTP."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.config import ConsulTable
from gpulse.discovery import asking, consul
from gpulse.discovery.asking import Found
from gpulse.discovery.consul import Consul, decode
from gpulse.errors import DiscoveryError
from tests.discovery.consul_server import FakeConsul, entry, running, wait_until
from tests.discovery.following import following
from tests.patience import PATIENCE_SECONDS
from tests.testdata import capture

KEPT = "; the nodes it listed before are kept"
PROMETHEUS = "prometheus+prometheus/consul_health_service.json"
MANUAL = "hashicorp+consul/catalog_samples.json"


@pytest.fixture
def server() -> Iterator[FakeConsul]:
    with running() as fake:
        yield fake


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gpulse.toml"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses after failures that a test can wait for."""
    monkeypatch.setattr(asking, "_jitter", lambda _low, _high: 0.02)


def table(server: FakeConsul, more: str = "", wait: int = 30) -> str:
    return f'[[consul]]\nurl = "{server.url}"\nservice = "gpu"\nrefresh_seconds = 0.1\nwait_seconds = {wait}\n{more}\n'


def manual(section: str) -> object:
    """A body of the Consul manual."""
    return next(sample["body"] for sample in json.loads(capture(MANUAL)) if sample["section"] == section)


def test_a_recorded_answer(server, file):
    async def run() -> None:
        server.answers(capture(PROMETHEUS))
        file.write_text(table(server, 'group = "lab"\nuser = "ops"'))
        async with following(file) as seen:
            await seen.nodes("node1")
            [target] = seen.targets
            assert (target.host, target.port, target.user, target.transport) == ("1.1.1.1", None, "ops", "ssh")
            assert (target.group, target.rack) == ("lab", None)
            # What is said about the nodes may change without asking anew.
            asked = len(server.asked)
            file.write_text(table(server, 'transport = "pull"\ntls = true\ntoken_file = "token"'))
            await seen.until(lambda: seen.targets[0].transport == "pull")
            [target] = seen.targets
            assert (target.port, target.tls, target.token_file) == (3341, True, file.parent / "token")
            assert [query for _, query, _ in server.asked[asked:] if "index" not in query] == []
            file.write_text(table(server, 'transport = "pull"\nport = 7081\ndisplay_name = "Lab {name}"'))
            await seen.until(lambda: seen.targets[0].port == 7081)
            assert seen.targets[0].display_name == "Lab node1"
            assert seen.said == []

    asyncio.run(run())


def test_two_services_of_a_node(server, file):
    async def run() -> None:
        recorded = manual("Retrieve Map of Services for a Node")
        server.lists(
            *({"Node": recorded["Node"], "Service": one, "Checks": []} for one in recorded["Services"].values())
        )
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("t2-node")
            assert seen.targets[0].host == "10.1.10.12"
            file.write_text(table(server, 'transport = "pull"'))
            await seen.nodes("t2-node", "t2-node:8300")
            assert [target.port for target in seen.targets] == [8000, 8300]
            assert seen.said == []

    asyncio.run(run())


def test_what_is_asked(server, file):
    async def run() -> None:
        server.token = "right"  # noqa: S105 - of a server that is not there for long
        (file.parent / "token").write_text("right\n")
        server.lists(
            entry("good", tags=["a", "b c"]),
            entry("other", tags=["a"]),
            entry("ill", tags=["a", "b c"], status="critical"),
        )
        more = 'tag = ["a", "b c"]\ndatacenter = "dc2"\nnamespace = "team"\nacl_token_file = "token"'
        file.write_text(table(server, more).replace('"gpu"', '"gpu/x y"'))
        async with following(file) as seen:
            await seen.nodes("good")
            await seen.until(lambda: len(server.asked) == 2)
            query = {"tag": ["a", "b c"], "passing": ["true"], "dc": ["dc2"], "ns": ["team"]}
            assert server.asked == [
                ("/v1/health/service/gpu%2Fx%20y", query, "right"),
                ("/v1/health/service/gpu%2Fx%20y", {**query, "index": ["11"], "wait": ["30000ms"]}, "right"),
            ]
            file.write_text(table(server, 'passing_only = false\ntag = "a"\nacl_token_file = "token"'))
            await seen.nodes("good", "ill", "other")

    asyncio.run(run())


def test_places_by_meta(server, file):
    async def run() -> None:
        server.lists(
            entry("a", node_meta={"rack": "r1", "group": "g1"}),
            entry("b", node_meta={"rack": "r1"}, meta={"rack": "r2", "group": ""}, service_address="gpu7.x.org"),
            entry("c", node_meta={"rack": "r\x07"}),
        )
        file.write_text(table(server, 'group = "lab"\nrack = "r0"'))
        async with following(file) as seen:
            await seen.nodes("a", "b", "c")
            places = [(target.host, target.group, target.rack) for target in seen.targets]
            assert places == [("10.0.0.1", "g1", "r1"), ("gpu7.x.org", "lab", "r2"), ("10.0.0.1", "lab", "r0")]

    asyncio.run(run())


def test_a_change_comes_at_once(server, file):
    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            for number in range(5):
                began = time.monotonic()
                server.lists(entry("a"), entry(f"b{number}"))
                await seen.nodes("a", f"b{number}")
                # Questions last 30 s where nothing changes.
                assert time.monotonic() - began < 10
            # Nobody asks while nothing changes.
            await seen.until(lambda: "index" in server.asked[-1][1])
            asked = len(server.asked)
            await asyncio.sleep(0.3)
            assert len(server.asked) <= asked + 1
            assert seen.said == []

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fault", "body", "words"),
    [
        ("500", b"", "it answers 500: No cluster leader"),
        ("301", b"", "it answers 301: No cluster leader"),
        ("cut", b"", "its answer broke off: "),
        ("", b"<html>\n", "its answer is no list of a service's nodes: "),
        ("", b'[{"Node": {"Node": "a"', "its answer is no list of a service's nodes: "),
        ("", b'{"a": 1}', "its answer is no list of a service's nodes: "),
        ("", b"null", "its answer is no list of a service's nodes: "),
        ("silent", b"", "it does not answer in time"),
        ("drips", b"", "it does not answer in time"),
    ],
)
def test_a_failure_keeps_the_nodes_and_is_told_once(server, file, monkeypatch, fault, body, words):
    if "in time" in words:
        # Short enough to wait for, and long enough for a good answer of a busy machine.
        monkeypatch.setattr(consul, "GRACE_SECONDS", 2.0)

    async def run() -> None:
        server.lists(entry("a"), entry("b"))
        file.write_text(table(server, wait=1))
        async with following(file) as seen:
            await seen.nodes("a", "b")
            server.fails(fault, body)
            await seen.told(words)
            asked = len(server.asked)
            await seen.until(lambda: len(server.asked) > asked)
            server.fault = ""
            server.lists(entry("b"), entry("c"))
            await seen.nodes("b", "c")
            name = f"consul {server.url}: service gpu: "
            assert seen.said[-1] == f"{name}answers again"
            [failure] = seen.said[:-1]
            assert failure.startswith(name + words)
            assert failure.endswith(KEPT)
            assert seen.lists == 2

    asyncio.run(run())


def test_the_catalogue_is_no_answer(server, file):
    """What /v1/catalog/service answers has other fields, and says nothing of health."""

    async def run() -> None:
        server.answers(json.dumps(manual("List Nodes for Service")).encode())
        file.write_text(table(server) + '[[nodes]]\nhosts = "x"\n')
        async with following(file) as seen:
            await seen.nodes("x")
            assert len(seen.said) == 1
            assert "its answer is no list of a service's nodes: Expected `object`, got `str`" in seen.said[0]
            assert KEPT not in seen.said[0]
            server.answers(capture(PROMETHEUS))
            await seen.nodes("x", "node1")
            assert seen.said[1:] == [f"consul {server.url}: service gpu: answers now"]

    asyncio.run(run())


def test_a_server_that_goes_and_comes_back(file):
    async def run() -> None:
        with running() as server:
            server.lists(entry("a"))
            file.write_text(table(server, wait=1))
            port = int(server.url.rpartition(":")[2])
            following_it = following(file)
            seen = await following_it.__aenter__()
            await seen.nodes("a")
        try:
            await seen.told("cannot be reached: Connection refused" + KEPT)
            assert seen.names() == ["a"]
            with running(port=port) as again:
                # It has begun to count anew.
                again.index = 0
                again.lists(entry("b"))
                await seen.nodes("b")
                await seen.told("answers again")
        finally:
            await following_it.__aexit__(None, None, None)

    asyncio.run(run())


def test_an_index_that_goes_back(server, file):
    async def run() -> None:
        server.answers(json.dumps([entry("a")]).encode(), index=1000)
        file.write_text(table(server, wait=1))
        async with following(file) as seen:
            await seen.nodes("a")
            await seen.until(lambda: "index" in server.asked[-1][1])
            # Those who wait for more than 1000 are not woken: the answer comes when their time is over.
            server.answers(json.dumps([entry("b")]).encode(), index=5)
            await seen.nodes("b")
            await seen.until(lambda: any(query.get("index") == ["5"] for _, query, _ in server.asked))
            indexes = [query.get("index", [""])[0] for _, query, _ in server.asked]
            # After the step back the list is asked for as it is.
            assert indexes[: indexes.index("5") + 1][-3:] == ["1000", "", "5"]
            assert seen.said == []

    asyncio.run(run())


@pytest.mark.parametrize("index", ["", "0", "-3", "x", "٣", "9" * 30])
def test_an_index_that_is_none(server, file, index):
    """Then Consul cannot be waited for: it is asked every refresh_seconds."""

    async def run() -> None:
        server.headers["X-Consul-Index"] = index.encode().decode("latin-1")
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            server.lists(entry("b"))
            await seen.nodes("b")
            assert not any("index" in query for _, query, _ in server.asked)
            assert seen.said == []

    asyncio.run(run())


def test_tokens(server, file):
    async def run() -> None:
        token = file.parent / "token"
        server.token = "right"  # noqa: S105 - of a server that is not there for long
        server.lists(entry("a"))
        file.write_text(table(server))
        name = f"consul {server.url}: service gpu: "
        async with following(file) as seen:
            await seen.told("; it wants a token: set acl_token_file")
            assert seen.said[0].startswith(f"{name}it answers 403: Permission denied: ")
            file.write_text(table(server, 'acl_token_file = "token"'))
            await seen.told(f"{name}acl_token_file {token}: cannot be read: No such file or directory")
            for text in ("\n", "caf\xe9", "a\nb"):
                token.write_text(text, "latin-1")
                await seen.told(f"{name}acl_token_file {token}: holds no token")
                seen.said.clear()
                token.write_text("wrong")
                await seen.told(f"; look at the token in {token}")
            token.write_text("right\n")
            await seen.nodes("a")
            assert seen.said[-1] == f"{name}answers now"
            assert not any("right" in said or "wrong" in said for said in seen.said)

    asyncio.run(run())


def test_an_empty_answer_is_an_answer(server, file):
    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            server.lists()
            await seen.nodes()
            assert seen.said == [f"consul {server.url}: service gpu: lists no node"]
            server.lists(entry("a"))
            await seen.nodes("a")
            assert len(seen.said) == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("header", "value", "words"),
    [
        ("X-Consul-KnownLeader", "false", "the Consul cluster has no leader, so its list may be old or empty"),
        ("X-Consul-Results-Filtered-By-ACLs", "true", "the token may not see all of its nodes"),
    ],
)
def test_an_empty_answer_that_is_none(server, file, header, value, words):
    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            server.headers[header] = value
            server.lists()
            await seen.told(words)
            assert seen.said[0].endswith(KEPT)
            assert seen.names() == ["a"]

    asyncio.run(run())


def test_a_token_that_sees_a_part(server, file):
    async def run() -> None:
        server.headers["X-Consul-Results-Filtered-By-ACLs"] = "true"
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            await seen.told("the token may not see all of its nodes; let its policy read")

    asyncio.run(run())


def test_nodes_that_cannot_be_are_left_out(server, file):
    async def run() -> None:
        server.lists(
            entry("a"),
            entry("-oProxyCommand=x"),
            entry("b", "$(id)"),
            entry("c", ""),
            *(entry(f"bad {number}") for number in range(9)),
            entry("d", "fe80::1", port=-1),
        )
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a", "d")
            name = f"consul {server.url}: service gpu: "
            assert seen.said[:3] == [
                f'{name}"-oProxyCommand=x" is left out: "-oProxyCommand=x" is no host name',
                f'{name}"b" is left out: "$(id)" is no host name',
                f'{name}"c" is left out: "" is no host name',
            ]
            assert seen.said[5:] == [f"{name}and 7 more such nodes"]

    asyncio.run(run())


def test_an_answer_is_bounded(server, file, monkeypatch):
    monkeypatch.setattr(consul, "MOST_BYTES", 10_000)

    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            server.lists(*(entry(f"n{number}") for number in range(100)))
            await seen.told("its answer is larger than 10000 bytes" + KEPT)
            assert seen.names() == ["a"]

    asyncio.run(run())


def test_one_that_never_answers_delays_nobody_for_long(server, file, monkeypatch):
    monkeypatch.setattr(asking, "FIRST_SECONDS", 0.3)

    async def run() -> None:
        server.fault = "silent"
        with running() as other:
            other.lists(entry("b"))
            file.write_text(table(server) + table(other) + '[[nodes]]\nhosts = "x"\n')
            began = time.monotonic()
            async with following(file) as seen:
                await seen.nodes("x", "b")
                assert time.monotonic() - began < 10
                assert seen.said == [f"consul {server.url}: service gpu: has not answered yet; it is asked on"]

    asyncio.run(run())


def asking_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("consul ")]


def test_what_is_not_asked_any_more_ends(server, file):
    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server) + '[[nodes]]\nhosts = "x"\n')
        async with following(file) as seen:
            await seen.nodes("x", "a")
            assert len(asking_threads()) == 1
            file.write_text('[[nodes]]\nhosts = "x"\n')
            await seen.nodes("x")
            wait_until(lambda: not asking_threads(), 10)
            file.write_text(table(server))
            await seen.nodes("a")
            await seen.until(lambda: "index" in server.asked[-1][1])
        # It was in the middle of a question of 30 s.
        wait_until(lambda: not asking_threads(), 10)

    asyncio.run(run())


def test_a_mistake_in_the_file_does_not_stop_the_following(server, file):
    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")
            file.write_text(table(server) + "[[nodes]]\n")
            await seen.told("is missing")
            server.lists(entry("b"))
            await seen.nodes("b")
            assert len(seen.said) == 1

    asyncio.run(run())


def test_many_that_wait_leave_threads_for_others(server, file):
    async def run() -> None:
        server.lists(entry("a"))
        file.write_text("".join(table(server).replace('"gpu"', f'"gpu{number}"') for number in range(40)))
        async with following(file) as seen:
            await seen.nodes("a")
            await seen.until(lambda: sum("index" in query for _, query, _ in server.asked) == 40)
            began = time.monotonic()
            await asyncio.gather(*(asyncio.to_thread(int) for _ in range(100)))
            assert time.monotonic() - began < 10

    asyncio.run(run())


def test_a_process_ends_though_consul_does_not_answer(server, file):
    server.fault = "silent"
    file.write_text(table(server) + '[[nodes]]\nhosts = "x"\n')
    code = (
        "import sys\nfrom pathlib import Path\nfrom gpulse.config import load\n"
        "from gpulse.discovery import asking, sources\nasking.FIRST_SECONDS = 0.2\npath = Path(sys.argv[1])\n"
        "for source in sources([], path, load(path)):\n    print([t.name for t in source.targets(print)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert done.stdout.splitlines()[-1] == "['x']"
    assert done.stderr == ""


def certificate(folder: Path) -> Path:
    """One that 127.0.0.1 has signed for itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "cert.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def test_https(file):
    async def run() -> None:
        with running(certificate(file.parent)) as server:
            server.lists(entry("a"))
            file.write_text(table(server))
            async with following(file) as seen:
                await seen.told("its certificate is not trusted: self-signed certificate; set ca_file")
                file.write_text(table(server, 'ca_file = "gone.pem"'))
                await seen.told("gone.pem: cannot be read: No such file or directory")
                file.write_text(table(server, 'ca_file = "cert.pem"'))
                await seen.nodes("a")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://no-such-host.invalid:8500", "cannot be reached: "),
        ("http://[::1%x]:8500", ""),
    ],
)
def test_a_url_where_nothing_can_be(url, words):
    with pytest.raises(DiscoveryError) as caught:
        asyncio.run(Consul(ConsulTable(service="gpu", url=url)).ask(first=True))
    assert str(caught.value).startswith(words)


def test_http_where_https_is(file):
    async def run() -> None:
        with running() as server:
            file.write_text(table(server).replace("http:", "https:"))
            async with following(file) as seen:
                await seen.told("cannot be reached: [SSL")

    asyncio.run(run())


def test_proxies_for_the_internet_are_not_used(server, file, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def run() -> None:
        server.lists(entry("a"))
        file.write_text(table(server))
        async with following(file) as seen:
            await seen.nodes("a")

    asyncio.run(run())


def test_every_recorded_body_is_read_or_refused():
    for sample in json.loads(capture(MANUAL)):
        with pytest.raises(DiscoveryError, match="no list of a service's nodes"):
            decode(json.dumps(sample["body"]).encode(), [])
    assert decode(capture(PROMETHEUS), []) == [Found("node1", "1.1.1.1", 3341)]


NAMES = st.one_of(st.sampled_from(["a", "gpu[1-3]", "-x", "", "fe80::1%é"]), st.text(max_size=9))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), NAMES),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
META = st.one_of(st.none(), st.dictionaries(st.sampled_from(["rack", "group", "x"]), NAMES, max_size=3), JSON)
NODES = st.fixed_dictionaries({"Node": NAMES}, optional={"Address": NAMES, "Meta": META, "x": JSON})
SERVICES = st.fixed_dictionaries({}, optional={"Address": NAMES, "Port": st.one_of(st.integers(), JSON), "Meta": META})
ENTRIES = st.fixed_dictionaries({"Node": st.one_of(NODES, JSON), "Service": st.one_of(SERVICES, JSON)})


@given(
    st.one_of(
        st.binary(max_size=60),
        JSON.map(lambda value: json.dumps(value).encode()),
        st.lists(ENTRIES, max_size=4).map(lambda value: json.dumps(value).encode("utf-8")),
    )
)
@example(b'[{"x":' * 10_000)
@example(b"[" * 100_000)
@example(b'["\xff"]')
@example(b'[{"Node":{"Node":"\xff"},"Service":{}}]')
@example(b'[{"Node":{"Node":"a","Address":"b","Meta":{"rack":"\\ud800"}},"Service":{}}]')
@example(b'[{"Node":{"Node":"a","Address":"b"},"Service":{"Port":' + b"9" * 5000 + b"}}]")
def test_any_answer(body):
    problems: list[str] = []
    try:
        found = decode(body, problems)
    except DiscoveryError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 300
        return
    assert all(one.name and one.host and (one.port is None or 1 <= one.port <= 65535) for one in found)
    assert all("\n" not in words and len(words) < 400 for words in problems)
