"""The hub, wired: what is started in which order, and stopped in reverse. Nothing else is here."""

import asyncio
import gc
import shlex
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import NamedTuple

from gpulse import descriptors
from gpulse.api.access import Access, Vouching
from gpulse.api.application import create_app
from gpulse.api.hub import Ingest, nothing_to_examine
from gpulse.api.noted_reservations import noted
from gpulse.api.page import OwnFiles
from gpulse.api.security import as_origins
from gpulse.api.server import make_server, reached_by_others, url_of
from gpulse.auth import local_socket
from gpulse.auth.directory import Directory
from gpulse.auth.noting import THE_HUB, actor
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades, lost_records
from gpulse.config import Config, DropFolderTable, database_url
from gpulse.discovery import Source, watch
from gpulse.errors import StoreError
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.hub_side import Asked, asking, ssh_settings
from gpulse.membership import Membership
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from gpulse.simulate import bookings
from gpulse.simulate.transport import Scene, SimulatedTransport
from gpulse.steady_clock import SteadyClock
from gpulse.store import Records
from gpulse.tls.serving import ServingTls
from gpulse.transport import local
from gpulse.transport.announcing import Announcing
from gpulse.transport.drop import DropFolder
from gpulse.transport.examining import Examining
from gpulse.transport.local import LocalTarget
from gpulse.transport.pull import Pull
from gpulse.transport.ssh import Ssh, SshTarget
from gpulse.transport.supervisor import Supervisor

Task = asyncio.Task[None]

TICK_SECONDS = 1.0
# Whom another process shut out, person or node, is gone within a second, those on open connections included.
_ACCOUNTS_SECONDS = 0.5
_DAY_SECONDS = 86400.0
# By then every simulated node has told who is on it.
_FIRST_LINES_SECONDS = 1.5
ADD_NODES = "add nodes with: gpulse up 'gpu[01-16]'; or look at a simulated cluster with: gpulse demo"
NO_GPUS = f"There is no GPU on this machine and no other node was given; {ADD_NODES}"
NO_NODES = f"There are no nodes yet; {ADD_NODES}"
# By then the first wave of nodes has connected, and what it made stays for good.
_SETTLED_SECONDS = 60.0


class Operator(NamedTuple):
    """The person who runs the hub: their login name, and what shows them the role and code of a sign-in link."""

    name: str
    show_link: Callable[[str, str], None] | None = None


