"""Another user of the hub's machine listens where commands might look for the hub, and wants their keys."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from gpulse.auth import local_socket
from gpulse.cli import client
from gpulse.errors import HubError
from tests.cli.hub import GPULSE
from tests.hub.page_client import PageClient
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")


class Impostor:
    """Listens at an address and remembers every byte; answers every request with `answer`."""

    def __init__(self, host: str, port: int, answer: bytes = b"{}"):
        self.seen: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.seen.append(f"{self.path} {self.headers}")
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_POST(self) -> None:
                outer.seen.append(self.rfile.read(int(self.headers["Content-Length"] or 0)).decode())
                self.do_GET()

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name is given
                """Nobody reads it."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

        self._server = Server((host, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> "Impostor":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def environment(home: Path, **more: str) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("GPULSE", "XDG"))}
    return {**usual, "HOME": str(home), **more}


def gpulse(home: Path, *words: str, stdin: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*GPULSE, *words],
        env=environment(home, **more),
        cwd=home,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "gpulse.toml").write_text('hub.local = false\naccess.anonymous = "none"\n')
    return tmp_path


@contextmanager
def started(home: Path, port: int) -> Iterator[RunningHub]:
    with RunningHub(
        "up", "--data", str(home / "data"), directory=home, port=port, environment=environment(home)
    ) as hub:
        hub.until(lambda: httpx.get(hub.url + "healthz").status_code == 200)
        yield hub


def login_key(hub: RunningHub, home: Path) -> str:
    """As `gpulse login` keeps one."""
    line = hub.process.stdout.readline().decode()  # type: ignore[union-attr] # it has a pipe
    with PageClient(hub.url) as browser:
        code = line.partition("#/sign-in/")[2].strip()
        browser.post("api/v1/session/link", json={"code": code}).raise_for_status()
        made = browser.post("api/v1/me/keys", json={"label": "x", "scopes": ["read", "write"]}).json()["key"]
    kept = home / ".config/gpulse/keys.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({hub.url.rstrip("/"): made}))
    return str(made)


def test_the_other_loopback_is_the_hubs_too(home: Path):
    port = free_port()
    with started(home, port) as hub:
        with pytest.raises(OSError, match="in use"):
            Impostor("::1", port)
        data = ("--data", str(home / "data"))
        for url in (f"http://127.0.0.1:{port}", f"http://[::1]:{port}", f"http://localhost:{port}"):
            assert gpulse(home, "nodes", "--hub", url, *data).returncode == 0, url
        assert hub.end() == 0


def test_a_hub_does_not_start_beside_an_impostor(home: Path):
    port = free_port()
    with Impostor("::1", port) as impostor:
        told = gpulse(home, "up", "--port", str(port), "--data", str(home / "data"))
        assert told.returncode != 0
        assert f"port {port} on [::1] is in use by another program" in told.stderr
        assert impostor.seen == []


def test_the_hub_was_killed_and_somebody_took_its_port(home: Path):
    port = free_port()
    with started(home, port) as hub:
        data = ("--data", str(home / "data"), "--hub", hub.url)
        assert gpulse(home, "nodes", *data).returncode == 0
        hub.process.send_signal(signal.SIGKILL)
        hub.process.wait(10)
        with Impostor("127.0.0.1", port) as impostor:
            gpulse(home, "nodes", *data)
            gpulse(home, "reserve", "x:0", "--for", "1h", *data)
    assert impostor.seen
    assert not [one for one in impostor.seen if "authorization" in one.lower() or "gpk_" in one]


@pytest.mark.parametrize("answer", [b"{}", b'{"proof":"%s"}' % (64 * b"0"), b'{"proof":null}', b"<html>", b""])
def test_a_key_of_login_is_not_sent_to_who_took_the_port(home: Path, answer: bytes):
    port = free_port()
    with started(home, port) as hub:
        key, url = login_key(hub, home), hub.url
        assert gpulse(home, "nodes", "--hub", url).returncode == 0
        assert hub.end() == 0
    with Impostor("127.0.0.1", port, answer) as impostor:
        for words in (("nodes",), ("reserve", "x:0", "--for", "1h"), ("login", "--name", "me")):
            told = gpulse(home, *words, "--hub", url, stdin="my password\n")
            assert told.returncode == 2
            assert "The key was not sent" in told.stderr
            told = gpulse(home, *words, "--hub", url, stdin="my password\n", GPULSE_KEY=key)
            assert told.returncode == 2
        assert impostor.seen
        secret = key.rpartition("_")[2]
        assert not [one for one in impostor.seen if secret in one or "password" in one or "uthorization" in one]
    # It works afterwards, for its owner alone.
    with started(home, port) as hub:
        assert gpulse(home, "nodes", "--hub", url).returncode == 0


