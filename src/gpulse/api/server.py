"""The socket the hub listens on, and the web server on it."""

import errno
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext

import uvicorn
from starlette.applications import Starlette

from gpulse.api.application import SERVER_OPTIONS
from gpulse.api.heads import last_words
from gpulse.errors import ListenError, RequestError


class _Server(uvicorn.Server):
    """Leaves signals to the hub, which has more to end than the server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Config(uvicorn.Config):
    """Takes a context that is made already, which older versions of uvicorn cannot be given otherwise."""

    context: SSLContext | None = None

    def load(self) -> None:
        super().load()
        self.ssl = self.context


def make_server(application: Starlette, context: SSLContext | None = None) -> uvicorn.Server:
    """`context`: what secures the connections; without it they are plain http."""
    config = _Config(
        application,
        lifespan="off",
        # Its log goes where that of the hub goes, cleaned in the same way.
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        **SERVER_OPTIONS,
    )
    config.context = context
    return _Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve on; ListenError in one sentence where it cannot be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise ListenError(
            f"--host {host}: the name does not resolve ({error}); give an address of this machine"
        ) from None
    family, _, _, _, address = found[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            why = f"port {port} on {host} is in use, perhaps by another gpulse; --port 0 takes any free one"
            raise ListenError(why) from None
        why = f"cannot listen on {host} port {port}: {error.strerror}; choose another with --port"
        raise ListenError(why) from None
    # From here on who connects waits for the server instead of being refused.
    listener.listen(1024)
    listener.set_inheritable(False)
    return listener


def reached_by_others(listener: socket.socket) -> bool:
    """Whether it can be reached from another machine."""
    return not ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def url_of(listener: socket.socket, base_path: str, *, secure: bool = False) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}{base_path}/"


def this_is_https() -> bytes:
    """What somebody gets who speaks http where the hub is at https."""
    return last_words(RequestError(400, "this_is_https", "this is https", "ask again with https:// before the address"))
