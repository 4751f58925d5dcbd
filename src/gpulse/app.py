"""The hub, wired: what is started in which order, and stopped in reverse. Nothing else is here."""

import asyncio
import gc
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec

from gpulse.api.application import create_app
from gpulse.api.server import make_server
from gpulse.config import Config
from gpulse.config.hosts import Address
from gpulse.discovery import Source, Target, watch
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.fleet.places import Place
from gpulse.simulate.transport import Scene, SimulatedTransport
from gpulse.ssh_nodes import ssh_settings, ssh_target
from gpulse.transport import local
from gpulse.transport.announcing import Announcing
from gpulse.transport.local import LocalTarget
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
        settings = FleetSettings(thresholds=config.thresholds, people=config.people, models=config.models)
        self.fleet = Fleet(settings)
        # Whether the lists of nodes have been read.
        self._listed = False

    async def run(self, listener: socket.socket, sources: list[Source], scene: Scene | None = None) -> None:
        """Until it is told to end by Ctrl-C or SIGTERM, or a part of it fails."""
        _be_ready_for_many()
        async with AsyncExitStack() as stack:
            nodes = self._simulated(scene) if scene is not None else self._real_nodes(sources)
            feeding = await stack.enter_async_context(nodes)
            ticking = await stack.enter_async_context(_running(self._tick()))
            await self._serve(listener, feeding, ticking)

    @asynccontextmanager
    async def _simulated(self, scene: Scene) -> AsyncIterator[Task]:
        for place in scene.places():
            self.fleet.place(place)
        async with _running(SimulatedTransport(scene, self.fleet).run()) as feeding:
            yield feeding

    @asynccontextmanager
    async def _real_nodes(self, sources: list[Source]) -> AsyncIterator[Task]:
        ssh = Ssh(ssh_settings(self.config))
        supervisor = Supervisor(
            sink=Announcing(self.fleet, self._say), ways={SshTarget: ssh.stream, LocalTarget: local.stream}
        )
        try:
            async with _running(self._follow(sources, supervisor)) as feeding:
                yield feeding
        finally:
            await supervisor.stop()
            await ssh.close()

    async def _follow(self, sources: list[Source], supervisor: Supervisor) -> None:
        """Nodes as they are listed now, and whenever the lists change."""
        own = [self._this_machine()] if self.config.hub.local else []
        async for found in watch(sources, self._say, self.config.names):
            others = [target for target in found if target.name not in {one.name for one in own}]
            for one in own:
                # It may be listed as well: then its group and its name for people are told there.
                listed_as = [target for target in found if target.name == one.name] or [Target(one.name, one.name)]
                place = self._place(listed_as[0])
                self.fleet.place(msgspec.structs.replace(place, address="this machine"))
            for target in others:
                self.fleet.place(self._place(target))
            targets: list[LocalTarget | SshTarget] = [*own, *(ssh_target(self.config, target) for target in others)]
            listed = {target.name for target in targets}
            supervisor.set_targets(targets)
            for name in set(self.fleet.names()) - listed:
                self.fleet.remove(name)
            self._listed = True

    def _this_machine(self) -> LocalTarget:
        return LocalTarget(name=socket.gethostname(), interval_seconds=self.config.hub.interval_seconds)

    def _place(self, target: Target) -> Place:
        address = Address(target.host, target.port, target.user)
        return Place(
            name=target.name,
            display_name=target.display_name or self.config.names.get(target.name),
            group=target.group,
            rack=target.rack,
            address=f"ssh {address}",
            interval_seconds=target.interval_seconds or self.config.hub.interval_seconds,
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
        application = create_app(self.fleet, base_path=self.config.hub.base_path, notices=self.notices)
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
        if self._listed and not self.fleet.names():
            return [NO_NODES]
        return []


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


def _be_ready_for_many() -> None:
    """Thousands of nodes: as many descriptors as are allowed, and a garbage collector that rests in between."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.set_threshold(50_000, 20, 50)
