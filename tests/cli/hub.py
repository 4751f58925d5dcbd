"""A small hub that answers what a test wants, and the commands run against it as people run them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.patience import PATIENCE_SECONDS

GIB = 1 << 30
GPULSE = [str(Path(sys.executable).with_name("gpulse"))]
_API = "/api/v1"

# An answer's body, as bytes or as what becomes JSON, alone or with its status.
Body = bytes | dict[str, Any]
Answer = Body | tuple[int, Body]


def gpu(node: str, index: int, state: str = "free", **fields: Any) -> dict[str, Any]:
    """A GPU as the API tells of it."""
    return {
        "index": index,
        "uuid": f"GPU-{node}-{index}",
        "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": 0,
        "node": node,
        "id": f"GPU-{node}-{index}",
        "state": state,
        "model": "H100 80G",
        "people": [],
        **fields,
    }


def node(name: str, state: str = "up", reason: str = "", gpus: Any = (), **fields: Any) -> dict[str, Any]:
    """A node as a list of the API tells of it."""
    return {
        "name": name,
        "display_name": name,
        "state": state,
        "reason": reason,
        "age_seconds": 0.4,
        "gpus": list(gpus),
        **fields,
    }


def listing(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "total": len(items), "next": None}


class FakeHub:
    """Answers by path below /api/v1; a function is asked with the query. `asked` has (path, query) in order."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, Answer | Callable[[dict[str, str]], Answer]] = {}
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    def refuse(self, path: str, status: int, code: str, message: str, detail: str = "") -> None:
        self.answers[path] = (status, {"error": {"code": code, "message": message, "detail": detail}})

    def answer(self, target: str) -> tuple[int, bytes]:
        parts = urlsplit(target)
        path = parts.path.removeprefix(_API)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.asked.append((path, query))
        found = self.answers.get(path, (404, b"Not Found"))
        told = found(query) if callable(found) else found
        status, body = told if isinstance(told, tuple) else (200, told)
        return status, body if isinstance(body, bytes) else json.dumps(body).encode()


@contextmanager
def running(hub: FakeHub | None = None) -> Iterator[FakeHub]:
    hub = hub or FakeHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = hub.answer(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **hub.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name is given
            """Tests say themselves what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def env(hub: str = "", encoding: str = "utf-8", **more: str) -> dict[str, str]:
    """An environment without a terminal's or a person's own settings."""
    left_out = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "GPULSE_HUB", "GPULSE_KEY", "GPULSE_DATA"}
    clean = {name: value for name, value in os.environ.items() if name not in left_out}
    clean["PYTHONIOENCODING"] = encoding
    # Nobody's keys.
    clean["XDG_CONFIG_HOME"] = os.devnull
    if hub:
        clean["GPULSE_HUB"] = hub
    return clean | more


def gpulse(*arguments: str, hub: str = "", encoding: str = "utf-8", **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*GPULSE, *arguments],
        env=env(hub, encoding, **more),
        capture_output=True,
        encoding=encoding,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
