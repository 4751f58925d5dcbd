"""Somebody between people or agents and the hub: another certificate, plain http in its place, a way to http.

Whatever they try, no token, key or password reaches them.
"""

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import make
from tests.eavesdropper import Eavesdropper
from tests.hub.running import GPULSE
from tests.interpreters import interpreters
from tests.system.agents import QUICK_RETRY, Agent, until, write_agent

TOKEN = "gpn_0123456789ab_" + "5ec" * 16
JOIN = "gpj_0123456789ab_" + "5ec" * 16
KEY = "gpk_0123456789ab_" + "5ec" * 16
PASSWORD = "a password 5ec5ec of a person"  # noqa: S105 - of nobody
SECRETS = (b"5ec5ec",)
OLDEST = next(iter(interpreters().values()))


class Plain:
    """Listens without TLS, writes down what comes, and answers with `says`; with `context` by TLS."""

    def __init__(self, says: bytes = b"", context: ssl.SSLContext | None = None):
        self.says = says
        self.heard = b""
        self.visits = 0
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "Plain":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                link, _who = self._listener.accept()
            except OSError:
                return
            self.visits += 1
            with contextlib.suppress(OSError), link:
                link.settimeout(3)
                speaking = self._context.wrap_socket(link, server_side=True) if self._context else link
                self.heard += speaking.recv(1 << 16)
                time.sleep(0.1)
                speaking.settimeout(0.2)
                with contextlib.suppress(TimeoutError):
                    self.heard += speaking.recv(1 << 16)
                speaking.sendall(self.says)
                speaking.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_agent(tmp_path_factory.mktemp("agent") / "agent.pyz", *QUICK_RETRY)


@contextlib.contextmanager
def agent(
    home: Path, hub: str, program: Path, *options: str, token: str = TOKEN, python: str = OLDEST
) -> Iterator[Agent]:
    nobody = {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": "/nonexistent"}
    options = ("--interval", "0.5", *options)
    one = Agent(home, hub, "n1", *options, program=[python, "-S", program], token=token, environment=nobody)
    try:
        yield one
    finally:
        one.kill()


def gpulse(home: Path, *words: str, told: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    full = {name: value for name, value in os.environ.items() if not name.startswith(("GPULSE_", "SSL_CERT"))}
    full |= {"HOME": str(home), **environment}
    ran = subprocess.run(
        [GPULSE, *words], env=full, input=told, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


def nothing_secret(heard: bytes) -> None:
    assert not [secret for secret in SECRETS if secret in heard], heard


def redirect(status: int, where: str) -> bytes:
    return f"HTTP/1.1 {status} Moved\r\nLocation: {where}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize("python", [OLDEST, sys.executable], ids=["oldest", "this"])
@pytest.mark.parametrize("token", [TOKEN, JOIN], ids=["node", "join"])
def test_an_agent_and_another_authority(tmp_path: Path, program: Path, token: str, python: str):
    wanted, stranger = make(), make()
    certificate, _key = wanted.write(tmp_path / "wanted")
    with (
        Eavesdropper(stranger.server(tmp_path / "stranger")) as listening,
        agent(tmp_path / "h", listening.url, program, "--ca", str(certificate), token=token, python=python) as one,
    ):
        one.says("certificate", 30)
        until(lambda: listening.visits >= 1, 30)
    assert listening.heard == b""


@pytest.mark.parametrize("token", [TOKEN, JOIN], ids=["node", "join"])
def test_an_agent_and_plain_http_in_the_place_of_https(tmp_path: Path, program: Path, token: str):
    """What it hears is the beginning of TLS, and nothing after it."""
    with (
        Plain(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as listening,
        agent(
            tmp_path / "h",
            f"https://127.0.0.1:{listening.port}",
            program,
            "--fingerprint",
            make().fingerprint,
            token=token,
        ),
    ):
        until(lambda: listening.visits >= 2, 60)
    assert b"\x16\x03" in listening.heard
    nothing_secret(listening.heard)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("token", [TOKEN, JOIN], ids=["node", "join"])
def test_an_agent_that_is_led_to_http(tmp_path: Path, program: Path, token: str, status: int):
    """By the hub it trusts: the token goes there, and nowhere else."""
    own = make()
    with Plain() as elsewhere, Plain(context=own.server(tmp_path / "own")) as hub:
        hub.says = redirect(status, f"http://127.0.0.1:{elsewhere.port}/ingest")
        with agent(
            tmp_path / "h", f"https://127.0.0.1:{hub.port}", program, "--fingerprint", own.fingerprint, token=token
        ):
            until(lambda: hub.visits >= 2, 60)
    assert token.encode() in hub.heard, "it trusted this one"
    assert (elsewhere.visits, elsewhere.heard) == (0, b"")


COMMANDS = [("nodes",), ("free",), ("reserve", "gpu1:0", "--for", "1h")]


@pytest.mark.parametrize("words", COMMANDS, ids=str)
def test_commands_and_another_certificate(tmp_path: Path, words: tuple[str, ...]):
    with Eavesdropper(make().server(tmp_path / "s")) as listening:
        for known in ({}, {"GPULSE_FINGERPRINT": make().fingerprint}):
            ran = gpulse(tmp_path / "h", *words, "--hub", listening.url, GPULSE_KEY=KEY, **known)
            assert ran.returncode != 0
    assert listening.visits >= 2
    assert listening.heard == b""


@pytest.mark.parametrize("words", COMMANDS, ids=str)
def test_commands_and_plain_http_in_the_place_of_https(tmp_path: Path, words: tuple[str, ...]):
    with Plain(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as listening:
        hub = f"https://127.0.0.1:{listening.port}"
        ran = gpulse(tmp_path / "h", *words, "--hub", hub, GPULSE_KEY=KEY, GPULSE_FINGERPRINT=make().fingerprint)
        assert ran.returncode != 0
    assert listening.visits >= 1
    nothing_secret(listening.heard)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("words", COMMANDS, ids=str)
def test_commands_that_are_led_to_http(tmp_path: Path, words: tuple[str, ...], status: int):
    own = make()
    with (
        Plain(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") as elsewhere,
        Plain(context=own.server(tmp_path)) as hub,
    ):
        hub.says = redirect(status, f"http://127.0.0.1:{elsewhere.port}/api/v1/nodes")
        address = f"https://127.0.0.1:{hub.port}"
        ran = gpulse(tmp_path / "h", *words, "--hub", address, GPULSE_KEY=KEY, GPULSE_FINGERPRINT=own.fingerprint)
        assert ran.returncode != 0
        assert hub.visits >= 1
    nothing_secret(elsewhere.heard)
    assert KEY.encode() in hub.heard, "it trusted this one"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_signing_in_that_is_led_to_http(tmp_path: Path, status: int):
    own = make()
    with (
        Plain(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") as elsewhere,
        Plain(context=own.server(tmp_path)) as hub,
    ):
        hub.says = redirect(status, f"http://127.0.0.1:{elsewhere.port}/api/v1/session")
        address = f"https://127.0.0.1:{hub.port}"
        for words, told in ((("--name", "ann"), PASSWORD), ((), KEY)):
            ran = gpulse(
                tmp_path / "h", "login", "--hub", address, *words, told=told + "\n", GPULSE_FINGERPRINT=own.fingerprint
            )
            assert ran.returncode != 0, ran.stdout
    assert b"5ec5ec" in hub.heard, "it trusted this one"
    nothing_secret(elsewhere.heard)
