"""`gpulse agent serve`: who may ask, what they get, how little it does when nobody asks, and clients that mean ill."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measure import cpu_seconds, family, pss_bytes
from gpulse_probe import http_server
from gpulse_probe.http_server import Response, Server
from gpulse_probe.outlets.serve import ASKED_SECONDS, Answers, Newest
from gpulse_probe.request_parser import RequestParser
from tests.conform import conforms
from tests.fake_nvml import Process, h100_node
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.pushing import until
from tests.probe.running import RunningProbe
from tests.probe.serving import TOKEN, Serving


@pytest.fixture
def serving(fake, tmp_path, pids):
    fake.describe(h100_node(2, [Process(pids[0], gpu=1, memory="5GiB", sm=40)], moving=True))
    with Serving(tmp_path, fake.environment(), "--node", "gpu07", "--interval", "0.2") as one:
        yield one


def run(*options, **environment):
    command = [sys.executable, "-m", "gpulse_probe", "serve", *options]
    clean = {name: value for name, value in os.environ.items() if name != "GPULSE_TOKEN"}
    ran = subprocess.run(
        command, env={**clean, **environment}, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return ran.returncode, ran.stderr


# Who may ask.


def test_it_does_not_start_without_a_token(tmp_path):
    code, said = run()
    assert code == 2
    assert "a token is needed in GPULSE_TOKEN" in said
    assert "make one with:" in said
    code, said = run("--token-file", str(tmp_path / "none"))
    assert code == 2
    assert "No such file" in said
    (tmp_path / "empty").write_text("\n")
    assert run("--token-file", str(tmp_path / "empty"))[0] == 2
    for bad in ("8888", "two words of a long token"):
        code, said = run(GPULSE_TOKEN=bad)
        assert code == 2
        assert "not one word of 16 characters or more" in said
        assert bad not in said


def test_the_way_it_says_to_make_a_token_works(tmp_path):
    _, said = run()
    command = said.partition("make one with: ")[2].partition(", for --token-file")[0].replace("FILE", "token")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    made = tmp_path / "token"
    assert len(made.read_text().strip()) == 48
    assert made.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "\u00fc" * 32])
def test_others_are_told_nothing(serving, token):
    answer = serving.ask("/snapshot", token=token)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "no_token"
    assert "ETag" not in answer.headers
    answer = serving.status({"passwd": token})
    assert answer.status == 403
    assert answer.json()["error"]["code"] == "wrong_password"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 60000, b'"passwd"'])
def test_a_body_that_is_none(serving, body):
    assert serving.ask("/get-status", "POST", body).status == 400


def test_a_password_that_no_token_can_be(serving):
    for password in (8888, None, [], "\ud800"):
        assert serving.status({"passwd": password}).status == 403


JSON = st.recursive(
    st.one_of(st.none(), st.floats(), st.text(st.characters(), max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.just("passwd"), inner, max_size=1)),
    max_leaves=5,
)


@given(
    st.sampled_from(["GET /snapshot", "GET /snapshot?base", "POST /get-status", "GET /healthz"]),
    st.binary(max_size=30).map(lambda value: value.translate(None, bytes([*range(32), 127]))),
    st.one_of(st.binary(max_size=30), JSON.map(lambda value: json.dumps(value).encode())),
)
def test_nothing_that_strangers_say_ends_it(first, token, body):
    parser = RequestParser()
    head = b"%s HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (first.encode(), token, len(body))
    parser.feed(head + body)
    response = Answers(None, TOKEN.encode())(parser.next())
    assert response.status in ({200} if "healthz" in first else {400, 401, 403})
    assert not response.trusted


def test_the_token_may_come_by_the_environment():
    clean = {**os.environ, "GPULSE_TOKEN": TOKEN}
    command = [sys.executable, "-m", "gpulse_probe", "serve", "--port", "0"]
    process = subprocess.Popen(command, env=clean, stderr=subprocess.PIPE)
    try:
        assert process.stderr
        assert b"listening on http://127.0.0.1:" in process.stderr.readline()
    finally:
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
        process.communicate()


def test_a_port_that_is_taken_is_told_of(serving, tmp_path):
    code, said = run("--token-file", str(tmp_path / "token"), "--port", str(serving.port))
    assert code == 1
    assert f"cannot listen on 127.0.0.1 port {serving.port}: Address already in use" in said
    code, said = run("--token-file", str(tmp_path / "token"), "--host", "no.such.host.invalid")
    assert code == 1
    assert "cannot listen on no.such.host.invalid" in said


# What they get.


def test_health_needs_no_token(serving):
    answer = serving.ask("/healthz", token=None)
    assert (answer.status, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/", "/snapshot/", "/../etc/passwd", "/metrics"])
def test_nothing_else_is_there(serving, path):
    assert serving.ask(path).status == 404


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [("/snapshot", "POST", "GET"), ("/get-status", "GET", "POST"), ("/healthz", "HEAD", "GET")],
)
def test_wrong_methods(serving, path, method, allowed):
    answer = serving.ask(path, method)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)


def test_a_snapshot_of_now(serving):
    first = serving.ask("/snapshot")
    assert first.status == 200
    assert first.headers["Content-Type"] == "application/json"
    snapshot = first.json()
    assert conforms("Snapshot", snapshot) == []
    assert (snapshot["node"], len(snapshot["gpus"])) == ("gpu07", 2)
    seq = snapshot["seq"]
    while seq < snapshot["seq"] + 3:
        later = serving.ask("/snapshot").json()
        assert later["seq"] >= seq
        seq = later["seq"]
    assert conforms("Snapshot", later) == []
    assert later["time"] > snapshot["time"]
    assert later["gpus"][0]["energy_joules_total"] > snapshot["gpus"][0]["energy_joules_total"]


def test_lines_for_a_hub(serving):
    """The whole Snapshot first, then updates of it, and 304 while there is nothing new."""
    first = serving.ask("/snapshot?base=none")
    assert first.headers["Content-Type"] == "application/x-ndjson"
    base, tag = first.headers["X-Gpulse-Base"], first.headers["ETag"]
    whole = json.loads(first.body.splitlines()[0])
    assert conforms("Snapshot", whole) == []
    statuses = set()
    updates = []
    while len(updates) < 5:
        answer = serving.ask(f"/snapshot?base={base}", If_None_Match=tag)
        statuses.add(answer.status)
        assert answer.headers["X-Gpulse-Base"] == base
        if answer.status == 304:
            assert answer.body == b""
            continue
        [line] = answer.body.splitlines()
        update = json.loads(line)
        assert conforms("Update", {name: update[name] for name in ("update", "seq", "time")}) == []
        assert update["update"] == whole["seq"]
        assert answer.headers["ETag"] == f'"{base.rpartition("-")[0]}-{update["seq"]}"'
        tag = answer.headers["ETag"]
        updates.append(update["seq"])
    assert statuses == {200, 304}
    assert updates == sorted(set(updates))
    other = serving.ask(f"/snapshot?base={base}x").body.splitlines()
    assert json.loads(other[0]) == whole
    assert json.loads(other[1])["update"] == whole["seq"]


def test_another_process_has_other_names(fake, tmp_path):
    fake.describe(h100_node(1))
    names = set()
    for _ in range(2):
        with Serving(tmp_path, fake.environment()) as one:
            names.add(one.ask("/snapshot").headers["X-Gpulse-Base"])
    assert len(names) == 2


@pytest.mark.parametrize("version", interpreters())
def test_the_old_status_on_every_python(version, fake, tmp_path, pids):
    fake.describe(h100_node(2, [Process(pids[0], gpu=1, memory="5GiB", sm=40)]))
    with Serving(tmp_path, fake.environment(), "--node", "gpu07", python=interpreters()[version]) as one:
        status = one.status({"passwd": TOKEN}).json()
        assert one.ask("/snapshot").json()["probe"]["python"].startswith(version)
    assert set(status) == {"hostname", "last_update", "ips", "gpus", "status", "version"}
    assert status["hostname"] == "gpu07"
    if status["gpus"]:
        # Where this Python has NVIDIA's binding.
        assert [gpu["tot_mem"] for gpu in status["gpus"]] == [81559, 81559]
        assert status["gpus"][1]["users"][0]["pid"] == pids[0]


def test_the_documented_request(serving):
    """As the document of the old monitor asks, by the library it names; httpx sends what that does."""
    import httpx

    status = httpx.post(f"http://127.0.0.1:{serving.port}/get-status", json={"passwd": TOKEN}, trust_env=False).json()
    assert [gpu["index"] for gpu in status["gpus"]] == [0, 1]
    assert status["gpus"][1]["users"][0]["mem(MiB)"] == 5120


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_and_its_children(serving, number):
    serving.ask("/snapshot")
    offspring = serving.children()
    assert offspring
    serving.process.send_signal(number)
    assert serving.process.wait(PATIENCE_SECONDS) == 0
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in offspring))


# How little it does.


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_it_reads_the_node_only_while_somebody_asks():
    clock = Clock()
    taken = []

    def next_line():
        taken.append(clock.now)
        return b"{}" if len(taken) == 1 else b'{"update":0}'

    newest = Newest(next_line, 1.0, clock)
    for _ in range(10):
        assert newest.wait() is None
        newest.look()
        clock.now += 1
    assert taken == []
    newest.asked()
    assert taken == [1010.0]
    clock.now += 0.5
    newest.asked()
    assert taken == [1010.0], "what was taken just now will do"
    assert newest.wait() == 0.5
    for _ in range(200):
        clock.now += newest.wait() if newest.wait() is not None else 1.0
        newest.look()
    assert taken == [1010.0 + second for second in range(int(ASKED_SECONDS) + 1)]
    assert newest.wait() is None
    clock.now += 3600
    newest.asked()
    assert taken[-1] == clock.now, "after a pause it is read anew"


def test_ticks_that_were_missed_are_left_out():
    clock = Clock()
    taken = []

    def slow():
        taken.append(clock.now)
        clock.now += 2.5 if len(taken) == 2 else 0.0
        return b"{}"

    newest = Newest(slow, 1.0, clock)
    newest.asked()
    for _ in range(4):
        clock.now += newest.wait()
        newest.look()
    assert taken == [1000.0, 1001.0, 1004.0, 1005.0, 1006.0]


def test_at_rest_it_costs_nothing(serving):
    assert serving.ask("/healthz", token=None).status == 200
    assert serving.children() == [], "nobody has asked: the driver is not touched"
    before = cpu_seconds([serving.process.pid])
    time.sleep(1.0)
    assert cpu_seconds([serving.process.pid]) - before < 0.02


def test_memory_is_near_that_of_the_stream(serving, fake):
    with RunningProbe(fake.environment(), "--updates", "--interval", "0.2") as probe:
        for _ in range(5):
            probe.next()
            serving.ask("/snapshot?base=x")
        stream = pss_bytes(family(probe.process.pid))
        served = pss_bytes(family(serving.process.pid))
    assert served - stream < 3 << 20, f"{served} against {stream} bytes"


# Clients that mean ill.


def read_all(connection):
    connection.settimeout(20)
    received = b""
    try:
        while piece := connection.recv(1 << 16):
            received += piece
    except ConnectionResetError:
        pass
    return received


def test_a_connection_is_kept_and_questions_may_come_together(serving):
    one = f"GET /snapshot HTTP/1.1\r\nAuthorization: bearer {TOKEN}\r\n"
    with serving.connect() as connection:
        connection.sendall((one + "\r\n").encode() * 3 + (one + "Connection: close\r\n\r\n").encode())
        received = read_all(connection)
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert received.count(b"Connection: keep-alive") == 3


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1500 + b"\r\n", 431),
        (b"POST /get-status HTTP/1.1\r\nContent-Length: 10000000000\r\n\r\n" + b"x" * 300000, 413),
        (b"POST /get-status HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 411),
    ],
)
def test_what_is_no_request_is_refused_in_words(serving, sent, status):
    with serving.connect() as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        received = read_all(connection)
    assert received.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert serving.ask("/healthz").status == 200


def test_strangers_who_hold_places_do_not_keep_the_hub_out(serving):
    hub = serving.connect()
    question = f"GET /snapshot?base=x HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    hub.sendall(question)
    assert hub.recv(100).startswith(b"HTTP/1.1 200 ")
    strangers = [serving.connect() for _ in range(3 * http_server.MOST_CONNECTIONS)]
    try:
        for stranger in strangers[::2]:
            try:
                stranger.sendall(b"GET /snapshot HTTP/1.1\r\nX: ")
            except OSError:
                continue
        assert serving.ask("/snapshot").status == 200, "a new one is let in"
        opened = list(Path(f"/proc/{serving.process.pid}/fd").iterdir())
        assert len(opened) < http_server.MOST_CONNECTIONS + 20
        hub.sendall(question)
        hub.settimeout(20)
        while b"HTTP/1.1 200 OK" not in (received := hub.recv(1 << 16)):
            assert received
    finally:
        for one in (hub, *strangers):
            one.close()


class Pair:
    """A Server in this process, whose clock the test moves, and one client of it."""

    def __init__(self, answer):
        self.clock = Clock()
        listener = socket.create_server(("127.0.0.1", 0))
        self.server = Server(listener, answer, self.clock)
        self.client = socket.create_connection(listener.getsockname(), 5)
        self.client.settimeout(5)
        self.server.turn(5)

    def later(self, seconds):
        """How many are connected so much later."""
        self.clock.now += seconds
        self.server.turn(0)
        return len(self.server._connections)

    def close(self):
        self.client.close()
        self.server.close()


@pytest.fixture
def pair():
    made = []

    def make(answer=lambda _request: Response(200, b"x", [], False)):
        made.append(Pair(answer))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_who_asks_nothing_is_let_go_of(pair):
    one = pair()
    assert one.later(9.9) == 1
    assert one.later(0.2) == 0


@pytest.mark.parametrize("drop", [b"G", b"\r\n"])
def test_who_asks_drop_by_drop_is_let_go_of(pair, drop):
    one = pair()
    for _ in range(4):
        one.client.sendall(drop)
        one.server.turn(5)
        assert one.later(2.4) == 1
    one.client.sendall(drop)
    one.server.turn(5)
    assert one.later(2.4) == 0


def test_who_is_done_may_stay_for_a_while(pair):
    one = pair()
    for _ in range(3):
        one.client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        one.server.turn(5)
        assert one.client.recv(100).endswith(b"\r\n\r\nx")
        assert one.later(http_server.IDLE_SECONDS - 1) == 1
    assert one.later(2) == 0


def test_who_does_not_read_is_let_go_of(pair):
    one = pair(lambda _request: Response(200, b"x" * (32 << 20), [], True))
    one.client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    one.server.turn(5)
    assert one.later(http_server.ANSWER_SECONDS - 1) == 1
    one.server.turn(0)
    assert one.later(1.1) == 0


def test_without_descriptors_it_waits_instead_of_spinning(pair, monkeypatch):
    one = pair()

    class Exhausted:
        def accept(self):
            raise OSError(24, "Too many open files")

        def fileno(self):
            return listener.fileno()

        def close(self):
            listener.close()

    listener = one.server._listener
    monkeypatch.setattr(one.server, "_listener", Exhausted())
    with socket.create_connection(listener.getsockname(), 5):
        one.server.turn(5)
        began = time.monotonic()
        one.server.turn(0.2)
        assert time.monotonic() - began >= 0.2
        monkeypatch.setattr(one.server, "_listener", listener)
        assert one.later(1.0) == 2
