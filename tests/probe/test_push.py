"""Agents that push, against a hub's stand-in: what they send, what they keep while it is away, and that they end."""

import contextlib
import json
import signal
import socket
import time
from collections import Counter
from pathlib import Path

import pytest
from websockets.frames import Opcode

from gpulse_probe.backlog import Backlog
from gpulse_probe.outlets.push import MOST_PENDING_BYTES
from tests.conform import conforms
from tests.fake_nvml import Process, h100_node
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.hub_stand_in import StandInHub
from tests.probe.pushing import NODE_TOKEN, RunningAgent, go_on, make_push, until
from tests.probe.running import children, only_child


@pytest.fixture
def hub():
    with StandInHub() as stand_in:
        yield stand_in


@pytest.mark.parametrize("version", interpreters())
def test_whole_first_then_updates(version, hub, tmp_path):
    with RunningAgent(tmp_path / "a", hub.url + "/sub/path/", python=interpreters()[version]) as agent:
        visit = hub.visit()
        first, *others = [visit.line() for _ in range(4)]
        assert (first["node"], first["probe"]["interval_seconds"]) == ("n1", 0.1)
        assert first["probe"]["python"].startswith(version + ".")
        assert [other["update"] for other in others] == [first["seq"]] * 3
        assert visit.head.startswith("GET /sub/path/api/v1/ingest?instance=")
        assert visit.headers["Authorization"] == f"Bearer {NODE_TOKEN}"
        assert "Sec-WebSocket-Extensions" not in visit.headers
        agent.says(f"connected to {hub.url}/sub/path as n1 (gpulse 0.0.1)")


def test_lines_of_a_node_with_gpus(hub, fake, pids, tmp_path):
    fake.describe(h100_node(8, [Process(pids[0], sm=40)], moving=True))
    with RunningAgent(tmp_path / "a", hub.url, environment=fake.environment()):
        visit = hub.visit()
        first = visit.line()
        assert conforms("Snapshot", first) == []
        assert len(first["gpus"]) == 8
        assert len(visit.line()["gpus"]["power_watts"]) == 8


def test_name_that_has_to_be_looked_up(hub, tmp_path):
    with RunningAgent(tmp_path / "a", f"http://localhost:{hub.port}") as agent:
        assert hub.visit().line()["node"] == "n1"
        # The child that looked it up is gone, the one of the devices is there.
        only_child(agent.process.pid)


def test_name_nobody_knows(tmp_path):
    with RunningAgent(tmp_path / "a", "http://no-such-hub.invalid") as agent:
        agent.says("no connection to http://no-such-hub.invalid: no-such-hub.invalid: ")
        assert agent.end() == 0


@pytest.mark.parametrize("version", [next(iter(interpreters())), list(interpreters())[-1]])
def test_hub_away_for_a_while(version, hub, tmp_path):
    """What it missed comes late, each line once, in its order, beside live lines."""
    with RunningAgent(tmp_path / "a", hub.url, python=interpreters()[version]) as agent:
        visit = hub.visit()
        instance = visit.head.split("instance=")[1][:16]
        messages = [visit.next() for _ in range(5)]
        hub.stop()
        while not visit.messages.empty():
            messages.append(visit.next())
        # Where it took long to connect there are late lines already, and a second whole one before them.
        lines = [(kind, json.loads(data)) for kind, data in messages]
        before = [line for kind, line in lines if kind is Opcode.BINARY or "update" in line]
        agent.says("Connection refused")
        time.sleep(1.0)
        hub.start()
        visit = hub.visit(30)
        assert visit.head.split("instance=")[1][:16] == instance
        # Since then: where it took long to connect at first, it has said so before.
        until(lambda: "told the hub what it missed" in agent.words.rpartition("Connection refused")[2])
        told_at = time.time()
        messages = [visit.next()]
        # What was read after the agent's words comes after all that it missed.
        while messages[-1][0] is not Opcode.BINARY or json.loads(messages[-1][1])["time"] <= told_at:
            messages.append(visit.next())
        assert agent.end() == 0
    live, late = (
        [json.loads(data) for kind, data in messages if kind is wanted] for wanted in (Opcode.BINARY, Opcode.TEXT)
    )
    assert messages[0][0] is Opcode.BINARY
    assert live[0] == before[0]
    assert late[0] == before[0], "late updates build on it, so it comes first"
    assert all(line["update"] == before[0]["seq"] for line in live[1:] + late[1:])
    seqs = [line["seq"] for line in late[1:]]
    assert seqs == sorted(seqs)
    assert len(seqs) >= 5
    told = Counter(line["seq"] for line in before + live[1:] + late[1:])
    assert set(told.values()) == {1}
    # Nothing is missing but the line or two that were on their way when the hub went.
    assert len(set(range(max(told))) - set(told)) <= 2
    between = [kind for kind, _ in messages]
    assert max(len(run) for run in "".join(kind.name[0] for kind in between).split("B")) <= 5


