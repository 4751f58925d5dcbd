"""`gpulse agent serve` as a process of its own, and what a test asks it."""

import http.client
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.patience import PATIENCE_SECONDS

TOKEN = "0123456789abcdef" * 2
SOURCES = Path(__file__).resolve().parent.parent.parent / "src"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Serving:
    """A context manager; `port` 0 is any free one."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *options: str, python: str = sys.executable, port: int = 0
    ):
        token = folder / "token"
        token.write_text(TOKEN + "\n", "ascii")
        self.process = subprocess.Popen(
            [python, "-m", "gpulse_probe", "serve", "--port", str(port), "--token-file", str(token), *options],
            env={**environment, "PYTHONPATH": str(SOURCES)},
            stderr=subprocess.PIPE,
        )
        try:
            self.port = self._listening()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> "Serving":
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _listening(self) -> int:
        assert self.process.stderr
        said = b""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(rb"listening on http://\S+:(\d+)\n", said)):
            assert select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))[0], said
            piece = os.read(self.process.stderr.fileno(), 4096)
            assert piece, said
            said += piece
        return int(found[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 20)

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, token: str | None = TOKEN, **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def status(self, body: object) -> Answer:
        return self.ask("/get-status", "POST", json.dumps(body).encode(), token=None)

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
