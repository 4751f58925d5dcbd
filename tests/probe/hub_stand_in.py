"""A hub as an agent sees it, by real sockets and the `websockets` package, with many ways to misbehave."""

import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

JSON = "application/json"


def http(status: int, content: bytes = b"", *headers: str, kind: str = JSON) -> bytes:
    """An HTTP answer as bytes."""
    lines = [f"HTTP/1.1 {status} Words", f"Content-Type: {kind}", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + content


def refusal(status: int, code: str, message: str, *headers: str) -> bytes:
    error = {"error": {"code": code, "message": message, "detail": {}}}
    return http(status, json.dumps(error).encode(), *headers)


class Visit:
    """One WebSocket connection: what came, and what may be done to it."""

    def __init__(self, hub: "StandInHub", link: socket.socket, head: bytes):
        self.head = head.decode("latin-1")
        self.headers = dict(line.split(": ", 1) for line in self.head.split("\r\n")[1:] if line)
        self.messages: queue.Queue[tuple[Opcode, bytes]] = queue.Queue()
        self.opened_at = time.monotonic()
        self.closed = threading.Event()
        self.pings = 0
        self.pongs: list[bytes] = []
        self._hub = hub
        self._link = link
        self._protocol = ServerProtocol(max_size=None)
        self._lock = threading.Lock()

    def run(self) -> None:
        self._protocol.receive_data(self.head.encode("latin-1") + b"\r\n\r\n")
        (request,) = self._protocol.events_received()
        assert isinstance(request, Request)
        self._protocol.send_response(self._protocol.accept(request))
        self._protocol.send_text(json.dumps(self._hub.hello).encode())
        self._flush()
        self._hub.visits.put(self)
        with suppress(OSError):
            while self._hub.reads.wait(60):
                data = self._link.recv(1 << 16)
                with self._lock:
                    self._protocol.receive_data(data) if data else self._protocol.receive_eof()
                    events = self._protocol.events_received()
                if self._hub.answers_pings:
                    self._flush()
                for frame in events:
                    self.pings += frame.opcode is Opcode.PING
                    if frame.opcode is Opcode.PONG:
                        self.pongs.append(bytes(frame.data))
                    if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
                        self.messages.put((frame.opcode, bytes(frame.data)))
                if not data or self._protocol.state is State.CLOSED:
                    break
        self.close_code = self._protocol.close_rcvd.code if self._protocol.close_rcvd else None
        self.closed.set()

    def next(self, seconds: float = PATIENCE_SECONDS) -> tuple[Opcode, bytes]:
        return self.messages.get(timeout=seconds)

    def line(self, kind: Opcode = Opcode.BINARY, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """The next live line, or late line, whatever else comes before it."""
        end = time.monotonic() + seconds
        while True:
            opcode, data = self.next(max(0.0, end - time.monotonic()))
            if opcode is kind:
                return json.loads(data)

    def close(self, code: int, words: str = "") -> None:
        with self._lock:
            self._protocol.send_close(code, words)
        self._flush()

    def drop(self) -> None:
        """Cut it without a word."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)

    def send(self, data: bytes) -> None:
        self._link.sendall(data)

    def _flush(self) -> None:
        with self._lock:
            for data in self._protocol.data_to_send():
                if data:
                    self._link.sendall(data)


class StandInHub:
    """A context manager. What it does is set by its attributes, at any time."""

    def __init__(self, tls: ssl.SSLContext | None = None, spread: float = 0.05):
        self.hello: Any = {"gpulse": "0.0.1", "node": "n1", "spread_seconds": spread}
        # What is answered to whoever wants a WebSocket, instead of one; b"" closes without a word.
        self.refuses: bytes | None = None
        # What is answered to POST and GET: by path, from (headers, body).
        self.pages: dict[str, Callable[[dict[str, str], bytes], bytes]] = {}
        self.reads = threading.Event()
        self.reads.set()
        self.answers_pings = True
        self.tries: queue.Queue[float] = queue.Queue()
        self.visits: queue.Queue[Visit] = queue.Queue()
        self._tls = tls
        self._listener: socket.socket | None = None
        self._links: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> "StandInHub":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, again on the same port after a stop."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._thread(self._accept, self._listener)

    def stop(self) -> None:
        assert self._listener
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reads.set()
        for link in self._links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        for link in self._links:
            link.close()
        self._links, self._threads = [], []

    def visit(self, seconds: float = PATIENCE_SECONDS) -> Visit:
        """The next agent that comes."""
        return self.visits.get(timeout=seconds)

    def _thread(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            self._links.append(link)
            self.tries.put(time.monotonic())
            self._thread(self._serve, link)

    def _serve(self, link: socket.socket) -> None:
        with suppress(OSError):
            if self._tls:
                link = self._tls.wrap_socket(link, server_side=True)
                self._links.append(link)
            received = b""
            while b"\r\n\r\n" not in received:
                piece = link.recv(1 << 16)
                if not piece:
                    return
                received += piece
            head, _, body = received.partition(b"\r\n\r\n")
            first = head.decode("latin-1").split("\r\n")[0].split(" ")
            if b"Upgrade: websocket" in head:
                if self.refuses is None:
                    Visit(self, link, head).run()
                    return
                link.sendall(self.refuses)
            else:
                link.sendall(self._page(link, first[1], head, body))
            link.shutdown(socket.SHUT_RDWR)

    def _page(self, link: socket.socket, path: str, head: bytes, body: bytes) -> bytes:
        headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
        while len(body) < int(headers.get("Content-Length", "0")):
            body += link.recv(1 << 16)
        page = self.pages.get(path)
        return page(headers, body) if page else refusal(404, "not_found", "no such page")
