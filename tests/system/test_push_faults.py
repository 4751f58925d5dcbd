"""What happens to nodes that push when the hub goes away, a token is revoked, or names are not what they should be."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.fake_nvml import FakeNvml, NoCompilerError, h100_node
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Dripping, Site, snapshot, until

MIB = 1 << 20
AWAY_SECONDS = 60.0
# So long the hub waits for a body.
BODY_SECONDS = 30.0
# A backlog is 1 MiB at most, and there is some room beside it; a minute of all that the talker has to tell is 3 MiB.
MOST_GROWTH = 2 * MIB
MANY_GPUS = 14


class Outage:
    """A hub that is away, and two nodes that wait for it: one has little to tell, one far more than it may keep."""

    def __init__(self, site: Site):
        self.site = site
        tokens = site.tokens("calm,talker")
        self.calm = site.agent("calm", "--interval", "0.5", token=tokens["calm"], quick=True)
        self.talker = site.agent("talker", "--interval", "0.05", token=tokens["talker"], quick=True)
        self.agents = (self.calm, self.talker)
        for agent in self.agents:
            site.until_up(agent.node)
        # What is made once, is made.
        until(lambda: site.metric("gpulse_hub_lines_total") > 60)
        self.before = {agent.node: agent.anonymous_bytes() for agent in self.agents}
        self.since = time.time()
        site.stop_hub(signal.SIGKILL)

    def growth(self) -> int:
        """By how much the memory of either has grown at most."""
        return max(agent.anonymous_bytes() - self.before[agent.node] for agent in self.agents)


def driver(folder: Path, gpus: int) -> dict[str, str]:
    """The environment of nodes with so many GPUs."""
    try:
        fake = FakeNvml(folder)
    except NoCompilerError:
        pytest.skip("gcc is missing")
    fake.describe(h100_node(gpus, moving=True))
    return fake.environment({})


@pytest.fixture(scope="module", autouse=True)
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    """Begins with the first test, for it takes a minute; the last test looks at what has become of it."""
    folder = tmp_path_factory.mktemp("away")
    with Site(folder, driver(folder, MANY_GPUS)) as site:
        yield Outage(site)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with Site(folder, driver(folder, 8)) as site:
        yield site


@pytest.fixture(scope="module", autouse=True)
def dripping(site: Site) -> Iterator[Dripping]:
    """Begins with the first test too: the hub's patience with a body is long."""
    drips = Dripping(site, site.token("slow"), 100, 0.7 * BODY_SECONDS)
    drips.start()
    yield drips
    drips.end()


def names(site: Site) -> set[str]:
    return {node["name"] for node in site.hub.get("api/v1/nodes", limit=1000)["items"]}


# Tokens.


def test_token_revoked_on_an_open_connection(site: Site):
    agent = site.agent("fired", "--token-file", str(site.folder / "fired token"), quick=True)
    assert agent.process.wait(PATIENCE_SECONDS) == 2
    assert "there is no token in" in agent.words
    file = site.folder / "fired token"
    file.write_text(site.token("fired"))
    agent = site.agent("fired", "--token-file", str(file), quick=True)
    site.until_up("fired")
    site.token_command("revoke", "fired")
    # How soon, tests/attacks/test_node_tokens.py sees.
    agent.says("refuses this node: the token of fired was revoked")
    site.hub.until(lambda: "fired" not in names(site))
    # It goes on trying, and has no more to say each time.
    before = site.metric("gpulse_hub_refused_total")
    agent.says("was revoked (401 token_revoked)")
    site.hub.until(lambda: site.metric("gpulse_hub_refused_total") >= before + 3)
    assert agent.words.count("401 token_revoked") == 1
    assert "fired" not in names(site)
    file.write_text(site.token("fired"))
    site.until_up("fired")
    assert agent.process.poll() is None
    agent.kill()