def test_what_is_kept_is_bounded_and_spans_the_gap(hub, tmp_path):
    hub.stop()
    push, words = make_push(tmp_path, hub.url, Backlog(most_bytes=50_000))
    whole = b'{"schema":1,"seq":0,"x":"' + b"x" * 2000 + b'"}'
    push.tick(whole)
    for seq in range(1, 2000):
        push.tick(b'{"update":0,"seq":%d,"x":"%s"}' % (seq, b"x" * 200))
    hub.start()
    go_on(push, lambda: not hub.visits.empty())
    visit = hub.visit()
    seqs = []
    began = time.monotonic()
    while not any("missed" in word for word in words):
        assert time.monotonic() - began < 60
        push.tick(b'{"update":0,"seq":5000}')
        push._late_at = 0.0
        go_on(push, lambda: True)
        push.wait_until(time.monotonic())
    last = b'{"update":0,"seq":6000}'
    push.tick(last)
    go_on(push, lambda: (Opcode.BINARY, last) in list(visit.messages.queue))
    while not visit.messages.empty():
        kind, data = visit.next()
        if kind is Opcode.TEXT:
            seqs.append(json.loads(data)["seq"])
    push.close()
    assert 80 < len(seqs) < 220
    assert seqs == sorted(seqs)
    assert seqs[1] < 50
    assert seqs[-1] > 1950


def test_hub_that_does_not_read_does_not_stop_the_ticks(hub, tmp_path):
    """Lines are left out rather than queued, and what comes when it reads again makes sense."""
    push, _ = make_push(tmp_path, hub.url)
    push.tick(b'{"schema":1,"seq":0}')
    go_on(push, lambda: not hub.visits.empty())
    visit = hub.visit()
    go_on(push, lambda: push._connection is not None)
    hub.reads.clear()
    whole_seq = seq = 0
    for seq in range(1, 400):
        began = time.monotonic()
        filler = b"x" * 40_000
        if seq % 10 == 0:
            whole_seq = seq
            push.tick(b'{"schema":1,"seq":%d,"x":"%s"}' % (seq, filler))
        else:
            push.tick(b'{"update":%d,"seq":%d,"x":"%s"}' % (whole_seq, seq, filler))
        assert push._connection.link.pending < MOST_PENDING_BYTES + 2 * 41_000
        push.wait_until(time.monotonic())
        assert time.monotonic() - began < 5
    assert push._connection.link.pending > MOST_PENDING_BYTES
    hub.reads.set()
    go_on(push, lambda: push._connection.link.pending == 0)
    push.tick(b'{"update":%d,"seq":999}' % whole_seq)
    seen, base = [], None
    while not seen or seen[-1] != 999:
        go_on(push, lambda: not visit.messages.empty())
        kind, data = visit.next()
        line = json.loads(data)
        if kind is Opcode.BINARY:
            base = line["seq"] if "schema" in line else base
            assert line.get("update", base) == base
            seen.append(line["seq"])
    push.close()
    assert seen == sorted(seen)
    assert len(seen) < 390


