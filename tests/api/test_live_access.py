"""The live stream ends within a second when who watches is signed out, or may see less."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from gpulse.api.live import SIGNED_OUT
from gpulse.auth.directory import Directory
from gpulse.auth.sessions import Begun
from gpulse.store import Records
from tests.api.fleets import small
from tests.api.people import People, make_people
from tests.api.test_live import serving
from tests.patience import PATIENCE_SECONDS


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
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                await stream.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == SIGNED_OUT
    return time.monotonic() - began


def as_page(people: People, begun: Begun) -> dict[str, Any]:
    """What the page says that it speaks has its key: scripts cannot send headers with a WebSocket."""
    named = [Subprotocol("gpulse.live"), Subprotocol(f"gpulse.key.{begun.page_key}")]
    return {"additional_headers": people.cookie(begun), "subprotocols": named}


def watched(people: People, options: dict[str, Any], end: Callable[[Directory], Awaitable[object]]) -> float:
    async def run() -> float:
        async with serving(small(), access=people.access()) as server, connect(server.url(), **options) as one:
            # Where protocols were named a browser wants one of them back; that with the key is never said.
            assert one.subprotocol == ("gpulse.live" if "subprotocols" in options else None)
            return await seconds_until_closed(one, lambda: end(people.directory))

    return asyncio.run(run())


# The machine may be busy with other tests: what is looked at is a quarter of a second.
SOON = 3.0


@pytest.mark.parametrize("how", ["signed out", "disabled", "another role"])
def test_a_session_that_ends(people: People, how: str):
    role = "admin" if how == "another role" else "member"
    account = people.accounts[role]
    asyncio.run(people.directory.accounts.add("second", "admin"))
    ends = {
        "signed out": lambda directory: directory.sessions.end_all(account),
        "disabled": lambda directory: directory.accounts.disable(account),
        "another role": lambda directory: directory.accounts.set_role(account, "viewer"),
    }
    assert watched(people, as_page(people, people.session(role)), ends[how]) < SOON


def test_a_key_that_is_revoked(people: People):
    key = people.key("viewer", "read")
    options = {"additional_headers": {"Authorization": f"Bearer {key}"}}
    assert watched(people, options, lambda directory: directory.keys.revoke(key.split("_")[1])) < SOON


def test_by_another_process(people: People, tmp_path: Path):
    async def end(directory: Directory) -> None:
        with Records(tmp_path) as other:
            await Directory(other).accounts.disable(people.accounts["member"])
        # As the hub does every half a second.
        await directory.refresh()

    assert watched(people, as_page(people, people.session("member")), end) < SOON


def test_who_may_not_read_may_not_watch(people: People):
    access = people.access()

    async def refused(protocols: Sequence[str] = (), **headers: str) -> int:
        async with serving(small(), access=access) as server:
            with pytest.raises(InvalidStatus) as caught:
                named = [Subprotocol(one) for one in protocols] or None
                async with connect(server.url(), additional_headers=headers, subprotocols=named):
                    pass
            return caught.value.response.status_code

    assert asyncio.run(refused()) == 401
    assert asyncio.run(refused(Authorization="Bearer gpk_x")) == 401
    assert asyncio.run(refused(Authorization=f"Bearer {people.key('admin', 'metrics')}")) == 403
    stale = people.session("viewer")
    asyncio.run(people.directory.sessions.end_all(people.accounts["viewer"]))
    assert asyncio.run(refused([f"gpulse.key.{stale.page_key}"], **people.cookie(stale))) == 401
    # By a page of another site in the same browser.
    begun, other = people.session("admin"), people.session("admin")
    key = f"gpulse.key.{begun.page_key}"
    assert asyncio.run(refused([key], **people.cookie(begun), Origin="https://evil.example.org")) == 403
    # By who was sent the cookie alone.
    for named in ([], ["gpulse.live"], ["gpulse.key.1"], [f"gpulse.key.{other.page_key}"], [begun.page_key]):
        assert asyncio.run(refused(named, **people.cookie(begun))) == 401
    assert asyncio.run(refused([key])) == 401


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
