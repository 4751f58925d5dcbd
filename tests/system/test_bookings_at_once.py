"""Of many who want the same GPUs at once one has them."""

import asyncio
import itertools
import time
from collections import Counter, defaultdict

import httpx
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.system.booking import GPUS, HOUR, all_of, members, operator, running, wanted

CLIENTS = 200
PEOPLE = 40


@pytest.fixture
def keys(tmp_path, records_url):
    return members(tmp_path, records_url, PEOPLE)


def test_200_at_once(tmp_path, records_url, keys):
    """First each of eight cards for 25 of them, then all cards together for all of them."""
    tomorrow = (time.time() // HOUR + 24) * HOUR

    async def book(hub):
        limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
        async with httpx.AsyncClient(base_url=hub.url, limits=limits, timeout=PATIENCE_SECONDS) as client:
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
        with operator(hub.url, tmp_path) as client:
            found = {one["id"] for one in all_of(client)}
        assert found == {*itertools.chain.from_iterable(winners.values()), last}
        assert hub.process.poll() is None
