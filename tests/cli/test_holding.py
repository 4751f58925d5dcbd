"""gpulse free --hold beside reservations of one's own; whose a reservation is, and what is told of a node."""

import json
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from gpulse.reservations.dates import shown
from tests.cli.booking_site import ZONE, Running, running

MINUTE = 60.0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        yield made


def own_until(hub: Running, minutes: float, *places: str) -> float:
    end = hub.site.clock.now + minutes * MINUTE
    hub.site.made(*places, end=end)
    hub.site.tick()
    return end


def held(hub: Running) -> list[tuple[str, float, float]]:
    """What is held, now or soon: where, from when, until when."""
    found = hub.site.table.between(hub.site.clock.now, float("inf"))
    return [(" ".join(map(str, one.places)), one.start, one.end) for one in found if one.hold]


def test_held_on_when_ones_own_reservation_ends(hub: Running):
    asked = hub.site.clock.now
    end = own_until(hub, 5, "gpu2:3")
    done = hub.run("free", "--hold", "10m", "--export")
    assert (done.returncode, done.stdout) == (0, "export CUDA_VISIBLE_DEVICES=3\n")
    ((where, start, until),) = held(hub)
    assert (where, start) == ("gpu2:3", end)
    assert asked + 9 * MINUTE < until < asked + 13 * MINUTE
    (told,) = [line for line in done.stderr.splitlines() if "on gpu2" not in line]
    assert told.startswith("gpulse: your own reservation ends ")
    assert "; gpu2:3 held until " in told
    assert " lets go of them" in told
    # Nobody else finds it meanwhile, nor when the reservation is over.
    hub.site.tick(6 * MINUTE)
    assert hub.site.ask("free?n=3&q=node:gpu2", who="admin").json()["found"] is False
    assert hub.site.ask("free?n=2&q=node:gpu2", who="admin").json()["found"] is True


