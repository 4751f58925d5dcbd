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
# Who shares an address with somebody who guesses waits no longer than this, and a failure of it is gone after as long.
_LONGEST_BY_ADDRESS_SECONDS = 60.0
_FORGOTTEN_SECONDS = 3600.0
_MOST = 10_000
_THIS_MACHINE = "this machine"


class _Count(NamedTuple):
    failures: float
    last: float


class Attempts:
    """`begin` counts an attempt as failed until `succeeded` says otherwise: many at once are many.

    It counts names, whether there are such accounts or not, in memory, and no more than ten thousand of them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._clock = clock
        self._names = _Counts(_FREE, most, _LONGEST_WAIT_SECONDS)
        self._addresses = _Counts(_FREE_BY_ADDRESS, most, _LONGEST_BY_ADDRESS_SECONDS, _LONGEST_BY_ADDRESS_SECONDS)

    def begin(self, name: str, address: str) -> None:
        """SignInRefused with the time to wait, whatever the password. Without a name, only the address counts."""
        now = self._clock()
        who, where = folded(name[:1000]), place(address)
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
        self._addresses.take_back(place(address))


class _Counts:
    """Failures by what they are counted for, the one that failed last at the end.

    One of them is forgotten after each `decay` seconds, and all of them after an hour without a further one.
    """

    def __init__(self, free: int, most: int, longest: float, decay: float = math.inf) -> None:
        self._free = free
        self._most = most
        self._longest = longest
        self._decay = decay
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def wait(self, what: str, now: float) -> float:
        count = self._counts.get(what)
        # One that is half forgotten still counts.
        if count is None or math.ceil(count.failures) < self._free or now - count.last >= _FORGOTTEN_SECONDS:
            return 0.0
        doubled = min(max(0.0, count.failures - self._free), 20.0)
        return count.last + min(_FIRST_WAIT_SECONDS * math.exp2(doubled), self._longest) - now

    def add(self, what: str, now: float) -> None:
        count = self._counts.pop(what, None)
        left = 0.0
        if count is not None and now - count.last < _FORGOTTEN_SECONDS:
            left = max(0.0, count.failures - (now - count.last) / self._decay)
        self._counts[what] = _Count(left + 1, now)
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)

    def clear(self, what: str) -> None:
        self._counts.pop(what, None)

    def take_back(self, what: str) -> None:
        count = self._counts.get(what)
        if count is not None:
            self._counts[what] = count._replace(failures=max(0.0, count.failures - 1))


def place(address: str) -> str:
    """Whoever has one address of an IPv6 network has all of them, and everybody on this machine all of 127.0.0.0/8."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return _THIS_MACHINE if found.is_loopback else str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
        found = found.ipv4_mapped
    return _THIS_MACHINE if found.is_loopback else str(found)
