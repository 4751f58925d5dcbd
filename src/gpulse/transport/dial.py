"""From a host's name to a logged-in SSH connection, step by step, each with its deadline and its words for failure."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import asyncssh

from gpulse.errors import NodeLost
from gpulse.transport import explain, host_keys
from gpulse.transport.explain import Attempt, Place
from gpulse.transport.host_keys import HostKeys
from gpulse.transport.inlet import Connector
from gpulse.transport.jumps import Jumps
from gpulse.transport.progress import Progress, Steps
from gpulse.transport.sockets import Sockets
from gpulse.transport.ssh_options import Route, SshSettings, hops, route
from gpulse.transport.tried import tried

# A login that takes longer gives its turn to the next: nodes that hang must not hold up those that do not.
TURN_SECONDS = 2.0
MOST_WAIT_SECONDS = 600.0
# asyncssh's own deadline comes first: it knows better what was missing.
GRACE_SECONDS = 5.0
MOST_HOPS = 8
JUMP_SECONDS = 60.0
KEPT_BANNER = 8 << 10
END_SECONDS = 1.0


class HostKeyUnknown(NodeLost):
    """A host that known_hosts has no key of: the key it showed, and where it would be written to."""

    def __init__(self, told: NodeLost, place: Place, key: asyncssh.SSHKey, file: Path) -> None:
        super().__init__(told.what, told.fix, told.check)
        self.place = place
        self.key = key
        self.file = file


class Greeter(asyncssh.SSHClient):
    """Answers what a server asks while it lets somebody in, and remembers what it said."""

    def __init__(self, accept: Callable[[asyncssh.SSHKey], bool]) -> None:
        self.banner = ""
        self.asked: set[str] = set()
        self.untrusted: asyncssh.SSHKey | None = None
        self._accept = accept

    def validate_host_public_key(self, _host: str, _addr: str, _port: int, key: asyncssh.SSHKey) -> bool:
        self.untrusted = key
        return self._accept(key)

    def auth_banner_received(self, msg: str, _lang: str) -> None:
        self.banner = (self.banner + msg)[:KEPT_BANNER]

    def public_key_auth_requested(self) -> None:
        """Asked for when every key was refused."""
        self.asked.add("publickey")

    def password_auth_requested(self) -> None:
        self.asked.add("password")

    def kbdint_auth_requested(self) -> None:
        self.asked.add("keyboard-interactive")


class Dialer:
    """Opens connections for all nodes: shares host keys, jump hosts and turns to log in."""

    def __init__(self, settings: SshSettings) -> None:
        self.settings = settings
        self.host_keys = HostKeys()
        self._jumps = Jumps()
        self._turns = asyncio.Semaphore(settings.connects_at_once)
        self._sockets = Sockets()

    async def close(self) -> None:
        self._sockets.close()

    @contextlib.asynccontextmanager
    async def connection(
        self, way: Route, progress: Progress, depth: int = 0
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """A connection to the end of the route; raises NodeLost. It is closed afterwards, whatever happened."""
        async with contextlib.AsyncExitStack() as stack:
            tunnel = None
            if way.jump:
                if depth >= MOST_HOPS:
                    raise NodeLost("its jump hosts lead in a circle", "correct ProxyJump in ssh_config", explain.LOGIN)
                progress.connecting(f"connecting through {way.jump}")
                progress.within(
                    JUMP_SECONDS, NodeLost(f"jump host {way.jump} did not answer in time", "", explain.PORT)
                )
                for host, user, port in hops(way.jump):
                    hop = await route(self.settings, host, user, port)
                    opening = partial(self._hop, hop, tunnel, depth)
                    key = (id(tunnel), host, user, port)
                    tunnel = await stack.enter_async_context(self._jumps.shared(key, opening))
            connection = await self._login(way, tunnel, progress)
            try:
                yield connection
            finally:
                await end(connection)

    @contextlib.asynccontextmanager
    async def _hop(
        self, hop: Route, before: asyncssh.SSHClientConnection | None, depth: int
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """A connection to a jump host, which has deadlines of its own: it outlives the node that wanted it first."""
        async with contextlib.AsyncExitStack() as stack:
            steps = Steps()
            try:
                async with asyncio.timeout(JUMP_SECONDS) as steps.deadline:
                    if before is None:
                        connection = await stack.enter_async_context(self.connection(hop, steps, depth + 1))
                    else:
                        connection = await self._login(hop, before, steps)
                        stack.push_async_callback(end, connection)
            except TimeoutError as problem:
                raise NodeLost(f"jump host {hop.asked}: {steps.overdue.what}", steps.overdue.fix) from problem
            except HostKeyUnknown:
                raise
            except NodeLost as problem:
                raise NodeLost(f"jump host {hop.asked}: {problem.what}", problem.fix, problem.check) from problem
            yield connection

    async def _login(
        self, way: Route, tunnel: asyncssh.SSHClientConnection | None, progress: Progress
    ) -> asyncssh.SSHClientConnection:
        place = way.place
        sock = None
        if tunnel is None and not way.left_to_asyncssh:
            sock = await self._sockets.connect(way, progress)
        # The wait for a turn is not the node's fault and does not count as its login.
        progress.connecting(f"waiting for a turn to log in to {place.host}")
        progress.within(
            MOST_WAIT_SECONDS,
            NodeLost("its turn to log in did not come", "many nodes hang at their login", explain.LOGIN),
        )
        greeter = Greeter(lambda key: self._accept(way, key))
        try:
            async with self._turn():
                progress.connecting(f"logging in to {place.user}@{place.host}")
                progress.within(
                    self.settings.login_seconds + GRACE_SECONDS,
                    NodeLost(
                        f"{place.host} did not finish the login in time", "see whether `ssh` is slow too", explain.LOGIN
                    ),
                )
                through = sock or tunnel
                return await asyncssh.connect(
                    way.asked,
                    **{"port": (), **way.arguments},
                    tunnel=Connector(through) if through else None,
                    client_factory=lambda: greeter,
                    known_hosts=lambda host, _addr, port: self.host_keys.match(way.known_hosts, host, port),
                )
        except asyncio.CancelledError:
            if sock:
                sock.close()
            raise
        except (OSError, ValueError, asyncssh.Error) as problem:
            if sock:
                sock.close()
            raise await self._explained(way, greeter, problem) from problem

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        await self._turns.acquire()
        handed_on = False

        def hand_on() -> None:
            nonlocal handed_on
            if not handed_on:
                handed_on = True
                self._turns.release()

        timer = asyncio.get_running_loop().call_later(TURN_SECONDS, hand_on)
        try:
            yield
        finally:
            timer.cancel()
            hand_on()

    def _accept(self, way: Route, key: asyncssh.SSHKey) -> bool:
        """A key that is in no file is accepted only where the host has none, and it is wished for."""
        if self.settings.host_keys != "accept-new" or self.verdict(way, key) != "unknown":
            return False
        host_keys.add(way.own_known_hosts, known_as(way).known_as(), key)
        return True

    def verdict(self, way: Route, key: asyncssh.SSHKey) -> host_keys.Verdict:
        place = known_as(way)
        return self.host_keys.verdict(way.known_hosts, place.host, None if place.port == 22 else place.port, key)

    async def _explained(self, way: Route, greeter: Greeter, problem: Exception) -> NodeLost:
        place = way.place
        if isinstance(problem, asyncssh.HostKeyNotVerifiable):
            key = greeter.untrusted
            if key is None:
                return explain.host_key_refused(place, str(problem))
            if self.verdict(way, key) == "changed":
                files = [
                    str(file) for file in way.known_hosts if self.host_keys.match([file], place.host, place.port)[0]
                ]
                return explain.host_key_changed(known_as(way), host_keys.fingerprint(key), files)
            told = explain.host_key_unknown(known_as(way), host_keys.fingerprint(key))
            return HostKeyUnknown(told, known_as(way), key, way.own_known_hosts)
        attempt = Attempt(asked=frozenset(greeter.asked), banner=greeter.banner)
        if isinstance(problem, asyncssh.PermissionDenied):
            return explain.denied(place, await tried(way, attempt))
        if isinstance(problem, asyncssh.ChannelOpenError):
            return NodeLost(f"the jump host cannot reach {place.host}: {problem.reason}", "", explain.PORT)
        if isinstance(problem, asyncssh.DisconnectError | ConnectionError):
            return explain.hung_up(place, attempt, str(problem) or "connection closed", logged_in=False)
        if isinstance(problem, TimeoutError | socket.gaierror):
            return explain.unreachable(place, TimeoutError())
        if isinstance(problem, OSError):
            return NodeLost(f"{place.host} cannot be connected to: {problem.strerror or problem}", "", explain.PORT)
        return explain.bad_settings(str(problem))


def known_as(way: Route) -> Place:
    """The place by the name that known_hosts has it by."""
    return Place(way.alias or way.place.host, way.place.port, way.place.user)


async def end(connection: asyncssh.SSHClientConnection) -> None:
    """Close a connection; one that does not answer is dropped."""
    connection.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()
    except asyncio.CancelledError:
        connection.abort()
        raise
