"""The live stream ends within a second when who watches is signed out, or may see less."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gpulse.api.live import SIGNED_OUT
from gpulse.auth.directory import Directory
from gpulse.store import Records
from tests.api.fleets import small
from tests.api.people import People, make_people
from tests.api.test_live import serving


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    people = make_people(tmp_path)
    yield people
    people.records.close()


async def seconds_until_closed(stream: ClientConnection, end: Callable[[], Awaitable[object]]) -> float:
    await asyncio.wait_for(stream.recv(), 10)
    await end()
    began = time.monotonic()
    with pytest.raises(ConnectionClosed) as closed:
        async with asyncio.timeout(10):
            while True:
                await stream.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == SIGNED_OUT
    return time.monotonic() - began


def watched(people: People, credential: str, end: Callable[[Directory], Awaitable[object]]) -> float:
    access = people.access()
    headers = {"Authorization": f"Bearer {credential}"}
    if credential.startswith("gps_"):
        headers = {"Cookie": f"{access.cookies.name}={credential}"}

    async def run() -> float:
        async with serving(small(), access=access) as server, connect(server.url(), additional_headers=headers) as one:
            return await seconds_until_closed(one, lambda: end(people.directory))

    return asyncio.run(run())


# The machine may be busy with other tests: what is looked at is a quarter of a second.
SOON = 3.0


@pytest.mark.parametrize("how", ["signed out", "disabled", "another role"])
def test_a_session_that_ends(people: People, how: str):
    account, cookie = people.accounts["member"], people.cookie("member")
    asyncio.run(people.directory.accounts.add("second", "admin"))
    account, cookie = (people.accounts["admin"], people.cookie("admin")) if how == "another role" else (account, cookie)
    ends = {
        "signed out": lambda directory: directory.sessions.end_all(account),
        "disabled": lambda directory: directory.accounts.disable(account),
        "another role": lambda directory: directory.accounts.set_role(account, "viewer"),
    }
    assert watched(people, cookie, ends[how]) < SOON


def test_a_key_that_is_revoked(people: People):
    key = people.key("viewer", "read")
    assert watched(people, key, lambda directory: directory.keys.revoke(key.split("_")[1])) < SOON


def test_by_another_process(people: People, tmp_path: Path):
    cookie = people.cookie("member")

    async def end(directory: Directory) -> None:
        with Records(tmp_path) as other:
            await Directory(other).accounts.disable(people.accounts["member"])
        # As the hub does every half a second.
        await directory.refresh()

    assert watched(people, cookie, end) < SOON


def test_who_may_not_read_may_not_watch(people: People):
    access = people.access()

    async def refused(**headers: str) -> int:
        async with serving(small(), access=access) as server:
            with pytest.raises(InvalidStatus) as caught:
                async with connect(server.url(), additional_headers=headers):
                    pass
            return caught.value.response.status_code

    assert asyncio.run(refused()) == 401
    assert asyncio.run(refused(Authorization="Bearer gpk_x")) == 401
    assert asyncio.run(refused(Authorization=f"Bearer {people.key('admin', 'metrics')}")) == 403
    stale = people.cookie("viewer")
    asyncio.run(people.directory.sessions.end_all(people.accounts["viewer"]))
    assert asyncio.run(refused(Cookie=f"{access.cookies.name}={stale}")) == 401
    # By a page of another site in the same browser.
    cookie = f"{access.cookies.name}={people.cookie('admin')}"
    assert asyncio.run(refused(Cookie=cookie, Origin="https://evil.example.org")) == 403


def test_those_who_stay_signed_in_go_on(people: People):
    access = people.access()
    keys = [people.key("viewer", "read"), people.key("member", "read")]

    async def run() -> None:
        fleet = small()
        async with (
            serving(fleet, access=access) as server,
            connect(server.url(), additional_headers={"Authorization": f"Bearer {keys[0]}"}) as stays,
            connect(server.url(), additional_headers={"Authorization": f"Bearer {keys[1]}"}) as goes,
        ):
            await asyncio.wait_for(stays.recv(), 10)
            await seconds_until_closed(goes, lambda: people.directory.accounts.disable(people.accounts["member"]))
            fleet.tick()
            assert await asyncio.wait_for(stays.recv(), 10)

    asyncio.run(run())
