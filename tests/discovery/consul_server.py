"""A Consul for tests: real HTTP on loopback, blocking queries, tokens, and every way to fail."""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.patience import PATIENCE_SECONDS


def entry(name: str, address: str = "10.0.0.1", port: int = 7080, **more: Any) -> dict[str, Any]:
    """A node as /v1/health/service has it."""
    return {
        "Node": {"Node": name, "Address": address, "Meta": more.get("node_meta")},
        "Service": {
            "Service": "gpu",
            "Address": more.get("service_address", ""),
            "Port": port,
            "Tags": more.get("tags"),
            "Meta": more.get("meta"),
        },
        "Checks": [{"CheckID": "serfHealth", "Status": more.get("status", "passing")}],
    }


class FakeConsul:
    """What it lists is set with `lists`; `fault` is how it fails from now on, "" that it does not."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.body = b"[]"
        self.index = 10
        self.token = ""
        self.fault = ""
        self.headers: dict[str, str] = {}
        # Path, query and token of every request.
        self.asked: list[tuple[str, dict[str, list[str]], str | None]] = []
        self.url = ""
        self.closed = False

    def lists(self, *entries: dict[str, Any]) -> None:
        self.answers(json.dumps(entries).encode())

    def answers(self, body: bytes, index: int | None = None) -> None:
        with self.changed:
            self.body = body
            self.index = self.index + 1 if index is None else index
            self.changed.notify_all()

    def fails(self, fault: str, body: bytes = b"") -> None:
        """Also for those who wait for a change."""
        with self.changed:
            self.fault = fault
            self.body = body or self.body
            self.index += 1
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    consul: FakeConsul

    def do_GET(self) -> None:
        consul = self.consul
        address = urlsplit(self.path)
        query = parse_qs(address.query, keep_blank_values=True)
        given = self.headers.get("X-Consul-Token")
        consul.asked.append((address.path, query, given))
        if consul.token and given != consul.token:
            self._send(403, b"Permission denied: token with AccessorID 'x' lacks permission 'service:read' on \"gpu\"")
            return
        if "index" in query:
            # As Consul: it holds the question as long as its number is not higher than the one that is known.
            seconds = float(query["wait"][0].removesuffix("ms")) / 1000
            with consul.changed:
                consul.changed.wait_for(lambda: consul.closed or consul.index > int(query["index"][0]), seconds)
        if consul.fault == "silent":
            with consul.changed:
                consul.changed.wait_for(lambda: consul.closed, 60)
            self.close_connection = True
        elif consul.fault == "drips":
            self._head(200, 1000)
            with consul.changed:
                while not consul.closed:
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    consul.changed.wait(0.05)
            self.close_connection = True
        elif consul.fault == "cut":
            self._head(200, len(consul.body))
            self.wfile.write(consul.body[: len(consul.body) // 2])
            self.close_connection = True
        elif consul.fault:
            self._send(int(consul.fault), b"No cluster leader\n")
        else:
            self._send(200, self._body(query))

    def _body(self, query: dict[str, list[str]]) -> bytes:
        try:
            entries = json.loads(self.consul.body)
            kept = [
                one
                for one in entries
                if set(query.get("tag", [])) <= set(one["Service"]["Tags"] or [])
                and ("passing" not in query or all(check["Status"] == "passing" for check in one["Checks"]))
            ]
        except (ValueError, KeyError, TypeError):
            # Not of a service's nodes: sent as it is.
            return self.consul.body
        return json.dumps(kept).encode()

    def _head(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in {"X-Consul-Index": str(self.consul.index), **self.consul.headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status: int, body: bytes) -> None:
        self._head(status, len(body))
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 100

    def handle_error(self, *_where: object) -> None:
        """Who asked has gone: that is what some tests are about."""


@contextmanager
def running(certificate: Path | None = None, port: int = 0) -> Iterator[FakeConsul]:
    consul = FakeConsul()
    server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"consul": consul}))
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    consul.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield consul
    finally:
        with consul.changed:
            consul.closed = True
            consul.changed.notify_all()
        server.shutdown()
        server.server_close()
        thread.join()


def wait_until(true: Any, seconds: float = PATIENCE_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become so in time"
        time.sleep(0.01)