def test_a_recorded_proof_proves_nothing(home: Path):
    port = free_port()
    with started(home, port) as hub:
        key, url = login_key(hub, home), hub.url

        def proof(identity: str) -> httpx.Response:
            # By whatever name: it tells nothing.
            headers = {"Host": "any.example"}
            return httpx.get(f"{url}api/v1/keys/{identity}/proof", params={"nonce": 64 * "a"}, headers=headers)

        recorded, unknown = proof(key.split("_")[1]), proof(12 * "0")
        assert (recorded.status_code, unknown.status_code) == (200, 200)
        assert unknown.json().keys() == recorded.json().keys(), "ids of keys can't be found out"
        assert len(unknown.json()["proof"]) == len(recorded.json()["proof"])
        assert hub.end() == 0
    with Impostor("127.0.0.1", port, recorded.content) as impostor:
        assert gpulse(home, "nodes", "--hub", url).returncode == 2
        assert not [one for one in impostor.seen if "uthorization" in one]


def test_a_proof_that_is_passed_on_once_the_hub_is_back(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Somebody takes the port, accepts a connection, lets the hub have its port again and asks it for the proof."""
    monkeypatch.setattr(client, "_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    port = free_port()
    with started(home, port) as hub:
        key, url = login_key(hub, home), hub.url
        assert hub.end() == 0
    asking = client.Hub(url, None, home / "no hub").with_key(key)
    with ThreadPoolExecutor() as threads:
        with socket.create_server(("127.0.0.1", port)) as listener:
            told = threads.submit(asking.get, "/nodes")
            victim, _ = listener.accept()
        with victim, started(home, port), socket.create_connection(("127.0.0.1", port)) as real:
            victim.settimeout(PATIENCE_SECONDS)
            real.sendall(victim.recv(65536))
            answer = b""
            while not answer.endswith(b"}"):
                answer += real.recv(65536)
            victim.sendall(answer)
            got = victim.recv(65536).decode()
    assert key.rpartition("_")[2] not in got
    with pytest.raises(HubError, match="was started after this connection was made"):
        told.result()


def test_an_older_hub_is_told_of(home: Path):
    """It has no proof to give, and a key for local commands instead of a socket."""
    old = b'{"error":{"code":"not_found","message":"no such address"}}'
    (home / "data").mkdir()

    class Old(Impostor):
        def __init__(self) -> None:
            super().__init__("127.0.0.1", free_port(), old)
            self.url = f"http://127.0.0.1:{self._server.server_port}"
            handler = self._server.RequestHandlerClass
            handler.send_response = lambda own, _status: BaseHTTPRequestHandler.send_response(own, self.status)  # type: ignore[method-assign] # it is ours
            self.status = 404

    with Old() as hub:
        told = gpulse(home, "nodes", "--hub", hub.url, GPULSE_KEY="gpk_000000000000_" + 48 * "0")
        assert "is older than this gpulse and can't prove that it is the hub, so the key was not sent" in told.stderr
        assert not [one for one in hub.seen if "uthorization" in one]


def by_nobody(work: Callable[[], str]) -> str:
    """Return what it returns, or how it fails, in a process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            told = work()
        except OSError as error:
            told = repr(error)
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told_by_child:
        answer = told_by_child.read()
    os.waitpid(child, 0)
    return answer


def ask_me(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(path)
        connection.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return connection.makefile("rb").read().decode()


@as_root
def test_another_user_at_the_hubs_socket_is_nobody(home: Path):
    """Whatever the mode of the file has become."""
    with started(home, free_port()) as hub:
        (record,) = (home / "data").glob("local-*")
        path = Path(record.read_text().splitlines()[0])
        assert len(os.fsencode(path)) <= 100
        assert path.stat().st_mode & 0o777 == 0o600
        # The folders above are another user's, too: reached by a descriptor that was opened before.
        folder = os.open(path.parent, os.O_PATH)
        reached = f"/proc/self/fd/{folder}/{path.name}"
        assert '"way":"local"' in ask_me(reached)
        assert by_nobody(lambda: ask_me(reached)).startswith("PermissionError")
        path.chmod(0o777)
        path.parent.chmod(0o711)
        refused = by_nobody(lambda: ask_me(reached))
        os.close(folder)
        assert refused == "" or refused.startswith(("ConnectionResetError", "BrokenPipeError"))
        assert hub.get("healthz")["status"] == "ok"


@as_root
def test_another_users_socket_is_not_talked_to(tmp_path: Path):
    """As where a hub was killed and its socket in /tmp was made again by somebody else."""
    path, url = tmp_path / "s", "http://127.0.0.1:7070"
    local_socket.place(tmp_path, url).write_text(f"{path}\n{url}/\n")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        # Who listens counts, not who made the file.
        by_nobody(lambda: str(listener.listen()))
        assert local_socket.connect(tmp_path, url) is None
        listener.settimeout(20)
        with listener.accept()[0] as came:
            assert came.recv(9999) == b"", "nothing was sent"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        own = local_socket.connect(tmp_path, url)
        assert own is not None
        own.close()


def test_a_path_that_is_too_long(home: Path, tmp_path: Path):
    """Then the socket is in a folder of its own, and goes with the hub."""
    deep = home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    where = {"XDG_RUNTIME_DIR": str(tmp_path / ("r" * 90))}
    with RunningHub("up", "--data", str(deep), directory=home, environment=environment(home, **where)) as hub:
        hub.until(lambda: list(deep.glob("local-*")))
        (record,) = deep.glob("local-*")
        path = Path(record.read_text().splitlines()[0])
        assert len(os.fsencode(path)) <= 100
        hub.until(lambda: gpulse(home, "nodes", "--data", str(deep), "--hub", hub.url).returncode == 0)
        assert hub.end() == 0
    assert not path.exists()
    assert not path.parent.exists()
    assert not record.exists()


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A short path, as /run/user/1000 is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)


def test_in_the_runtime_folder(home: Path, runtime: Path):
    own = environment(home, XDG_RUNTIME_DIR=str(runtime))
    with RunningHub("up", "--data", str(home / "data"), directory=home, environment=own) as hub:
        hub.until(lambda: list((runtime / "gpulse").glob("*.sock")))
        # Who asks may have another one, as in cron.
        hub.until(lambda: gpulse(home, "nodes", "--data", str(home / "data"), "--hub", hub.url).returncode == 0)
        assert hub.end() == 0
    assert list((runtime / "gpulse").iterdir()) == []


def test_what_came_through_a_proxy_is_not_local(home: Path):
    """Somebody may lead a proxy of their own to the socket."""
    with started(home, free_port()):
        (record,) = (home / "data").glob("local-*")
        path = record.read_text().splitlines()[0]
        with httpx.Client(transport=httpx.HTTPTransport(uds=path), base_url="http://127.0.0.1") as client:
            assert client.get("/api/v1/me").json()["way"] == "local"
            assert client.get("/api/v1/me", headers={"X-Forwarded-For": "192.0.2.1"}).json()["way"] == "anonymous"
            assert client.get("/api/v1/me", headers={"Origin": "http://evil.example"}).json()["way"] == "anonymous"


def test_a_link_of_before_ends_with_the_next_start(home: Path):
    """Who took the port meanwhile may have got its code from a browser."""
    port = free_port()
    codes = []
    for _ in range(2):
        with started(home, port) as hub:
            line = hub.process.stdout.readline().decode()  # type: ignore[union-attr] # it has a pipe
            codes.append(line.partition("#/sign-in/")[2].strip())
            if len(codes) == 2:
                with PageClient(hub.url) as browser:
                    assert browser.post("api/v1/session/link", json={"code": codes[0]}).status_code == 401
                    assert browser.post("api/v1/session/link", json={"code": codes[1]}).status_code == 200
            assert hub.end() == 0
