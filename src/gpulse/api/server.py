"""The sockets the hub listens on, and the web server on them."""

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext

import uvicorn
from starlette.applications import Starlette

from gpulse.api.access import LOCAL
from gpulse.api.application import SERVER_OPTIONS
from gpulse.api.heads import HttpProtocol, last_words
from gpulse.api.unsent import LOOK_SECONDS, Unsent
from gpulse.auth import local_socket
from gpulse.errors import ListenError, RequestError

# uvicorn ticks ten times a second.
_TICKS_BETWEEN_LOOKS = round(LOOK_SECONDS * 10)
# By where the hub listens: the loopback address that is not covered by it. `::` covers both.
_LOOPBACKS = {
    "127.0.0.1": (socket.AF_INET6, "::1"),
    "::1": (socket.AF_INET, "127.0.0.1"),
    "0.0.0.0": (socket.AF_INET6, "::1"),  # noqa: S104 - compared with, not listened on
}
# Addresses that this machine may simply not have.
_NO_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_PORTS_TRIED = 20


class _LocalProtocol(HttpProtocol):
    """HTTP over the UNIX socket, for the hub's own user and root alone, whatever the file's mode has become."""

    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as connection:
            self._refused = not local_socket.is_own(connection)
        if self._refused:
            transport.abort()
        else:
            super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._refused:
            super().connection_lost(exc)


class _Server(uvicorn.Server):
    """Leaves signals to the hub, serves the local socket as well, and ends connections that nobody reads from."""

    local: socket.socket | None = None

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._unsent = Unsent()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_LOOKS == 0:
            self._unsent.look(self.server_state.connections)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.local is not None:
            loop = asyncio.get_running_loop()
            self.servers.append(await loop.create_unix_server(self._local_protocol, sock=self.local))

    def _local_protocol(self) -> asyncio.Protocol:
        # uvicorn copies the state into the scope of each request, where nothing that a client sends can reach it.
        return _LocalProtocol(self.config, self.server_state, {LOCAL: True})


class _Config(uvicorn.Config):
    """Takes a context that is made already, which older versions of uvicorn cannot be given otherwise."""

    context: SSLContext | None = None

    def load(self) -> None:
        super().load()
        self.ssl = self.context


def make_server(
    application: Starlette, context: SSLContext | None = None, local: socket.socket | None = None
) -> uvicorn.Server:
    """`context` secures connections over TCP, which are plain http without it; `local` is the UNIX socket."""
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
    server = _Server(config)
    server.local = local
    return server


def listen(host: str, port: int) -> list[socket.socket]:
    """Return the sockets to serve on, the one that was asked for first; raise ListenError if one can't be had.

    With 127.0.0.1 comes ::1, and the other way round: else somebody else on this machine could listen there and be
    taken for the hub.
    """
    for left in reversed(range(_PORTS_TRIED)):
        listener = _listen(host, port)
        try:
            other = _other_loopback(listener)
        except ListenError:
            listener.close()
            if port or not left:
                raise
            # Any port will do, so try one that is free on both.
        else:
            return [listener] if other is None else [listener, other]
    raise AssertionError("the last try raises")


def _other_loopback(listener: socket.socket) -> socket.socket | None:
    host, port = listener.getsockname()[:2]
    if host not in _LOOPBACKS:
        return None
    family, address = _LOOPBACKS[host]
    try:
        return _bound(family, (address, port))
    except OSError as error:
        if error.errno in _NO_ADDRESS:
            return None
        shown = f"[{address}]" if ":" in address else address
        why = (
            f"port {port} on {shown} is in use by another program, which commands and browsers could take for this hub;"
            " end that program, or choose another port with --port"
            if error.errno == errno.EADDRINUSE
            else f"cannot listen on {shown} port {port}: {error.strerror}; choose another with --port"
        )
        raise ListenError(why) from None


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise ListenError(
            f"--host {host}: the name does not resolve ({error}); give an address of this machine"
        ) from None
    family, _, _, _, address = found[0]
    try:
        return _bound(family, address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = f"port {port} on {host} is in use, perhaps by another gpulse; --port 0 takes any free one"
            raise ListenError(why) from None
        why = f"cannot listen on {host} port {port}: {error.strerror}; choose another with --port"
        raise ListenError(why) from None


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # From here on who connects waits for the server instead of being refused.
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
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
