"""An application on a real socket, for tests that speak HTTP themselves."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from gpulse.api.application import SERVER_OPTIONS
from tests.patience import PATIENCE_SECONDS


@contextmanager
def served(app: Starlette) -> Iterator[int]:
    """The port it answers on."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", **SERVER_OPTIONS))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while not server.started and time.monotonic() < end:
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def exchange(port: int, request: bytes, seconds: float = PATIENCE_SECONDS) -> bytes:
    """Send these bytes, and read until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), seconds) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer
