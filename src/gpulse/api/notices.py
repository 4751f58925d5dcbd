"""What whoever reserves should know besides: it is reserved all the same."""

from collections.abc import Iterator

from gpulse.api.hub import Hub
from gpulse.api.reservation_views import Views
from gpulse.auth.identity import Identity
from gpulse.fleet import state
from gpulse.fleet.booked import index_of
from gpulse.fleet.node import Node
from gpulse.reservations.model import Place, Reservation
from gpulse.reservations.places_text import places_text
from gpulse.reservations.rules import LATE_SECONDS
from gpulse.reservations.uses import at_place, people_on

_MOST_NAMED = 3


def of_new(hub: Hub, made: Reservation, who: Identity, views: Views, now: float) -> str | None:
    """Of one that is being made: whose name nobody knows, and, where it begins now, what is not free."""
    told = []
    if made.person != who.name and (stranger := of_person(hub, made.person)):
        told.append(stranger)
    if made.start - now <= LATE_SECONDS:
        found = list(_taken(hub, made, views))
        told += [line for line, _ in found[:_MOST_NAMED]]
        more = sum(gpus for _, gpus in found[_MOST_NAMED:])
        if more:
            told.append(f"and {more} more of them {'are' if more > 1 else 'is'} in use or down")
    return "; ".join(told) or None


def of_person(hub: Hub, login: str) -> str | None:
    """Where nobody is known by a name it may be misspelt; yet people can come later."""
    if login in hub.fleet.logins or login in hub.fleet.settings.people:
        return None
    if hub.access.directory.accounts.by_name(login) is not None:
        return None
    return f"nobody is known here as {login!r}: there is no account of that name, and no process"


def _taken(hub: Hub, made: Reservation, views: Views) -> Iterator[tuple[str, int]]:
    """A line for each node that is down, and for those GPUs of a node that the same people are on; and of how many."""
    by_node: dict[str, list[Place]] = {}
    for place in made.places:
        by_node.setdefault(place.node, []).append(place)
    for name, places in by_node.items():
        # It may have been taken away since.
        if not hub.fleet.has(name):
            continue
        node = hub.fleet.known(name)
        if hub.fleet.node_columns.state[node.slot] != state.UP:
            yield f"{name} is not up now", len(places)
            continue
        unknown = _unknown(hub, node, places)
        if unknown:
            yield (
                f"whether {places_text(unknown)} {'are' if len(unknown) > 1 else 'is'} in use is unknown",
                len(unknown),
            )
        people = people_on(node)
        by_people: dict[str, list[Place]] = {}
        for place in places:
            if place in unknown:
                continue
            others = [login for login in at_place(place, people) if login != made.person]
            if others:
                told = sorted("somebody" if login is None else views.login(login) for login in others)
                by_people.setdefault(", ".join(told), []).append(place)
        for who, used in by_people.items():
            yield f"{places_text(used)} {'are' if len(used) > 1 else 'is'} in use now by {who}", len(used)


def _unknown(hub: Hub, node: Node, places: list[Place]) -> list[Place]:
    """Find those of its places where nobody can say who is there."""
    codes = hub.fleet.gpu_columns.state[node.start : node.start + node.count].tolist()
    found = {index_of(gpu) for gpu, code in zip(node.gpus, codes, strict=True) if code == state.UNKNOWN}
    return [place for place in places if place.index in found]
