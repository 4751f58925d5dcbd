"""Attempts to sign in: after some failures, by account or by address, the next has to wait, and ever longer."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gpulse.auth.account_names import folded
from gpulse.errors import SignInRefused

_FREE = 5
# Behind one proxy, and on the hub's own machine, everybody has one address.
_FREE_BY_ADDRESS = 20
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 5.0, 900.0
_FORGOTTEN_SECONDS = 3600.0
_MOST = 10_000


class _Count(NamedTuple):
    failures: int
    last: float


class Attempts:
    """`begin` counts an attempt as failed until `succeeded` says otherwise: many at once are many.

    It counts names, whether there are such accounts or not, in memory, and no more than ten thousand of them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._clock = clock
        self._names = _Counts(_FREE, most)
        self._addresses = _Counts(_FREE_BY_ADDRESS, most)

    def begin(self, name: str, address: str) -> None:
        """SignInRefused with the time to wait, whatever the password. Without a name, only the address counts."""
        now = self._clock()
        who, where = folded(name[:1000]), _place(address)
        wait = max(self._names.wait(who, now) if who else 0.0, self._addresses.wait(where, now))
        if wait > 0:
            seconds = math.ceil(wait)
            raise SignInRefused(
                429,
                "too_many_attempts",
                f"there were too many attempts to sign in; wait {seconds} s",
                "the right password is refused too until then",
                seconds,
            )
        if who:
            self._names.add(who, now)
        self._addresses.add(where, now)

    def succeeded(self, name: str, address: str) -> None:
        """Clears the account, not the address: who owns one account cannot guess at others for ever."""
        self._names.clear(folded(name[:1000]))
        self._addresses.take_back(_place(address))


class _Counts:
    """Failures by what they are counted for, the one that failed last at the end."""

    def __init__(self, free: int, most: int) -> None:
        self._free = free
        self._most = most
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def wait(self, what: str, now: float) -> float:
        count = self._counts.get(what)
        if count is None or count.failures < self._free:
            return 0.0
        if now - count.last >= _FORGOTTEN_SECONDS:
            return 0.0
        doubled = min(count.failures - self._free, 20)
        return count.last + min(_FIRST_WAIT_SECONDS * 2.0**doubled, _LONGEST_WAIT_SECONDS) - now

    def add(self, what: str, now: float) -> None:
        count = self._counts.pop(what, None)
        old = 0 if count is None or now - count.last >= _FORGOTTEN_SECONDS else count.failures
        self._counts[what] = _Count(old + 1, now)
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)

    def clear(self, what: str) -> None:
        self._counts.pop(what, None)

    def take_back(self, what: str) -> None:
        count = self._counts.get(what)
        if count is not None:
            self._counts[what] = count._replace(failures=max(0, count.failures - 1))


def _place(address: str) -> str:
    """Of IPv6 the network: whoever has one has all its addresses."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
    return str(found)
