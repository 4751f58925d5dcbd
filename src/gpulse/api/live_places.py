"""How many may watch at once: nobody takes all places, and some are kept for people who are signed in."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpulse.auth.attempts import place
from gpulse.auth.identity import Identity
from gpulse.errors import RequestError

# A wall of screens, or somebody with many tabs.
BY_ACCOUNT = 50
# Of those who are not signed in: behind one NAT or proxy there are many.
BY_ADDRESS = 100
# Different streams, by a filter or the like: each of them costs the hub time.
OWN_STREAMS = 8
# One place in so many is for people who are signed in.
_KEPT = 4


@dataclass(frozen=True, eq=False)
class _Seat:
    who: str
    signed_in: bool
    # None: one that all watch alike, which costs no more for one of them more.
    stream: Hashable


class Places:
    """Who watches. An account has its share of the places; who is not signed in shares that of the address."""

    def __init__(self, most_listeners: int, most_streams: int):
        self._most_listeners = most_listeners
        self._most_streams = most_streams
        self._seats: set[_Seat] = set()

    @property
    def taken(self) -> int:
        return len(self._seats)

    @contextmanager
    def take(self, who: Identity, address: str, stream: Hashable = None) -> Iterator[None]:
        """A place while somebody watches; RequestError where there is none. `stream`: None for a common one."""
        seat = _Seat(who.account or place(address), who.account is not None, stream)
        self._check_listeners(seat)
        if stream is not None and all(one.stream != stream for one in self._seats):
            self._check_streams(seat)
        self._seats.add(seat)
        try:
            yield
        finally:
            self._seats.discard(seat)

    def _check_listeners(self, seat: _Seat) -> None:
        share = BY_ACCOUNT if seat.signed_in else BY_ADDRESS
        strangers = sum(not one.signed_in for one in self._seats)
        if sum(one.who == seat.who for one in self._seats) >= share:
            whose = "your account" if seat.signed_in else "your address"
            raise _full("too_many_listeners", f"{whose} has its most listeners already ({share}); close some")
        if len(self._seats) >= self._most_listeners:
            raise _full("too_many_listeners", f"the hub has its most listeners already ({self._most_listeners})")
        if not seat.signed_in and strangers >= _open_to_all(self._most_listeners):
            raise _full("too_many_listeners", "the places that are left are for people who sign in")

    def _check_streams(self, seat: _Seat) -> None:
        streams = {one.stream for one in self._seats} - {None}
        own = {one.stream for one in self._seats if one.who == seat.who} - {None}
        strangers = {one.stream for one in self._seats if not one.signed_in} - {None}
        if len(own) >= OWN_STREAMS:
            raise _full("too_many_streams", f"you watch {OWN_STREAMS} different streams already; close some")
        if len(streams) >= self._most_streams:
            message = f"the hub makes {self._most_streams} different streams already; try without a filter"
            raise _full("too_many_streams", message)
        if not seat.signed_in and len(strangers) >= _open_to_all(self._most_streams):
            raise _full("too_many_streams", "the filters that are left are for people who sign in; try without one")


def _open_to_all(most: int) -> int:
    return most - most // _KEPT


def _full(code: str, message: str) -> RequestError:
    return RequestError(503, code, message)
