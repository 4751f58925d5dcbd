"""What was acknowledged is there after kill -9, once; and of many who want the same one has it."""

import asyncio
import itertools
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from random import Random

import httpx
import pytest

from tests.system.booking import GPUS, HOUR, all_of, asking, members, operator, running, wanted

ROUNDS = 20
CLIENTS = 200
PEOPLE = 40


class Booker(threading.Thread):
    """Books one card hour after hour, until the hub no longer answers; then goes on with the hour it was at."""

    def __init__(self, hub, key, card, hours, acknowledged):
        super().__init__()
        self._hub, self._key, self._card, self._hours, self._acknowledged = hub, key, card, hours, acknowledged
        # Set when a booking was acknowledged, or when there will be none.
        self.first = threading.Event()
        self.wrong = []

    def run(self):
        with asking(self._hub, self._key) as client:
            while True:
                hour = self._hours[self._card]
                try:
                    answer = client.post("api/v1/reservations", json=wanted([self._card], hour, f"{self._card} {hour}"))
                except httpx.TransportError:
                    self.first.set()
                    return
                if answer.status_code == 201:
                    self._acknowledged.append((answer.json()["id"], self._card, hour))
                    self.first.set()
                elif answer.status_code != 409:
                    # In the way may only be what was saved without that anybody heard of it.
                    self.wrong.append((answer.status_code, answer.text))
                self._hours[self._card] = hour + HOUR


# Twenty starts of a hub, of two to three seconds of CPU time each.
@pytest.mark.timeout(600)
def test_kill_9_while_booking(tmp_path):
    begin = (time.time() // HOUR + 24) * HOUR
    hours = dict.fromkeys(range(4), begin)
    acknowledged, chance = [], Random(7)
    for _ in range(ROUNDS):
        with running(tmp_path) as hub:
            bookers = [Booker(hub, operator(hub, tmp_path), card, hours, acknowledged) for card in hours]
            for booker in bookers:
                booker.start()
            for booker in bookers:
                assert booker.first.wait(30)
            time.sleep(chance.uniform(0.0, 0.15))
            hub.process.kill()
            for booker in bookers:
                booker.join(30)
            assert [one for booker in bookers for one in booker.wrong] == []
    driver = sqlite3.connect(tmp_path / "gpulse.db")
    assert driver.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert driver.execute("PRAGMA foreign_key_check").fetchall() == []
    histories = driver.execute("SELECT reservation, count(*) FROM reservation_changes GROUP BY reservation").fetchall()
    driver.close()
    with running(tmp_path) as hub:
        found = all_of(hub, operator(hub, tmp_path))
    there = {(one["id"], int(one["gpus"][0]["index"]), one["start"]) for one in found}
    assert len(acknowledged) >= ROUNDS * len(hours)
    assert set(acknowledged) <= there
    # None twice; and of those nobody was told of, no more than were being asked for at a kill.
    assert len(found) == len(there) == len({(card, start) for _, card, start in there})
    assert len(there) - len(acknowledged) <= ROUNDS * len(hours)
    # All of a booking or nothing of it.
    assert all(len(one["gpus"]) == 1 for one in found)
    assert sorted(histories) == sorted((one["id"], 1) for one in found)


@pytest.fixture
def keys(tmp_path, records_url):
    return members(tmp_path, records_url, PEOPLE)


def test_200_at_once(tmp_path, records_url, keys):
    """First each of eight cards for 25 of them, then all cards together for all of them."""
    tomorrow = (time.time() // HOUR + 24) * HOUR

    async def book(hub):
        limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
        async with httpx.AsyncClient(base_url=hub.url, limits=limits, timeout=100) as client:
            # All are connected before the first one asks.
            await asyncio.gather(*(client.get("healthz") for _ in range(CLIENTS)))

            def post(number, gpus, start):
                headers = {"Authorization": f"Bearer {keys[number % PEOPLE]}"}
                body = wanted(gpus, start, f"client {number}")
                return client.post("api/v1/reservations", json=body, headers=headers)

            each = await asyncio.gather(*(post(one, [one % GPUS], tomorrow) for one in range(CLIENTS)))
            every = await asyncio.gather(*(post(one, [*range(GPUS)], tomorrow + HOUR) for one in range(CLIENTS)))
            return each, every

    with running(tmp_path, records_url) as hub:
        each, every = asyncio.run(book(hub))
        assert Counter(one.status_code for one in each) == {201: GPUS, 409: CLIENTS - GPUS}
        assert Counter(one.status_code for one in every) == {201: 1, 409: CLIENTS - 1}
        winners = defaultdict(list)
        for number, answer in enumerate(each):
            if answer.status_code == 201:
                winners[number % GPUS].append(answer.json()["id"])
        assert sorted(winners) == [*range(GPUS)]
        for number, answer in enumerate(each):
            if answer.status_code == 409:
                error = answer.json()["error"]
                assert error["code"] == "conflict"
                assert [one["id"] for one in error["conflicts"]] == winners[number % GPUS]
        (last,) = (one.json()["id"] for one in every if one.status_code == 201)
        found = {one["id"] for one in all_of(hub, operator(hub, tmp_path))}
        assert found == {*itertools.chain.from_iterable(winners.values()), last}
        assert hub.process.poll() is None
