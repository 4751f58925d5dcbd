"""Computes password hashes beside the loop, not too many at once; addresses take turns."""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from gpulse.errors import SignInRefused

T = TypeVar("T")
AT_ONCE, WAITING = 2, 32
_RETRY_SECONDS = 5


class _Job(NamedTuple):
    future: "Future[Any]"
    work: Callable[[], Any]


class HashQueue:
    """One queue for all, so that how long one waits tells nothing about the account that was asked for.

    Whoever asks for many makes others at their own address wait, and no one else: addresses take turns, and when the
    queue is full it is the address with the most in it that is refused.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, "gpulse-password")
        self._lock = threading.Lock()
        # By address, the one whose turn is next first.
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self.asked = 0

    async def run(self, work: Callable[[], T], address: str) -> T:
        """Raise SignInRefused if too many ask at this moment."""
        job = _Job(Future(), work)
        with self._lock:
            refused = self._room(address)
            self._waiting.setdefault(address, deque()).append(job)
            self.asked += 1
        if refused is not None:
            refused.future.set_exception(_busy())
        job.future.add_done_callback(lambda _: self._done(address, job))
        self._threads.submit(self._next)
        # Who asked may go; a thread that has begun works on, and counts until it is done.
        return await asyncio.wrap_future(job.future)

    def close(self) -> None:
        self._threads.shutdown()

    def _room(self, address: str) -> _Job | None:
        """Return who has to give way; raise if it is the one who asks."""
        if self.asked < AT_ONCE + WAITING:
            return None
        own = len(self._waiting.get(address, ()))
        most = max(self._waiting, key=lambda one: len(self._waiting[one]), default=address)
        if len(self._waiting.get(most, ())) <= own + 1:
            raise _busy()
        return self._waiting[most].pop()

    def _next(self) -> None:
        """Compute one hash, of the address whose turn it is."""
        with self._lock:
            job = self._turn()
        if job is None:
            return
        try:
            job.future.set_result(job.work())
        except Exception as error:  # noqa: BLE001 - whoever waits for it raises it
            job.future.set_exception(error)

    def _turn(self) -> _Job | None:
        while self._waiting:
            address, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft() if jobs else None
            if jobs:
                self._waiting[address] = jobs
            if job is not None and job.future.set_running_or_notify_cancel():
                return job
        return None

    def _done(self, address: str, job: _Job) -> None:
        with self._lock:
            self.asked -= 1
            jobs = self._waiting.get(address)
            if jobs is not None and job in jobs:
                # Who asked has gone before their turn.
                jobs.remove(job)


def _busy() -> SignInRefused:
    return SignInRefused(
        503, "busy", "too many people sign in at this moment", "try again in some seconds", _RETRY_SECONDS
    )