def test_what_did_not_arrive_is_told_again_once(hub, tmp_path):
    push, _ = make_push(tmp_path, hub.url)
    texts = [b'{"schema":1,"seq":0}'] + [
        b'{"update":0,"seq":%d,"x":"%s"}' % (seq, b"x" * 3000) for seq in range(1, 200)
    ]
    push.tick(texts[0])
    go_on(push, lambda: not hub.visits.empty())
    first = hub.visit()
    go_on(push, lambda: push._connection is not None)
    for number, text in enumerate(texts[1:]):
        if number == 30:
            hub.reads.clear()
        push.tick(text)
        push.wait_until(time.monotonic())
    assert push._in_flight
    first.drop()
    hub.reads.set()
    go_on(push, lambda: not hub.visits.empty())
    second = hub.visit()
    go_on(push, lambda: push._connection is not None)
    while push._backlog:
        push._late_at = 0.0
        push._send_late()
        push.wait_until(time.monotonic())
    go_on(push, lambda: not push._connection.link.pending)
    push.wait_until(time.monotonic() + 0.2)
    push.close()
    assert second.closed.wait(PATIENCE_SECONDS)
    told = Counter()
    for visit in (first, second):
        while not visit.messages.empty():
            told[visit.next()[1]] += 1
    del told[texts[0]]
    assert set(told.values()) == {1}
    assert texts[-1] in told
    assert len(told) > 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_with_a_word_to_the_hub(hub, tmp_path, number):
    with RunningAgent(tmp_path / "a", hub.url) as agent:
        visit = hub.visit()
        visit.line()
        own = children(agent.process.pid)
        agent.process.send_signal(number)
        assert agent.process.wait(PATIENCE_SECONDS) == 0
        assert visit.closed.wait(PATIENCE_SECONDS)
        assert visit.close_code == 1001
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in own))
        assert "Traceback" not in agent.words


def test_it_ends_at_once_while_a_hub_hangs(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with RunningAgent(tmp_path / "a", f"http://127.0.0.1:{port}") as agent:
            link, _ = listener.accept()
            assert link.recv(1000).startswith(b"GET /api/v1/ingest")
            assert agent.end() == 0
            link.close()


def test_it_stays_small(hub, tmp_path):
    """Over http neither OpenSSL nor the HTTP client is loaded."""
    with RunningAgent(tmp_path / "a", hub.url) as agent:
        hub.visit().line()
        mapped = Path(f"/proc/{agent.process.pid}/maps").read_text("utf-8")
        assert "libssl" not in mapped
        assert "_hashlib" not in mapped
        assert "_random" not in mapped


def test_nothing_is_printed_and_the_log_is_short(hub, tmp_path):
    with RunningAgent(tmp_path / "a", hub.url) as agent:
        visit = hub.visit()
        visit.line()
        # On a busy machine there may be a line that was taken before the connection was there.
        said = agent.words
        assert said.count(" connected to ") == 1
        for _ in range(10):
            visit.line()
        assert [
            line for line in agent.words.removeprefix(said).splitlines() if "told the hub what it missed" not in line
        ] == []
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["log"]
        assert agent.end() == 0


@pytest.mark.parametrize("what", [b"\x89\x7d" + b"p" * 125, b"\x81\x00"], ids=["pings", "messages"])
def test_a_hub_that_floods_is_left(what, hub, tmp_path):
    """It never reads the pongs either, which must not pile up on the node."""
    with RunningAgent(tmp_path / "a", hub.url) as agent:
        visit = hub.visit()
        visit.line()
        hub.reads.clear()
        with contextlib.suppress(OSError):
            for _ in range(200):
                visit.send(what * 1000)
        agent.says("the hub sends more than 100 frames a second; trying on")
        hub.reads.set()
        # It comes back, and goes on.
        assert hub.visit().line()["node"] == "n1"