def test_token_replaced_on_an_open_connection(site: Site):
    """Who has the old one is not the node any more."""
    agent = site.agent("moved", token=site.token("moved"))
    site.until_up("moved")
    new = site.token("moved", "--replace")
    agent.says("refuses this node: the token of moved was replaced by another")
    site.until_state("moved", "down")
    other = site.agent("moved", token=new, home="moved2")
    site.until_up("moved")
    agent.kill()
    other.kill()


REFUSED_HEADERS = {
    "no token": (None, 401, "token_missing"),
    "another scheme": ("Basic Z3B1OmdwdQ==", 401, "token_malformed"),
    "no token after the scheme": ("Bearer", 401, "token_malformed"),
    "no token of ours": ("Bearer secret", 401, "token_malformed"),
    "half a token": (f"Bearer gpn_{12 * '0'}_{20 * '0'}", 401, "token_malformed"),
    "unknown": (f"Bearer gpn_{12 * '0'}_{48 * '0'}", 401, "token_unknown"),
}


@pytest.mark.parametrize("case", REFUSED_HEADERS)
def test_who_may_not_connect(site: Site, case: str):
    value, status, code = REFUSED_HEADERS[case]
    before = names(site)
    refused_as(site, {} if value is None else {"Authorization": value}, "instance=0123456789abcdef", status, code)
    assert names(site) == before


def refused_as(site: Site, headers: dict[str, str], query: str, status: int, code: str) -> str:
    """The words of a refused connection."""
    address = f"{site.url.replace('http', 'ws', 1)}api/v1/ingest?{query}"
    with pytest.raises(InvalidStatus) as refused, connect(address, additional_headers=headers, compression=None):
        pass
    response = refused.value.response
    error = json.loads(response.body)["error"]
    assert (response.status_code, error["code"]) == (status, code), error
    assert error["message"]
    return error["message"]


REFUSED_QUERIES = {
    "": "missing_parameter",
    "instance=": "bad_parameter",
    "instance=xyz": "bad_parameter",
    "instance=AAAAAAAAAAAAAAAA": "bad_parameter",
    "instance=01234567890abcdef": "bad_parameter",
    "instance=0123456789abcdef&instance=0123456789abcdef": "repeated_parameter",
    "instance=0123456789abcdef&more=1": "unknown_parameter",
}


@pytest.mark.parametrize("query", REFUSED_QUERIES)
def test_instance_must_be_told(site: Site, token: str, query: str):
    before = names(site)
    refused_as(site, site.headers(token), query, 400, REFUSED_QUERIES[query])
    assert names(site) == before


