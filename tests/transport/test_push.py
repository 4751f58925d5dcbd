"""Nodes that push: one connection each, their lines checked and counted, silence and floods ended with words."""

import json
from typing import NamedTuple

import msgspec
import pytest

from gpulse.errors import RequestError
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport import push as push_module
from gpulse.transport.push import PATIENCE_SECONDS, Push
from gpulse.transport.pushed import MALFORMED, OTHER_NODE, REVOKED, SILENT, TAKEN_OVER, TOO_MUCH
from tests.fleet.lines import gpu, snapshot


class Line:
    """The hub's end of a connection; remembers what the hub did."""

    def __init__(self):
        self.sent: list[dict] = []
        self.closed: tuple[int, str] | None = None

    def send(self, text: str) -> None:
        self.sent.append(json.loads(text))

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


class Token(NamedTuple):
    id: str
    node: str


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A fleet and those that push to it."""

    def __init__(self, *names: str):
        self.clock = Clock()
        self.fleet = Fleet(clock=self.clock)
        self.push = Push(self.fleet, lambda name: Place(name, address="push"), clock=self.clock)
        self.push.set_nodes({name: Place(name, address="push") for name in names}, self.why)

    def why(self, name: str) -> tuple[int, str]:
        return REVOKED, f"the token of {name} was revoked"

    def connect(self, name="n1", instance="a" * 16, peer="10.0.0.7"):
        self.push.admit(name, instance)
        line = Line()
        return self.push.connect(Token("1", name), instance, peer, line), line

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.clock.now += 1
            self.push.look()
            self.fleet.tick()

    def state(self, name="n1") -> str:
        return self.fleet.node(name).state

    def log(self, name="n1") -> str:
        return "\n".join(entry.message for entry in self.fleet.log_of(name))


@pytest.fixture
def site() -> Site:
    return Site("n1", "n2")


def full(name="n1", **changes) -> bytes:
    record = json.loads(snapshot(gpu(), node=name))
    record.update(changes)
    return json.dumps(record).encode()


def update(of: int, seq: int, **rest) -> bytes:
    return json.dumps({"update": of, "seq": seq, "time": 1.0, **rest}, separators=(",", ":")).encode()


def test_a_node_is_expected_then_up(site):
    assert site.state() == "new"
    assert site.fleet.node("n1").reason == push_module.WAITING
    connection, line = site.connect()
    assert line.sent == [{"gpulse": push_module.__version__, "node": "n1", "spread_seconds": 1.0}]
    connection.binary(full(seq=3))
    assert site.state() == "up"
    connection.binary(update(3, 4))
    assert site.fleet.counters.lines == 2
    assert line.closed is None


def test_who_never_connects_is_down_after_a_while(site):
    site.seconds(int(PATIENCE_SECONDS) + 2)
    assert site.state() == "down"
    assert "gpulse agent status" in site.fleet.node("n1").reason


def test_a_node_that_was_not_expected_gets_its_place(site):
    site.connect("n9")
    assert "n9" in site.fleet.names()
    assert site.push.names() == {"n1", "n2", "n9"}


def test_another_nodes_name(site):
    connection, line = site.connect("n1")
    connection.binary(full("n2"))
    assert line.closed is not None
    assert line.closed[0] == OTHER_NODE
    assert "n1" in line.closed[1]
    assert "n2" in line.closed[1]
    assert site.state("n2") == "new"
    assert site.state("n1") == "down"


def test_the_first_line_must_be_whole(site):
    connection, line = site.connect()
    for _ in range(5):
        connection.binary(update(1, 2))
    assert line.closed == (
        MALFORMED,
        "5 lines in a row cannot be read: it is an update, and no full snapshot came before it",
    )
    assert site.state() == "down"
    connection.binary(full())
    assert site.state() == "down"


def test_a_good_line_makes_up_for_bad_ones(site):
    connection, line = site.connect()
    connection.binary(full(seq=1))
    for _ in range(20):
        connection.binary(b"{")
        connection.binary(b'{"update":')
        connection.binary(update(1, 2))
        site.seconds(1)
    assert line.closed is None
    assert site.fleet.counters.bad_lines == 40


def test_two_agents_of_one_name(site):
    first, first_line = site.connect(instance="a" * 16)
    first.binary(full())
    with pytest.raises(RequestError) as refused:
        site.connect(instance="b" * 16)
    assert (refused.value.status, refused.value.code) == (409, "name_taken")
    assert "10.0.0.7" in refused.value.message
    assert "a second one was refused" in site.log()
    assert first_line.closed is None


def test_the_same_agent_again_takes_over(site):
    """Its former connection is half open: the node knows that it is gone, the hub does not yet."""
    first, first_line = site.connect(instance="a" * 16)
    first.binary(full())
    second, second_line = site.connect(instance="a" * 16)
    assert first_line.closed is not None
    assert first_line.closed[0] == TAKEN_OVER
    second.binary(full())
    first.gone(1006, "")
    assert site.state() == "up"
    assert second_line.closed is None
    assert site.push.connected == 1


def test_a_new_agent_after_a_crash_takes_over_soon(site):
    first, _ = site.connect(instance="a" * 16)
    first.binary(full())
    site.seconds(5)
    second, line = site.connect(instance="b" * 16)
    second.binary(full())
    assert line.closed is None
    assert site.state() == "up"


def test_silence_ends_a_connection(site):
    connection, line = site.connect()
    connection.binary(full())
    site.seconds(8)
    assert line.closed is None
    assert site.state() == "stale"
    site.seconds(4)
    assert line.closed is not None
    assert line.closed[0] == SILENT
    assert site.state() == "down"


def test_a_slow_node_is_not_silent(site):
    connection, line = site.connect()
    connection.binary(full(probe={"interval_seconds": 30.0}))
    site.seconds(80)
    assert line.closed is None
    assert site.state() == "up"


def test_floods_are_ended(site):
    connection, line = site.connect()
    connection.binary(full(seq=1))
    for _ in range(49):
        connection.binary(update(1, 2))
    assert line.closed is None
    for _ in range(50):
        connection.binary(update(1, 2))
    assert line.closed is not None
    assert line.closed[0] == TOO_MUCH
    connection, line = site.connect("n2")
    connection.binary(b"x" * (9 << 20))
    assert line.closed is not None
    assert line.closed[0] == TOO_MUCH


@pytest.mark.parametrize(("lines", "ended"), [(50, False), (60, True)])
def test_what_is_too_much_for_long(site, lines, ended):
    connection, line = site.connect()
    connection.binary(full(seq=1))
    for _ in range(30):
        site.seconds(1)
        for _ in range(lines):
            connection.binary(update(1, 2))
    assert (line.closed is not None) == ended


@pytest.mark.parametrize("interval", [0.05, 0.1, 1.0])
def test_all_lines_of_a_stall_at_once(site, interval):
    """The hub stood still; nobody looked at the clock meanwhile either."""
    connection, line = site.connect()
    connection.binary(full(seq=1, probe={"interval_seconds": interval}))
    for _ in range(3):
        site.clock.now += 19
        for _ in range(int(19 / interval)):
            connection.binary(update(1, 2))
        assert line.closed is None
    for _ in range(1000):
        connection.binary(update(1, 2))
    assert line.closed is not None


def test_who_changes_its_interval_gets_no_more_for_it(site):
    connection, line = site.connect()
    sent = 0
    while line.closed is None:
        for interval in (0.05, 3600.0):
            connection.binary(full(seq=1, probe={"interval_seconds": interval}))
            for _ in range(300):
                connection.binary(update(1, 2))
                sent += line.closed is None
        site.seconds(1)
        assert sent < 2000


def large(**changes) -> bytes:
    return full(padding="x" * 100_000, **changes)


def test_full_snapshots_cost_more(site):
    connection, line = site.connect()
    for _ in range(60):
        connection.binary(large())
        connection.binary(large())
        connection.binary(large())
        site.seconds(1)
    assert line.closed is None
    for _ in range(10):
        for _ in range(12):
            connection.binary(large())
        site.seconds(1)
    assert line.closed is not None
    assert line.closed[0] == TOO_MUCH


def test_a_node_whose_processes_come_and_go_all_the_time(site):
    connection, line = site.connect()
    for _ in range(60):
        for _ in range(20):
            connection.binary(full(probe={"interval_seconds": 0.05}))
        site.seconds(1)
    assert line.closed is None


def test_too_many_late_lines(site):
    connection, line = site.connect()
    connection.binary(full())
    connection.text(full(seq=1))
    for _ in range(100):
        connection.text(update(1, 2))
    assert line.closed is not None
    assert line.closed[0] == TOO_MUCH
    assert site.fleet.counters.bad_lines == 0


def test_revoked(site):
    connection, line = site.connect()
    connection.binary(full())
    site.push.set_nodes({"n2": Place("n2", address="push")}, site.why)
    assert line.closed == (REVOKED, "the token of n1 was revoked")
    assert site.fleet.names() == ["n2"]
    connection.binary(full())
    connection.gone(1006, "")
    assert site.fleet.names() == ["n2"]


def test_a_replaced_token(site):
    connection, line = site.connect()
    connection.binary(full())
    site.push.end_replaced({"n1", "n2"}, lambda token: token.id == "1")
    assert line.closed is None
    site.push.end_replaced({"n1"}, lambda token: token.id == "2")
    assert line.closed is not None
    assert line.closed[0] == REVOKED
    assert site.state() == "down"


def test_ends_in_words(site):
    for code, words in ((1000, "was stopped"), (1006, "cut off"), (4999, "strange (4999)")):
        connection, _ = site.connect(instance=f"{code:016x}")
        connection.binary(full())
        connection.gone(code, "strange" if code > 4000 else "")
        assert words in site.fleet.node("n1").reason
        assert site.state() == "down"


def test_a_wave_is_slowed_down(monkeypatch):
    monkeypatch.setattr(push_module, "MOST_CONNECTS_A_SECOND", 2)
    site = Site("n1", "n2", "n3")
    site.connect("n1")
    site.connect("n2")
    with pytest.raises(RequestError) as refused:
        site.connect("n3")
    assert refused.value.status == 503
    site.seconds(1)
    site.connect("n3")


def test_those_that_are_refused_belong_to_the_wave(monkeypatch):
    monkeypatch.setattr(push_module, "MOST_CONNECTS_A_SECOND", 3)
    site = Site("n1", "n2")
    connection, _ = site.connect("n1")
    connection.binary(full())
    for _ in range(2):
        with pytest.raises(RequestError) as refused:
            site.connect("n1", instance="b" * 16)
        assert refused.value.status == 409
    with pytest.raises(RequestError) as refused:
        site.connect("n2")
    assert refused.value.status == 503
    assert refused.value.retry_seconds


def test_many_nodes_come_back_over_a_longer_time():
    site = Site(*(f"n{number}" for number in range(5000)))
    _, line = site.connect("n1")
    assert line.sent[0]["spread_seconds"] == 10.0


def test_late_lines_do_not_change_what_is_now(site):
    connection, line = site.connect()
    connection.binary(full(seq=100, time=5000.0))
    before = site.fleet.known("n1").snapshot
    connection.text(full(seq=1, time=100.0, gpus=[]))
    for number in range(2, 30):
        connection.text(update(1, number, time=100.0 + number))
    assert site.fleet.known("n1").snapshot is before
    assert site.fleet.counters.late_lines == 29
    site.seconds(5)
    assert "29 lines of 29 s without the hub came later" in site.log()
    assert line.closed is None


def test_late_lines_with_pauses_between_them(site):
    """As of a node that ticks every ten seconds, or of one that is busy."""
    connection, line = site.connect()
    connection.binary(full(seq=100, time=5000.0))
    connection.text(full(seq=1, time=100.0))
    for number in range(2, 5):
        site.seconds(2)
        connection.binary(update(100, 100 + number))
        connection.text(update(1, number, time=100.0 + number))
    assert "came later" not in site.log()
    for number in range(1, 6):
        site.seconds(1)
        connection.binary(update(100, 110 + number))
    assert "4 lines of 4 s without the hub came later" in site.log()
    # Whatever was told of: what comes after all builds on what came before.
    connection.text(update(1, 9, time=109.0))
    assert line.closed is None


@pytest.mark.parametrize("bad", [b"{", b'{"update":7,"seq":8,"time":1}', b'{"node":"n2","seq":1,"time":1}', b"\xff"])
def test_late_lines_that_are_none(site, bad):
    connection, line = site.connect()
    connection.binary(full())
    connection.text(bad)
    assert line.closed is not None
    assert line.closed[0] == MALFORMED


def test_clocks_hours_off(site):
    connection, _ = site.connect()
    connection.binary(full(time=msgspec.json.decode(full())["time"] - 6 * 3600))
    assert site.state() == "up"
    assert site.fleet.node("n1").age_seconds == 0


def test_post(site):
    site.push.post("n1", full())
    assert site.state() == "up"
    with pytest.raises(RequestError) as refused:
        site.push.post("n1", full("n2"))
    assert refused.value.status == 403
    with pytest.raises(RequestError) as refused:
        site.push.post("n1", b"[]")
    assert (refused.value.status, refused.value.code) == (422, "bad_snapshot")
    for line in (update(0, 1, node="n1"), b'{"schema":1,"seq":0,"time":1.0}'):
        with pytest.raises(RequestError) as refused:
            site.push.post("n1", line)
        assert (refused.value.status, refused.value.code) == (422, "bad_snapshot")
    assert site.fleet.node("n1").interval_seconds == 1.0


def test_who_posts_now_and_then_is_not_stale_in_between(site):
    record = json.loads(full())
    record["probe"].pop("interval_seconds", None)
    line = json.dumps(record).encode()
    site.push.post("n1", line)
    site.seconds(30)
    assert site.state() == "up"
    for _ in range(3):
        site.seconds(120)
        site.push.post("n1", line)
    site.seconds(300)
    assert site.state() == "up"
    site.seconds(400)
    assert site.state() == "stale"


def test_no_post_beside_a_connection(site):
    connection, line = site.connect()
    connection.binary(full())
    for _ in range(200):
        with pytest.raises(RequestError) as refused:
            site.push.afford("n1", 1000)
        assert (refused.value.status, refused.value.code) == (409, "name_taken")
    with pytest.raises(RequestError) as refused:
        site.push.post("n1", full())
    assert (refused.value.status, refused.value.code) == (409, "name_taken")
    # It does not cost the agent anything.
    connection.binary(full())
    assert line.closed is None


def test_the_pace_of_posts_outlives_a_change_of_the_lists(site):
    record = json.loads(full())
    record["probe"].pop("interval_seconds", None)
    site.push.post("n1", json.dumps(record).encode())
    learned = site.fleet.node("n1").interval_seconds
    assert learned > 10
    places = {name: Place(name, address="push") for name in ("n1", "n2", "n3")}
    site.push.set_nodes(places, site.why)
    assert site.fleet.node("n1").interval_seconds == learned
    site.push.set_nodes({**places, "n1": Place("n1", address="push", group="g")}, site.why)
    assert (site.fleet.node("n1").interval_seconds, site.fleet.node("n1").group) == (learned, "g")
    site.seconds(20)
    assert site.state() == "up"


def test_posts_have_a_limit_too(site):
    posted = 0
    with pytest.raises(RequestError) as refused:
        while posted < 100:
            site.push.afford("n1", 100_000)
            posted += 1
    assert (refused.value.status, refused.value.code, refused.value.retry_seconds) == (429, "too_much", 1)
    assert 5 <= posted <= 45
    site.push.afford("n2", 100_000)
    site.seconds(1)
    for _ in range(5):
        site.push.afford("n1", 100_000)
    # The same for both ways: who has posted it all has no more for a connection.
    connection, line = site.connect()
    connection.binary(large())
    assert line.closed is not None
    assert line.closed[0] == TOO_MUCH
