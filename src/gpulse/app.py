"""The hub, wired: what is started in which order, and stopped in reverse. Nothing else is here."""

import asyncio
import gc
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from gpulse import descriptors
from gpulse.api.application import create_app
from gpulse.api.hub import Ingest, nothing_to_examine
from gpulse.api.page import OwnFiles
from gpulse.api.server import make_server
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades
from gpulse.config import Config, DropFolderTable
from gpulse.discovery import Source, watch
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.hub_side import Asked, asking, ssh_settings
from gpulse.membership import Membership
from gpulse.simulate.transport import Scene, SimulatedTransport
from gpulse.store import Records
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
ADD_NODES = "add nodes with: gpulse up 'gpu[01-16]'; or look at a simulated cluster with: gpulse demo"
NO_GPUS = f"There is no GPU on this machine and no other node was given; {ADD_NODES}"
NO_NODES = f"There are no nodes yet; {ADD_NODES}"
# By then the first wave of nodes has connected, and what it made stays for good.
_SETTLED_SECONDS = 60.0


class Hub:
    """One fleet, what feeds it, and its web server."""

    def __init__(self, config: Config, say: Callable[[str], None]):
        """`say` tells the person who started it something, a sentence at a time."""
        self.config = config
        self._say = say
        self._own_files = OwnFiles.read(config.web)
        settings = FleetSettings(thresholds=config.thresholds, people=config.people, models=config.models)
        self.fleet = Fleet(settings)
        self._membership: Membership | None = None
        self._ingest: Ingest | None = None
        self._examining: Examining | None = None

    async def run(self, listener: socket.socket, sources: list[Source], scene: Scene | None = None) -> None:
        """Until it is told to end by Ctrl-C or SIGTERM, or a part of it fails."""
        descriptors.raise_limit()
        gc.set_threshold(50_000, 20, 50)
        async with AsyncExitStack() as stack:
            nodes = self._simulated(scene) if scene is not None else self._real_nodes(sources)
            parts = await stack.enter_async_context(nodes)
            ticking = await stack.enter_async_context(_running(self._tick()))
            await self._serve(listener, *parts, ticking)

    @asynccontextmanager
    async def _simulated(self, scene: Scene) -> AsyncIterator[list[Task]]:
        for place in scene.places():
            self.fleet.place(place)
        async with _running(SimulatedTransport(scene, self.fleet).run()) as feeding:
            yield [feeding]

    @asynccontextmanager
    async def _real_nodes(self, sources: list[Source]) -> AsyncIterator[list[Task]]:
        async with AsyncExitStack() as stack:
            tokens = Tokens(stack.enter_context(Records(self.config.hub.data)))
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
            await asyncio.sleep(TICK_SECONDS)
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

    async def _serve(self, listener: socket.socket, *parts: Task) -> None:
        application = create_app(
            self.fleet,
            base_path=self.config.web.base_path,
            title=self.config.web.title,
            origins=self.config.web.origins,
            own_files=self._own_files,
            notices=self.notices,
            ingest=self._ingest,
            examine=self._examining.examine if self._examining is not None else nothing_to_examine,
        )
        server = make_server(application)

        def end(_part: object = None) -> None:
            server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        for part in parts:
            # A hub that no longer ticks must not look alive.
            part.add_done_callback(end)
        await server.serve(sockets=[listener])
        for part in parts:
            if part.done():
                part.result()

    def notices(self) -> list[str]:
        """What everybody who looks at the hub should know."""
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