def test_join_token_is_no_nodes_token(site: Site):
    join = site.token_command("create", "--join", "late[1-3]")
    before = names(site)
    refused_as(site, site.headers(join), "instance=0123456789abcdef", 403, "join_token")
    answer = site.post(join, snapshot("late1"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "join_token")
    assert names(site) == before


# Names.


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    """Of a node that a test speaks for; the hub expects it by now."""
    token = site.token("hand")
    until(lambda: "hand" in names(site))
    return token


def closed(socket: ClientConnection, seconds: float = 10.0) -> tuple[int, str]:
    """How the hub ended it."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            socket.recv(timeout=seconds)
    except ConnectionClosed as ended:
        assert ended.rcvd is not None, "it was cut off without a word"
        return ended.rcvd.code, ended.rcvd.reason
    except TimeoutError:
        pass
    raise AssertionError("the hub did not end it")


def test_another_nodes_name_by_websocket(site: Site, token: str):
    victim = site.agent("victim", token=site.token("victim"))
    site.until_up("victim")
    with site.socket(token) as socket:
        assert json.loads(socket.recv())["node"] == "hand"
        socket.send(snapshot("victim", gpus=[]))
        code, words = closed(socket)
    assert code == 4403
    assert "hand" in words
    assert "victim" in words
    node = site.hub.node("victim")
    assert node["state"] == "up"
    assert len(node["gpus"]) == 8
    assert "hand" in site.hub.node("hand")["reason"]
    victim.kill()


def test_another_nodes_name_in_a_later_snapshot(site: Site, token: str):
    with site.socket(token) as socket:
        socket.send(snapshot("hand"))
        site.until_up("hand")
        socket.send(snapshot("victim"))
        assert closed(socket)[0] == 4403


def test_another_nodes_name_in_a_late_line(site: Site, token: str):
    before = site.metric("gpulse_hub_late_lines_total")
    with site.socket(token) as socket:
        socket.send(snapshot("hand"))
        socket.send(snapshot("victim").decode())
        assert closed(socket)[0] == 4400
    assert site.metric("gpulse_hub_late_lines_total") == before


def test_two_nodes_with_one_name(site: Site):
    """A disk was cloned: both machines believe to be the same node."""
    twin = site.token("twin")
    first = site.agent("twin", token=twin)
    site.until_up("twin")
    second = site.agent("twin", token=twin, home="twin2", quick=True)
    said = second.says("refuses this node")
    assert "another agent sends as twin right now, from 127.0.0.1 (409 name_taken)" in said
    site.hub.until(lambda: "a second one was refused" in site.log_text("twin"))
    refused = site.metric("gpulse_hub_refused_total")
    site.hub.until(lambda: site.metric("gpulse_hub_refused_total") > refused)
    # The one is not disturbed by the other.
    assert site.hub.node("twin")["state"] == "up"
    assert first.words.count("connected to") == 1
    assert not [word for word in ("refuses", "took over", "lost") if word in first.words]
    assert second.words.count("refuses this node") == 1
    first.kill()
    second.says("connected to")
    site.until_up("twin")
    second.kill()


def test_first_of_two_hangs(site: Site):
    """Its connection stands, but nothing comes: the second may take over, and the first is told when it wakes up."""
    token = site.token("sleepy")
    first = site.agent("sleepy", token=token)
    site.until_up("sleepy")
    first.process.send_signal(signal.SIGSTOP)
    try:
        second = site.agent("sleepy", token=token, home="sleepy2", quick=True)
        second.says("connected to")
        site.until_up("sleepy")
    finally:
        first.process.send_signal(signal.SIGCONT)
    first.says("another connection of this node took over")
    assert site.hub.node("sleepy")["state"] == "up"
    first.kill()
    second.kill()


def test_renamed_node(site: Site):
    """Its old token is not for the new name; with a token to join with it gets one that is."""
    old = site.token("before")
    agent = site.agent("before", token=old)
    site.until_up("before")
    assert agent.end() == 0
    agent = site.agent("after", token=old)
    words = agent.says("refuses this node").split("refuses this node")[1]
    assert "before" in words
    assert "'after'" in words
    assert agent.end() == 0
    assert "after" not in names(site)
    agent = site.agent("after", token=site.token_command("create", "--join", "after"))
    site.until_up("after")
    assert site.state("before") == "down"
    assert (agent.folder / "token").read_text("ascii").startswith("gpn_")
    agent.kill()


# What cannot be read.


def test_lines_that_cannot_be_read(site: Site, token: str):
    with site.socket(token) as socket:
        for _ in range(5):
            socket.send(b'{"update":1,"seq":2}')
        code, words = closed(socket)
    assert code == 4400
    assert "it is an update, and no full snapshot came before it" in words
    assert "cannot be read" in site.log_text("hand")


def hostile(node: str) -> dict[str, tuple[bytes, int]]:
    """Lines of a node, and how the hub ends the connection of who sends them."""
    whole = snapshot(node)
    return {
        "a million GPUs": (whole.replace(b'"gpus":[', b'"gpus":[' + b"{}," * 1_000_000), 1009),
        "as many as fit": (whole.replace(b'"gpus":[', b'"gpus":[' + b"{}," * 349_000), 4400),
        "1 MiB and a byte": (snapshot(node, pad="x" * MIB)[: MIB + 1], 1009),
        "lists in lists": (whole[:-1] + b',"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 4400),
        "objects in objects": (b'{"node":' * 100_000, 4400),
        "zero bytes": (bytes(MIB), 4400),
    }


HOSTILE = list(hostile(""))


@pytest.fixture(scope="module")
def hostile_tokens(site: Site) -> dict[str, str]:
    """One node for each case: what a node has sent on one connection counts on the next."""
    return site.tokens("live[0-5],late[0-5]")


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("kind", ["live", "late"])
def test_hostile_lines(site: Site, hostile_tokens: dict[str, str], case: str, kind: str):
    node = f"{kind}{HOSTILE.index(case)}"
    line, expected = hostile(node)[case]
    before = site.hub_bytes()
    with site.socket(hostile_tokens[node]) as socket:
        try:
            for _ in range(5):
                if kind == "late":
                    socket.send(line.decode())
                else:
                    socket.send(line)
        except ConnectionClosed:
            # It need not hear all of it.
            pass
        assert closed(socket)[0] == expected
    assert site.hub_bytes() - before < 50 * MIB
    site.until_state(node, "down")


def test_flood(site: Site, token: str):
    """Who sends far more than a node has to tell is cut off, and others are as fresh as before."""
    quiet = site.agent("quiet", token=site.token("quiet"))
    site.until_up("quiet")
    with site.socket(token) as socket:
        try:
            for seq in range(5000):
                socket.send(snapshot("hand", seq=seq))
        except ConnectionClosed:
            pass
        code, words = closed(socket)
    assert code == 4429
    assert "lines" in words
    assert site.hub.node("quiet")["age_seconds"] < 5
    quiet.kill()


def test_slow_bodies(site: Site, dripping: Dripping):
    """All tests before were run beside them."""
    dripping.join(BODY_SECONDS + 15)
    assert len(dripping.answers) == 100
    assert {answer.split(b"\r\n")[0] for answer in dripping.answers} == {b"HTTP/1.1 408 Request Timeout"}
    assert time.monotonic() - dripping.began >= BODY_SECONDS
    # Who has said nothing for long is down.
    assert site.state("slow") in ("new", "down")
    assert site.hub.node("slow")["gpus"] == []


# The hub goes away.


@pytest.mark.timeout(400)
def test_hub_away_for_a_minute(outage: Outage):
    site, calm = outage.site, outage.calm
    time.sleep(max(0.0, outage.since + AWAY_SECONDS - time.time()))
    assert outage.growth() < MOST_GROWTH
    site.start_hub()
    back = time.time()
    for agent in outage.agents:
        assert agent.process.poll() is None
        assert len(site.until_up(agent.node)["gpus"]) == MANY_GPUS
    told = site.hub.until(
        lambda: [one for one in site.log("calm") if "without the hub came later" in one["message"]], 60
    )
    # Two lines a second, of all the time and of none besides.
    words = told[0]["message"].split()
    lines, seconds = int(words[0]), float(words[3])
    assert 0.8 * AWAY_SECONDS < seconds < time.time() - outage.since + 2
    assert 1.5 * (back - outage.since) < lines < 2.5 * (time.time() - outage.since)
    assert site.metric("gpulse_hub_late_lines_total") >= lines
    # The hub also counts the whole Snapshot that these lines build on.
    told_by_agent = int(calm.says("told the hub what it missed: ").rpartition("it missed: ")[2].split()[0])
    assert lines - 2 <= told_by_agent <= lines
    # What was so a minute ago has not come into what is so now.
    node = site.hub.node("calm")
    assert node["age_seconds"] < AWAY_SECONDS / 4
    assert abs(node["clock_difference_seconds"]) < 5
    assert site.metric("gpulse_hub_bad_lines_total") == 0
    assert outage.growth() < MOST_GROWTH