class Hub:
    """One fleet, what feeds it, and its web server."""

    def __init__(
        self,
        config: Config,
        say: Callable[[str], None],
        operator: Operator,
        tls: ServingTls | None = None,
    ):
        """`say` tells the person who started it something, a sentence at a time; without `tls` it is at http."""
        self.config = config
        self._say = say
        self._operator = operator
        self._tls = tls
        self._clock = SteadyClock()
        self._own_files = OwnFiles.read(config.web)
        self._vouching = Vouching.read(config.access)
        settings = FleetSettings(thresholds=config.thresholds, people=config.people, models=config.models)
        self.fleet = Fleet(settings)
        # Where commands of the person who runs it ask; None while their account is disabled.
        self._local: socket.socket | None = None
        self._membership: Membership | None = None
        self._ingest: Ingest | None = None
        self._examining: Examining | None = None

    async def run(self, listeners: list[socket.socket], sources: list[Source], scene: Scene | None = None) -> None:
        """Serve until Ctrl-C, SIGTERM or the failure of a part; the first of `listeners` is where people find it."""
        listener = listeners[0]
        descriptors.raise_limit()
        gc.set_threshold(50_000, 20, 50)
        async with AsyncExitStack() as stack:
            # What is simulated is kept in its folder, never among what is real.
            url = database_url(self.config.store) if scene is None else None
            records = stack.enter_context(Records(self.config.hub.data, url))
            if url is not None:
                # Whoever tries another folder must not take it for other records.
                self._say(f"the records are in {records.name}, as [store] or GPULSE_STORE_URL says")
            if scene is None and (lost := await asyncio.to_thread(lost_records, records, self.config.hub.data)):
                self._say(lost)
            nodes = self._simulated(scene) if scene is not None else self._real_nodes(sources, records)
            parts = await stack.enter_async_context(nodes)
            access, following = await stack.enter_async_context(self._people(records, listener))
            desk, booking = await stack.enter_async_context(self._reserving(records, scene))
            ticking = await stack.enter_async_context(_running(self._tick()))
            if self._tls is not None:
                parts.append(await stack.enter_async_context(_running(self._tls.follow(self._say))))
            await self._serve(listeners, access, desk, *parts, *booking, following, ticking)

    @asynccontextmanager
    async def _simulated(self, scene: Scene) -> AsyncIterator[list[Task]]:
        for place in scene.places():
            self.fleet.place(place)
        async with _running(SimulatedTransport(scene, self.fleet).run()) as feeding:
            yield [feeding]

    @asynccontextmanager
    async def _real_nodes(self, sources: list[Source], records: Records) -> AsyncIterator[list[Task]]:
        async with AsyncExitStack() as stack:
            tokens = Tokens(records, self._clock)
            ssh, pull = Ssh(ssh_settings(self.config)), Pull()
            stack.push_async_callback(ssh.close)
            sink = Announcing(self.fleet, self._say)
            supervisor = Supervisor(
                sink=sink,
                ways={SshTarget: ssh.stream, Asked: asking(pull), LocalTarget: local.stream},
            )
            stack.push_async_callback(supervisor.stop)
            membership = self._membership = Membership(self.config, self.fleet, supervisor, sink, self._say)
            self._examining = Examining(ssh, membership.over_ssh)
            stack.push_async_callback(self._examining.close)
            self._ingest = Ingest(tokens, membership.push, Upgrades(self.config.hub.data))
            work = [self._follow(sources, membership), self._follow_tokens(tokens, membership), membership.push.run()]
            work += [self._folder(table, membership).run() for table in self.config.drop_folders]
            yield [await stack.enter_async_context(_running(part)) for part in work]

    @asynccontextmanager
    async def _people(self, records: Records, listener: socket.socket) -> AsyncIterator[tuple[Access, Task]]:
        """Who may ask; the person who runs the hub always can, by the command line and a link."""
        settings = self.config.access
        directory = Directory(
            records,
            self._clock,
            idle_seconds=settings.session_idle_days * _DAY_SECONDS,
            session_seconds=settings.session_days * _DAY_SECONDS,
        )
        # Everybody may read where nobody else can reach the hub, unless the settings say otherwise.
        closed = reached_by_others(listener) or settings.for_others
        anonymous = (settings.anonymous or ("none" if closed else "read")) == "read"
        origins = as_origins(self.config.web.origins)
        access = Access(self.config, directory, self._vouching, anonymous=anonymous, origins=origins)
        with ExitStack() as stack:
            by = actor(f"local: {self._operator.name}")
            account = await directory.accounts.operator(self._operator.name, by=by)
            if not account.live:
                self._say(
                    f"the account {account.name} is disabled;"
                    f" gpulse user enable {shlex.quote(account.name)} lets you in again"
                )
            else:
                url = url_of(listener, self.config.web.base_path, secure=self._tls is not None)
                self._local = stack.enter_context(local_socket.listening(self.config.hub.data, url))
                access.operator = account.id
                if self._operator.show_link is not None:
                    self._operator.show_link(account.role, await directory.links.make(account.id, alone=True, by=by))
            async with _running(self._follow_people(directory)) as following:
                yield access, following
            await directory.note_uses()
            await directory.refused_links.settle(ending=True)

    @asynccontextmanager
    async def _reserving(self, records: Records, scene: Scene | None) -> AsyncIterator[tuple[Desk | None, list[Task]]]:
        settings = self.config.reservations
        if not settings.enabled:
            yield None, []
            return
        desk = Desk(Reservations(records, self._clock), self.fleet, settings, self._clock)
        if desk.trouble:
            self._say(desk.trouble)
        desk.look()
        async with _running(self._follow_reservations(desk, scene)) as following:
            yield desk, [following]

    async def _follow_reservations(self, desk: Desk, scene: Scene | None) -> None:
        """As others make them, as they begin and end, and as people come or do not."""
        if scene is not None:
            await asyncio.sleep(_FIRST_LINES_SECONDS)
            try:
                await bookings.make_up(self.config.hub.data, self.fleet, self._operator.name, time.time())
            except StoreError as error:
                self._say(f"no reservations were made up: {error}")
        told, witness = "", noted(THE_HUB, "release")
        while True:
            trouble = await desk.follow(witness)
            if trouble and trouble != told:
                self._say(trouble)
            told = trouble
            await asyncio.sleep(TICK_SECONDS)

    async def _follow_people(self, directory: Directory) -> None:
        told = ""
        while True:
            await asyncio.sleep(_ACCOUNTS_SECONDS)
            trouble = await directory.refresh()
            if trouble and trouble != told:
                self._say(trouble)
            told = trouble

    async def _follow(self, sources: list[Source], membership: Membership) -> None:
        """Nodes as they are listed now, and whenever the lists change."""
        async for found in watch(sources, self._say, self.config.names):
            membership.listed(found)

    async def _follow_tokens(self, tokens: Tokens, membership: Membership) -> None:
        """Who has a token, and at once who has none any more: a token may be revoked by another process."""
        holders = tokens.nodes()
        membership.holders(holders)
        told = ""
        while True:
            await asyncio.sleep(_ACCOUNTS_SECONDS)
            changes = await tokens.refresh()
            if changes.trouble and changes.trouble != told:
                self._say(changes.trouble)
            told = changes.trouble
            membership.push.end_replaced(changes.replaced, tokens.live)
            # Not by what changed: a token may have come, been used and gone in between.
            if tokens.nodes() is not holders:
                holders = tokens.nodes()
                membership.holders(holders, changes.expired)

    def _folder(self, table: DropFolderTable, membership: Membership) -> DropFolder:
        return DropFolder(
            table.path,
            self.fleet,
            claim=lambda name: membership.claim(table.path, name),
            problem=self._say,
            place_for=lambda name: membership.place_of_file(table, name),
        )

    async def _tick(self) -> None:
        due = time.monotonic()
        settled = due + _SETTLED_SECONDS
        told: list[str] = []
        while True:
            self.fleet.tick()
            if told != (notices := self.notices()):
                for notice in notices:
                    self._say(notice)
                told = notices
            if due > settled:
                gc.freeze()
                settled = float("inf")
            due = max(due + TICK_SECONDS, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    async def _serve(self, listeners: list[socket.socket], access: Access, desk: Desk | None, *parts: Task) -> None:
        application = create_app(
            self.fleet,
            access=access,
            base_path=self.config.web.base_path,
            title=self.config.web.title,
            origins=self.config.web.origins,
            own_files=self._own_files,
            notices=self.notices,
            ingest=self._ingest,
            strict_transport=self._tls is not None and self._tls.strict(listeners[0].getsockname()[1]),
            examine=self._examining.examine if self._examining is not None else nothing_to_examine,
            desk=desk,
        )
        server = make_server(application, self._tls.context if self._tls is not None else None, self._local)

        def end(_part: object = None) -> None:
            server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        for part in parts:
            # A hub that no longer ticks must not look alive.
            part.add_done_callback(end)
        await server.serve(sockets=listeners)
        for part in parts:
            if part.done():
                part.result()

    def notices(self) -> list[str]:
        """What everybody who looks at the hub should know."""
        certificate = self._tls.notice() if self._tls is not None else ""
        return [*([certificate] if certificate else ()), *self._notices_of_nodes()]

    def _notices_of_nodes(self) -> list[str]:
        if self.config.hub.local and self.fleet.names() == [socket.gethostname()]:
            node = self.fleet.known(socket.gethostname())
            if node.snapshot is not None and node.snapshot.gpus == []:
                return [NO_GPUS]
        if self._membership is not None and self._membership.ready and not self.fleet.names():
            return [NO_NODES]
        # Simulated nodes have no connections.
        nodes = len(self.fleet.names()) if self._membership is not None else 0
        shortage = descriptors.shortage(nodes)
        return [shortage] if shortage else []


@asynccontextmanager
async def _running(work: Coroutine[None, None, None]) -> AsyncIterator[Task]:
    """Something that goes on beside, until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
