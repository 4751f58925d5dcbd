"""Nodes that have to be asked for over a network: asked in a thread of its own, the last answer always at hand."""

import asyncio
import logging
import random
import threading
import time
from contextlib import suppress
from typing import Protocol

import msgspec

from gpulse.config.hosts import Address
from gpulse.config.sections import Reach
from gpulse.discovery.targets import Problem, Target, target_of
from gpulse.errors import DiscoveryError

# The first list of nodes waits so long for the first answer; whoever is slower comes in later.
FIRST_SECONDS = 3.0
LONGEST_PAUSE_SECONDS = 60.0
# Of what is wrong with single nodes so much is told.
MOST_PROBLEMS = 5

_log = logging.getLogger(__name__)
_jitter = random.uniform


class Found(msgspec.Struct, frozen=True, order=True):
    """A node as an answer has it; the port is that of the service it was found by."""

    name: str
    host: str
    port: int | None = None
    group: str | None = None
    rack: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """All nodes there are now, and how long to wait before asking again."""

    found: list[Found]
    pause_seconds: float
    problems: list[str] = []


class Question(Protocol):
    """What is asked of whom; its text names it in messages.

    `ask` waits for the next answer, with a deadline of its own. It raises DiscoveryError where there is none or only a
    part of it, and leaves nothing behind when it is cancelled. `first`: the answer is wanted now, changed or not.
    """

    async def ask(self, first: bool) -> Answer: ...


class Asked:
    """A question that is asked again and again, from now until it is closed.

    A failure keeps the nodes of the last answer. An empty answer is an answer: then there are no nodes.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._answer: Answer | None = None
        self._failure: str | None = None
        self._changes = 0
        # What is to be told at the next good answer, because a failure was told.
        self._recovery = ""
        self._first = threading.Event()
        self._patient_until = time.monotonic() + FIRST_SECONDS
        self._loop = asyncio.new_event_loop()
        self._asking = self._loop.create_task(self._ask_on())
        # A daemon: whatever it waits for must not keep gpulse from ending.
        threading.Thread(target=self._run, name=str(question), daemon=True).start()

    def targets(self, defaults: Reach, problem: Problem) -> list[Target]:
        """The nodes of the last good answer; waits a little for the first. It never fails."""
        self._first.wait(max(0.0, self._patient_until - time.monotonic()))
        answer, failure = self._answer, self._failure
        if answer is None:
            problem(failure or f"{self._question}: has not answered yet; it is asked on")
            self._recovery = "answers now"
            return []
        if failure is not None:
            problem(f"{failure}; the nodes it listed before are kept")
            self._recovery = "answers again"
        elif self._recovery:
            problem(f"{self._question}: {self._recovery}")
            self._recovery = ""
        for words in answer.problems[:MOST_PROBLEMS]:
            problem(f"{self._question}: {words}")
        if len(answer.problems) > MOST_PROBLEMS:
            problem(f"{self._question}: and {len(answer.problems) - MOST_PROBLEMS} more such nodes")
        if not answer.found:
            problem(f"{self._question}: lists no node")
        # Two services of a node are one node where it is not the service that is asked.
        return list(dict.fromkeys(_target(found, defaults) for found in answer.found))

    def mark(self) -> int:
        return self._changes

    def close(self) -> None:
        # The loop is gone where it was closed before.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._asking.cancel)

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._asking)
        finally:
            self._loop.close()

    async def _ask_on(self) -> None:
        failures = 0
        while True:
            try:
                answer = await self._question.ask(first=self._answer is None or failures > 0)
            except DiscoveryError as error:
                failures += 1
                self._put(self._answer, f"{self._question}: {error}")
            except Exception as error:  # noqa: BLE001 - it is told, and the question is asked on
                _log.exception("%s: a fault of gpulse", self._question)
                failures += 1
                self._put(self._answer, f"{self._question}: a fault of gpulse: {type(error).__name__}: {error}")
            else:
                failures = 0
                self._put(answer, None)
                await asyncio.sleep(answer.pause_seconds)
                continue
            await asyncio.sleep(_jitter(0.5, 1.0) * min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE_SECONDS))

    def _put(self, answer: Answer | None, failure: str | None) -> None:
        changed = failure != self._failure or _nodes(answer) != _nodes(self._answer)
        self._answer, self._failure = answer, failure
        self._changes += changed
        self._first.set()


def _nodes(answer: Answer | None) -> tuple[list[Found], list[str]] | None:
    return (answer.found, answer.problems) if answer else None


def _target(found: Found, defaults: Reach) -> Target:
    """What the table says of a port is meant; the service's own is where an agent listens, never where sshd does."""
    port = found.port if defaults.transport == "pull" and not defaults.port else None
    target = target_of(Address(found.host, port), defaults)
    return msgspec.structs.replace(
        target, name=found.name, called=found.name, group=found.group or target.group, rack=found.rack or target.rack
    )
