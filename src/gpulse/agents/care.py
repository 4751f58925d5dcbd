"""Agents of many nodes: installed, asked, restarted, stopped, removed; many at once, each told as it is done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from gpulse.agents.node_service import Answer, Word, logged_in
from gpulse.agents.order import Order
from gpulse.errors import GpulseError, NodeLost
from gpulse.transport.bundle import Bundle
from gpulse.transport.ssh import Ssh, SshTarget
from gpulse.transport.ssh_options import Route

AT_ONCE = 32


class Secrets(Protocol):
    """What nodes are given to keep to themselves."""

    def files(self, node: str, token_id: str | None) -> dict[str, str]:
        """The files a node needs, by their names; without the token where it has a good one, going by its id."""

    def forget(self, node: str, token_id: str | None) -> None:
        """The node's agent is gone: what it was given is of no use any more."""


class Agents:
    """Answers come in the order in which nodes are done; what is wrong with a node is an answer too."""

    def __init__(self, ssh: Ssh, agent: Bundle) -> None:
        self._ssh = ssh
        self._agent = agent

    def install(self, targets: Sequence[SshTarget], order: Order, secrets: Secrets) -> AsyncIterator[Answer]:
        def reachable(way: Route) -> None:
            if order.unreachable_from(way.place.host, bool(way.jump)):
                raise NodeLost(
                    f"{order.hub} would lead the node to itself, not to the hub",
                    "give --hub the address by which the nodes reach this machine",
                )

        async def one(target: SshTarget) -> Answer:
            async with logged_in(self._ssh, target, self._agent, reachable) as node:
                before = await node.ask("status")
                if before.outcome == "failed":
                    return before
                files = order.files() | secrets.files(target.name, before.token_id)
                return await node.ask("install", arguments=order.arguments(target.name), files=files)

        return _told(targets, one)

    def ask(self, targets: Sequence[SshTarget], word: Word) -> AsyncIterator[Answer]:
        """status, restart or stop."""

        async def one(target: SshTarget) -> Answer:
            async with logged_in(self._ssh, target, self._agent, _anywhere) as node:
                return await node.ask(word)

        return _told(targets, one)

    def remove(self, targets: Sequence[SshTarget], secrets: Secrets) -> AsyncIterator[Answer]:
        async def one(target: SshTarget) -> Answer:
            async with logged_in(self._ssh, target, self._agent, _anywhere) as node:
                before = await node.ask("status")
                answer = await node.ask("remove")
                if answer.outcome == "removed":
                    secrets.forget(target.name, before.token_id)
                return answer

        return _told(targets, one)


def _anywhere(_way: Route) -> None:
    """Any route will do."""


async def _told(targets: Sequence[SshTarget], one: Callable[[SshTarget], Awaitable[Answer]]) -> AsyncIterator[Answer]:
    places = asyncio.Semaphore(AT_ONCE)

    async def tell(target: SshTarget) -> Answer:
        async with places:
            try:
                answer = await one(target)
            except NodeLost as problem:
                answer = Answer(outcome="failed", error=problem.what, fix=problem.fix)
            except GpulseError as problem:
                answer = Answer(outcome="failed", error=str(problem))
        return msgspec.structs.replace(answer, node=target.name)

    tasks = [asyncio.create_task(tell(target)) for target in targets]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