def test_some_of_ones_own_and_some_that_are_free(hub: Running):
    asked = hub.site.clock.now
    end = own_until(hub, 5, "gpu1:2")
    done = hub.run("free", "-n", "2", "--hold", "10m", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert [gpu["id"] for gpu in told["gpus"]] == ["GPU-gpu1-1", "GPU-gpu1-2"]
    first, second = sorted(held(hub))
    assert (first[0], second[0], second[1]) == ("gpu1:1", "gpu1:2", end)
    assert min(first[2], second[2]) > asked + 9 * MINUTE
    assert told["hold"]["gpus"][0]["index"] == "1"


def test_what_is_reserved_for_longer_needs_no_hold(hub: Running):
    own_until(hub, 30, "gpu2:3")
    done = hub.run("free", "--hold", "10m", "--export")
    assert "they are reserved for you already" in done.stderr
    assert held(hub) == []


def test_held_no_longer_than_until_ones_next(hub: Running):
    end = own_until(hub, 5, "gpu2:3")
    hub.site.made("gpu2:3", start=end + MINUTE, end=end + 60 * MINUTE)
    hub.site.tick()
    done = hub.run("free", "--hold", "10m", "--export")
    assert (done.returncode, held(hub)) == (0, [("gpu2:3", end, end + MINUTE)])
    assert ", when your own reservation begins; " in done.stderr


def test_who_has_one_after_the_other_needs_no_hold(hub: Running):
    end = own_until(hub, 5, "gpu2:3")
    hub.site.made("gpu2:3", start=end, end=end + 60 * MINUTE)
    hub.site.tick()
    done = hub.run("free", "--hold", "10m", "--export")
    assert (done.returncode, held(hub)) == (0, [])
    assert "they are reserved for you already" in done.stderr


def test_it_says_what_it_could_not_hold(hub: Running):
    """Between the answer and the hold somebody else has reserved what comes after."""
    end = own_until(hub, 5, "gpu2:3")
    hub.site.made_elsewhere("gpu2:3", start=end + MINUTE, end=end + 60 * MINUTE)
    done = hub.run("free", "--hold", "10m", "--export")
    assert (done.returncode, held(hub)) == (0, [])
    assert "gpulse: not held after your own reservation ends " in done.stderr
    assert "gpu2:3 is reserved at that time" in done.stderr


def test_what_is_held_is_kept_by_reserving_it(hub: Running):
    found = hub.run("free", "-n", "2", "--hold", "10m", "--json")
    hold = json.loads(found.stdout)["hold"]["id"]
    # Held for longer it cannot be, and what is said then can be done.
    refused = hub.run("extend", hold, "2h")
    assert (refused.returncode, "or reserve them" in refused.stderr) == (2, True)
    assert hub.run("reserve", "gpu1:1-2", "--for", "2h").returncode == 0
    assert hub.reserved() == [("member", "gpu1:1 gpu1:2", False)]


def test_a_part_of_what_is_held_is_not_taken_from_it(hub: Running):
    hold = json.loads(hub.run("free", "-n", "2", "--hold", "10m", "--json").stdout)["hold"]["id"]
    done = hub.run("reserve", "gpu1:1", "--for", "2h")
    assert done.returncode == 1
    assert f"    it is held for you: gpulse cancel {hold} lets go of it" in done.stderr.splitlines()


def test_how_much_longer_it_can_be(hub: Running):
    now = hub.site.clock.now
    mine = hub.site.made("gpu2:1", end=now + 60 * MINUTE)
    hub.site.made("gpu2:1", start=now + 90 * MINUTE, end=now + 120 * MINUTE, who="admin")
    hub.site.tick(10 * MINUTE)
    done = hub.run("extend", mine["id"], "4h")
    assert done.returncode == 1
    offers = [line for line in done.stderr.splitlines() if line.startswith("  instead: ")]
    assert offers[0] == f"  instead: gpu2:1 from {moment(now)} until {moment(now + 90 * MINUTE)}"
    # Nothing else of what is offered has passed.
    assert not [line for line in offers[1:] if f"from {moment(now)}" in line]
    assert hub.run("extend", mine["id"], "--until", moment(now + 90 * MINUTE)).returncode == 0


def moment(seconds: float) -> str:
    return shown(datetime.fromtimestamp(math.floor(seconds), ZoneInfo(ZONE)))


def test_a_person_by_what_people_call_them(hub: Running):
    settings = hub.site.fleet.settings
    hub.site.fleet.settings = msgspec.structs.replace(
        settings, people={"alice": "Alice Liddell", "bob": "The Other", "rob": "The Other"}
    )
    named = [("Alice Liddell", "alice"), (" alice ", "alice"), ("The Other", "The Other")]
    for index, (written, login) in enumerate(named, 1):
        done = hub.run("reserve", f"gpu2:{index}", "--for", "1h", "--person", written, "--json", who="admin")
        assert json.loads(done.stdout)["person"] == login
    assert hub.run("reserve", "gpu1:1", "--for", "1h", "--person", "  ", who="admin").returncode == 2


def test_no_shows_are_told_with_their_node(hub: Running):
    hub.site.made("gpu1:1", "gpu2:1", who="admin")
    hub.site.made("gpu1:2", who="admin")
    hub.site.tick(31 * MINUTE)

    def told(*words: str) -> list[tuple[str, str]]:
        page = json.loads(hub.run("reservations", *words, "--json").stdout)
        by_id = {one["id"]: len(one["gpus"]) for one in page["reservations"]}
        return sorted((one["kind"], by_id[one["reservation"]]) for one in page["findings"])

    assert told("--node", "gpu2") == [("no_show", 2)]
    assert told("--node", "gpu1") == told() == [("no_show", 1), ("no_show", 2)]


def test_what_is_held_must_be_free_for_as_long(hub: Running):
    """Also where it is wanted for less than that."""
    now = hub.site.clock.now
    # All but one are somebody else's in seven minutes.
    for place in ("gpu1:1", "gpu1:2", "gpu1:3", "gpu2:0", "gpu2:1", "gpu2:2"):
        hub.site.made(place, start=now + 420, end=now + 3600, who="admin")
    hub.site.tick()
    found = hub.run("free", "--for", "5m", "--hold", "10m")
    assert (found.returncode, "gpu2" in found.stdout) == (0, True), found.stderr
    assert hub.reserved() == [("member", "gpu2:3", True)]
