"""A machine that is listed under two names: what is reserved under the one is reserved under the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.fleet.places import Place
from tests.api.booking import HOUR, NOW, Site, code
from tests.api.fleets import card, snapshot


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """gpu1 is also listed as `alias`, where an admin has reserved its GPU 1 now and its GPU 2 in three hours."""
    made = Site(tmp_path)
    made.fleet.place(Place(name="alias"))
    made.fleet.line("alias", snapshot("gpu1", [card(f"GPU-gpu1-{index}", index) for index in range(4)]))
    made.made_elsewhere("alias:1", end=NOW + HOUR)
    made.made_elsewhere("alias:2", start=NOW + 3 * HOUR, end=NOW + 4 * HOUR)
    made.tick()
    yield made
    made.close()


def state(site: Site, index: int) -> str:
    return str(site.ask("nodes/gpu1").json()["gpus"][index]["state"])


def test_it_is_not_offered_under_the_other_name(site: Site):
    assert [state(site, index) for index in (1, 2, 3)] == ["reserved", "free", "free"]
    assert site.ask("free?n=3&q=node:gpu1").json()["found"] is False
    assert site.ask("free?n=2&q=node:gpu1").json()["found"] is True
    assert site.ask("free?n=2&q=node:gpu1&for=4h").json()["found"] is False
    assert site.ask("free?n=3&q=node:gpu1&for=4h", who="admin").json()["found"] is True


def test_it_is_not_picked_under_the_other_name(site: Site):
    wish = {"wish": {"n": 2, "q": "node:gpu1"}, "for": "4h", "dry_run": True}
    assert code(site.ask("reservations", "POST", wish), 409) == "conflict"
    picked = site.ask("reservations", "POST", {**wish, "for": "2h"}).json()["gpus"]
    assert [(one["node"], one["index"]) for one in picked] == [("gpu1", "2"), ("gpu1", "3")]


def test_it_cannot_be_reserved_under_the_other_name(site: Site):
    assert code(site.reserve("gpu1:1"), 409) == "conflict"
    made = site.made("gpu1:2")
    assert code(site.ask(f"reservations/{made['id']}", "PATCH", {"extend": "2h"}), 409) == "conflict"
    site.made("gpu1:1", start=NOW + HOUR, end=NOW + 2 * HOUR)


def test_nobody_reserves_by_the_second_name(site: Site):
    refused = site.reserve("alias:3")
    assert code(refused, 422) == "same_machine"
    assert "reserve gpu1:3" in refused.json()["error"]["detail"]
    assert code(site.ask("reservations", "POST", {"gpus": [{"node": "alias"}], "for": "1h"}), 422) == "same_machine"


def test_it_is_as_before_once_the_second_name_is_gone(site: Site):
    site.fleet.remove("alias")
    site.tick()
    assert state(site, 1) == "free"
    assert site.fleet.counted_places == {}
