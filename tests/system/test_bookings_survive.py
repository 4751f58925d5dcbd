"""What was acknowledged is there after kill -9, once and whole."""

import contextlib
import json
import sqlite3
import time
from collections import Counter, defaultdict
from random import Random

import httpx
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.system.agents import until
from tests.system.booking import GPUS, HOUR, NODE, all_of, operator, set_up
from tests.system.booking_hubs import BookingHubs
from tests.system.booking_lanes import Booker, Lane, check

ROUNDS = 20
KINDS = ("made", "changed", "ended", "cancelled")


@contextlib.contextmanager
def started(hubs, folder):
    """Somebody who may do everything, at a hub that knows its cards."""
    url = hubs.start()
    # Written before it answers anybody.
    httpx.get(f"{url}healthz", timeout=PATIENCE_SECONDS)
    with operator(url, folder) as client:
        end = time.monotonic() + PATIENCE_SECONDS
        while len(client.get(f"api/v1/nodes/{NODE}").json().get("gpus", ())) < GPUS:
            assert time.monotonic() < end, hubs.log.read_text("utf-8", "replace")
            time.sleep(0.02)
        yield client


def kept(path):
    """The histories as they are in the database, which is whole; by reservation, what was done and how it was then."""
    histories = defaultdict(list)
    driver = sqlite3.connect(path)
    try:
        assert driver.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert driver.execute("PRAGMA foreign_key_check").fetchall() == []
        query = 'SELECT reservation, action, "before", "after" FROM reservation_changes ORDER BY id'
        for identity, action, before, after in driver.execute(query):
            earlier = histories[identity][-1][1] if histories[identity] else None
            assert (None if before is None else json.loads(before)) == earlier
            histories[identity].append((action, json.loads(after)))
        (noted,) = driver.execute("SELECT count(*) FROM audit WHERE action LIKE 'reservation.%'").fetchone()
    finally:
        driver.close()
    return histories, noted


def told(lanes):
    """How often each thing was acknowledged so far; they may go on meanwhile."""
    return Counter(what for lane in lanes for some in list(lane.told.values()) for what, _ in some)


@pytest.mark.timeout(600)
def test_kill_9_while_booking(tmp_path):
    set_up(tmp_path)
    tomorrow = (time.time() // HOUR + 24) * HOUR
    lanes = [Lane([first, first + 1], tomorrow) for first in range(0, GPUS, 2)]
    chance = Random(7)
    with BookingHubs(tmp_path, "up", "--data", str(tmp_path), "--no-link") as hubs:
        for _ in range(ROUNDS):
            with started(hubs, tmp_path) as client:
                before = told(lanes)
                bookers = [Booker(lane, client) for lane in lanes]
                for booker in bookers:
                    booker.start()
                for booker in bookers:
                    assert booker.begun.wait(PATIENCE_SECONDS)
                # Also where the disk is slow: none is seldom.
                until(
                    lambda before=before: all((told(lanes) - before)[kind] for kind in KINDS),
                    60,
                    lambda: str([lane.wrong for lane in lanes]),
                )
                time.sleep(chance.uniform(0.0, 0.15))
                hubs.kill()
                for booker in bookers:
                    booker.join(30)
                    assert not booker.is_alive()
        histories, noted = kept(tmp_path / "gpulse.db")
        with started(hubs, tmp_path) as client:
            found = all_of(client)
    assert {one["id"] for one in found} == set(histories)
    assert noted == sum(map(len, histories.values()))
    # Each booker is at one thing when its hub is killed.
    assert sum(check(lane, found, histories) for lane in lanes) <= ROUNDS * len(lanes)
    assert min(told(lanes)[kind] for kind in KINDS) >= ROUNDS
    assert sum(len(one["gpus"]) for one in found) == 2 * len(found)
