"""From a host's name to a TCP connection: look it up, then try its addresses one after the other."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from gpulse.errors import NodeLost
from gpulse.transport import explain
from gpulse.transport.explain import Place
from gpulse.transport.progress import Progress
from gpulse.transport.ssh_options import Route

RESOLVE_SECONDS = 10.0


class Sockets:
    """Opens connections for all nodes."""

    def __init__(self) -> None:
        # Looking up names blocks a thread each; a dead name server must not take those that asyncio needs.
        self._resolver = ThreadPoolExecutor(max_workers=64, thread_name_prefix="resolve")

    def close(self) -> None:
        self._resolver.shutdown(wait=False, cancel_futures=True)

    async def connect(self, way: Route, progress: Progress) -> socket.socket:
        """A TCP connection to the route's host."""
        place = way.place
        progress.connecting(f"looking up {place.host}")
        progress.within(
            RESOLVE_SECONDS,
            NodeLost(
                f"the name {place.host} could not be looked up in time", "look at this machine's DNS", explain.NAME
            ),
        )
        addresses = await self._resolve(place, way.family)
        progress.connecting(f"connecting to {place.host} port {place.port}")
        progress.within(way.connect_seconds, explain.unreachable(place, TimeoutError()))
        failure: OSError = OSError()
        for family, kind, protocol, _name, address in addresses:
            connecting = socket.socket(family, kind, protocol)
            connecting.setblocking(False)
            try:
                # With several addresses, one that does not answer must leave time for the next.
                async with asyncio.timeout(way.connect_seconds / len(addresses)):
                    await asyncio.get_running_loop().sock_connect(connecting, address)
                return connecting
            except OSError as problem:
                connecting.close()
                failure = problem
            except BaseException:
                connecting.close()
                raise
        raise explain.unreachable(place, failure) from failure

    async def _resolve(self, place: Place, family: int) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
        def look_up() -> list[tuple[int, int, int, str, tuple[object, ...]]]:
            return list(socket.getaddrinfo(place.host, place.port, family, socket.SOCK_STREAM))

        try:
            return await asyncio.get_running_loop().run_in_executor(self._resolver, look_up)
        except (OSError, UnicodeError) as problem:
            raise explain.unresolved(place.host, str(problem)) from problem
