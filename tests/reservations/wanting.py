"""Short ways to write what somebody would like to have."""

from gpulse.reservations.model import Place, Reservation, Wanted
from gpulse.reservations.rules import By

NOW = 1_800_000_000.0
HOUR, DAY = 3600.0, 86400.0
ANN, BOB, ROOT = By("ann"), By("bob"), By("root", admin=True)


def place(text: str) -> Place:
    node, _, index = text.partition(":")
    return Place(node, index)


def places(text: str) -> tuple[Place, ...]:
    return tuple(place(word) for word in text.split())


def wanted(where: str, start: float = 0, end: float = 1, person: str = "ann", **more: object) -> Wanted:
    """`start` and `end` in hours from NOW."""
    return Wanted(
        person=person,
        places=places(where),
        start=NOW + start * HOUR,
        end=NOW + end * HOUR,
        **more,  # type: ignore[arg-type]
    )


def reservation(where: str, start: float = 0, end: float = 1, person: str = "ann", **more: object) -> Reservation:
    """As `wanted`, and there already."""
    fields: dict[str, object] = {"id": f"{person}{start}{end}{where}", "maker": person, "made_at": NOW, "revision": 1}
    return Reservation(
        person=person,
        places=places(where),
        start=NOW + start * HOUR,
        end=NOW + end * HOUR,
        **(fields | more),  # type: ignore[arg-type]
    )
