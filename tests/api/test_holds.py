"""What is held becomes what is reserved; and what somebody has just got is offered to nobody any more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.booking import HOUR, NOW, Site, code

MINUTE = 60.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def states(site: Site) -> list[tuple[str, str]]:
    """The oldest first: of each whether it is a hold, and whether it is of now."""
    found = site.ask("reservations").json()["reservations"]
    told = sorted(found, key=lambda one: one["revision"])
    return [("hold" if one["hold"] else "reservation", one["state"]) for one in told]


def test_what_is_held_is_reserved_in_one_step(site: Site):
    hold = site.made("gpu2:1", "gpu2:2", hold=True, **{"for": "10m"})
    site.tick(MINUTE)
    planned = site.reserve("gpu2:1", "gpu2:2", "gpu2:3", dry_run=True)
    assert (planned.status_code, states(site)) == (200, [("hold", "now")])
    made = site.made("gpu2:1", "gpu2:2", "gpu2:3")
    assert (made["start"], made["end"]) == (NOW + MINUTE, NOW + MINUTE + 2 * HOUR)
    assert sorted(states(site)) == [("hold", "over"), ("reservation", "now")]
    history = site.ask(f"reservations/{hold['id']}").json()["history"]
    assert [one["action"] for one in history] == ["made", "ended"]
    site.tick(MINUTE)
    # Both are told of, in the words of what was done.
    deeds = [(one["action"], one["target"]) for one in site.ask("audit", who="admin").json()["items"]]
    assert {("reservation.make", made["id"]), ("reservation.end", hold["id"])} <= set(deeds)


def test_what_is_held_is_picked(site: Site):
    """By who wishes for as many: also where they may have no more than that, or there is nothing else."""
    hold = site.made("gpu2:1", "gpu2:2", "gpu2:3", hold=True, **{"for": "10m"})
    made = site.ask("reservations", "POST", {"wish": {"n": 3}, "for": "2h"}).json()
    assert [(gpu["node"], gpu["index"]) for gpu in made["gpus"]] == [("gpu2", str(index)) for index in (1, 2, 3)]
    assert site.ask(f"reservations/{hold['id']}").json()["state"] == "over"
    # Not by another hold, and not for others.
    other = site.made("gpu1:1", "gpu1:2", hold=True, who="admin", **{"for": "10m"})
    again = {"wish": {"n": 2}, "for": "10m"}
    assert code(site.ask("reservations", "POST", again | {"hold": True}, "admin"), 409) == "conflict"
    assert code(site.ask("reservations", "POST", again | {"person": "viewer"}, "admin"), 409) == "conflict"
    assert site.ask(f"reservations/{other['id']}").json()["state"] == "now"


def test_what_is_held_from_soon_on_is_taken_over_too(site: Site):
    hold = site.made("gpu2:1", start=NOW + 3 * MINUTE, end=NOW + 10 * MINUTE, hold=True)
    site.made("gpu2:1")
    assert site.ask(f"reservations/{hold['id']}").json()["state"] == "cancelled"


def test_what_is_held_counts_no_more(site: Site):
    """Of five that one may have the fifth takes the place of the hold, which was the fifth before."""
    for hour in range(4):
        site.made("gpu1:1", start=NOW + (10 + hour) * HOUR, end=NOW + (11 + hour) * HOUR)
    site.made("gpu2:1", hold=True, **{"for": "10m"})
    assert code(site.reserve("gpu2:2"), 422) == "too_many"
    site.made("gpu2:1")


@pytest.mark.parametrize(
    ("places", "more", "who"),
    [
        # A part of what is held: the rest would be lost.
        (["gpu2:1"], {}, "member"),
        # Later: what is held until then would be lost.
        (["gpu2:1", "gpu2:2"], {"start": NOW + 5 * MINUTE}, "member"),
        # Another hold: what one program has found is not for another.
        (["gpu2:1", "gpu2:2"], {"hold": True, "for": "10m"}, "member"),
        # Somebody else's.
        (["gpu2:1", "gpu2:2"], {}, "admin"),
    ],
)
def test_what_does_not_take_a_hold(site: Site, places: list[str], more: dict[str, object], who: str):
    site.made("gpu2:1", "gpu2:2", hold=True, **{"for": "10m"})
    refused = site.reserve(*places, who=who, **more)
    assert code(refused, 409) == "conflict"
    assert refused.json()["error"]["conflicts"][0]["hold"] is True
    assert states(site) == [("hold", "now")]


def test_a_hold_is_changed_by_whose_it_is_and_while_it_is_there(site: Site):
    hold = site.made("gpu2:1", hold=True, who="admin", **{"for": "10m"})
    path = f"reservations/{hold['id']}"
    assert code(site.ask(path, "PATCH", {"extend": "2h"}), 403) == "not_yours"
    assert code(site.ask(path, "PATCH", {"extend": "2h"}, who="admin"), 422) == "too_long"
    assert site.ask(path, "PATCH", {"extend": "10m"}, who="admin").status_code == 200
    site.ask(path, "DELETE", who="admin")
    assert code(site.ask(path, "PATCH", {"extend": "2h"}, who="admin"), 409) == "over"


def test_free_knows_at_once_what_was_reserved_and_let_go(site: Site):
    """Within the same second, and though the same was asked before."""

    def free() -> int:
        return sum(site.ask(f"free?n={n}&q=node:gpu2", who=None).json()["found"] for n in range(1, 5))

    def counted() -> int:
        gpus = site.ask("nodes/gpu2", who=None).json()["gpus"]
        return [gpu["state"] for gpu in gpus].count("free")

    before = free()
    assert (before, counted()) == (3, 3)
    made = site.made("gpu2:1", "gpu2:2")
    assert (free(), counted()) == (1, 1)
    site.ask(f"reservations/{made['id']}", "PATCH", {"gpus": [{"node": "gpu2", "index": 1}]})
    assert (free(), counted()) == (2, 2)
    site.ask(f"reservations/{made['id']}", "DELETE")
    assert (free(), counted()) == (3, 3)


def offers(answer: object) -> list[tuple[str, float, float]]:
    error = answer.json()["error"]  # type: ignore[attr-defined]
    return [
        (" ".join(f"{gpu['node']}:{gpu['index']}" for gpu in one["gpus"]), one["start"] - NOW, one["end"] - NOW)
        for one in error["alternatives"]
    ]


def test_what_is_offered_to_who_wants_more_time_is_to_come(site: Site):
    made = site.made("gpu2:1")
    site.made("gpu2:1", start=NOW + 3 * HOUR, end=NOW + 5 * HOUR, who="admin")
    site.tick(HOUR)
    refused = site.ask(f"reservations/{made['id']}", "PATCH", {"extend": "4h"})
    assert code(refused, 409) == "conflict"
    longer, later, *elsewhere = offers(refused)
    # As long as it can be, then the four hours when they can be had, then at once on others.
    assert longer == ("gpu2:1", 0, 3 * HOUR)
    assert later == ("gpu2:1", 5 * HOUR, 9 * HOUR)
    assert [(start, end) for _, start, end in elsewhere] == [(2 * HOUR, 6 * HOUR)]
    assert site.ask(f"reservations/{made['id']}", "PATCH", {"end": NOW + longer[2]}).status_code == 200


def test_nothing_is_offered_that_would_be_refused(site: Site):
    site.made("gpu1:1", "gpu1:2", "gpu1:3", start=NOW + 6 * HOUR, end=NOW + 8 * HOUR)
    site.made("gpu2:1", "gpu2:2", start=NOW + HOUR, end=NOW + 6 * HOUR, who="admin")
    refused = site.reserve("gpu2:1", "gpu2:2", start=NOW + 5 * HOUR, end=NOW + 6 * HOUR)
    # Right after it the three others would make five, and four are allowed.
    assert [start for _, start, _ in offers(refused)] == [5 * HOUR]
    for places, start, end in offers(refused):
        site.made(*places.split(), start=NOW + start, end=NOW + end)
