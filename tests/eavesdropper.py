"""Somebody who listens in the hub's place with a certificate of their own, and writes down all that they are sent."""

import contextlib
import socket
import ssl
import threading

from tests.patience import PATIENCE_SECONDS


class Eavesdropper:
    """A context manager; `heard` is what came through TLS, `visits` how many began to speak."""

    def __init__(self, context: ssl.SSLContext, port: int = 0):
        self.heard = b""
        self.visits = 0
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self._links: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> "Eavesdropper":
        self._threads[0].start()
        return self

    def __exit__(self, *_error: object) -> None:
        for link in (self._listener, *self._links):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        for link in (self._listener, *self._links):
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self._links.append(link)
            self.visits += 1
            thread = threading.Thread(target=self._listen, args=(link,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _listen(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            secured = self._context.wrap_socket(link, server_side=True)
            self._links.append(secured)
            while piece := secured.recv(1 << 16):
                self.heard += piece
