"""Nobody takes all places of the live stream: each has a share, and some are for people who are signed in."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gpulse.api.live_places import BY_ACCOUNT, BY_ADDRESS, OWN_STREAMS, Places
from gpulse.auth.identity import ALL_SCOPES, Identity
from gpulse.errors import RequestError
from tests.api.fleets import small
from tests.api.people import People, make_people
from tests.api.test_live import Server, frame, serving

STRANGER = Identity(None, "viewer", None, "anonymous", frozenset({"read"}))


def person(number: int) -> Identity:
    return Identity(f"p{number}", "viewer", f"account{number}", "session", ALL_SCOPES, "")


def taken(
    places: Places, stack: ExitStack, who: Identity, address: str = "192.0.2.1", stream: str | None = None
) -> str:
    """Why there was no place, or nothing."""
    try:
        stack.enter_context(places.take(who, address, stream))
    except RequestError as error:
        assert error.status == 503
        return error.code
    return ""


def test_an_address_of_those_who_are_not_signed_in_has_its_share():
    places = Places(500, 32)
    with ExitStack() as stack:
        got = [taken(places, stack, STRANGER) for _ in range(BY_ADDRESS + 1)]
        assert got == [""] * BY_ADDRESS + ["too_many_listeners"]
        assert taken(places, stack, STRANGER, "192.0.2.2") == ""
        # Who has signed in there is not counted with them.
        assert taken(places, stack, person(1)) == ""
        assert places.taken == BY_ADDRESS + 2
    assert places.taken == 0


def test_a_network_of_ipv6_is_one_place():
    places = Places(500, 32)
    with ExitStack() as stack:
        got = [taken(places, stack, STRANGER, f"2001:db8::{number:x}") for number in range(BY_ADDRESS + 1)]
        assert got[-1] == "too_many_listeners"


def test_an_account_has_its_share_wherever_it_is():
    places = Places(500, 32)
    with ExitStack() as stack:
        got = [taken(places, stack, person(1), f"192.0.2.{number}") for number in range(BY_ACCOUNT + 1)]
        assert got == [""] * BY_ACCOUNT + ["too_many_listeners"]
        assert taken(places, stack, person(2)) == ""


def test_a_quarter_is_for_people_who_are_signed_in():
    places = Places(500, 32)
    with ExitStack() as stack:
        got = [taken(places, stack, STRANGER, f"198.51.100.{number}") for number in range(250)]
        got += [taken(places, stack, STRANGER, f"203.0.113.{number}") for number in range(126)]
        assert got == [""] * 375 + ["too_many_listeners"]
        got = [taken(places, stack, person(number)) for number in range(126)]
        assert got == [""] * 125 + ["too_many_listeners"]


def test_streams_have_shares_too():
    places = Places(500, 32)
    with ExitStack() as stack:
        got = [taken(places, stack, STRANGER, stream=f"filter {number}") for number in range(OWN_STREAMS + 1)]
        assert got == [""] * OWN_STREAMS + ["too_many_streams"]
        assert taken(places, stack, STRANGER, stream="filter 0") == "", "it is made already"
        assert taken(places, stack, STRANGER) == "", "what all watch costs nothing more"
        for address in range(2, 4):
            for number in range(OWN_STREAMS):
                assert taken(places, stack, STRANGER, f"192.0.2.{address}", f"{address} {number}") == ""
        assert taken(places, stack, STRANGER, "192.0.2.9", "one more") == "too_many_streams"
        got = [taken(places, stack, person(number), stream=f"own {number}") for number in range(9)]
        assert got == [""] * 8 + ["too_many_streams"]
    with ExitStack() as stack:
        assert taken(places, stack, STRANGER, stream="filter 0") == "", "those who went have left their places"


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    people = make_people(tmp_path)
    yield people
    people.records.close()


async def why_closed(stream: ClientConnection) -> tuple[int, str]:
    with pytest.raises(ConnectionClosed) as closed:
        await frame(stream)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


def test_one_stranger_keeps_nobody_out_who_is_signed_in(people: People):
    """Over real sockets, by a hub with room for eight, two of them for people with an account."""
    bearer = {"Authorization": f"Bearer {people.key('viewer', 'read')}"}

    async def fill(server: Server, stack: AsyncExitStack) -> None:
        for _ in range(6):
            await frame(await stack.enter_async_context(connect(server.url())))
        code, reason = await why_closed(await stack.enter_async_context(connect(server.url())))
        assert (code, "for people who sign in" in reason) == (1013, True)
        for _ in range(2):
            await frame(await stack.enter_async_context(connect(server.url(), additional_headers=bearer)))
        code, reason = await why_closed(
            await stack.enter_async_context(connect(server.url(), additional_headers=bearer))
        )
        assert (code, "(8)" in reason) == (1013, True)

    async def run() -> None:
        access = people.access(anonymous=True)
        async with serving(small(), access=access, most_listeners=8) as server:
            async with AsyncExitStack() as stack:
                await fill(server, stack)
            while server.live.listeners:
                await asyncio.sleep(0.01)
            # All places are free again.
            async with AsyncExitStack() as stack:
                await fill(server, stack)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_one_stranger_with_many_filters_keeps_nobody_from_filtering_nor_from_the_page(people: People):
    bearer = {"Authorization": f"Bearer {people.key('viewer', 'read')}"}

    async def run() -> None:
        async with (
            serving(small(), access=people.access(anonymous=True), most_streams=4) as server,
            AsyncExitStack() as stack,
        ):
            for query in ("?q=free", "?q=busy", "?limit=3"):
                await frame(await stack.enter_async_context(connect(server.url(query))))
            assert (await why_closed(await stack.enter_async_context(connect(server.url("?q=idle")))))[0] == 1013
            own = await stack.enter_async_context(connect(server.url("?q=idle"), additional_headers=bearer))
            await frame(own)
            last = await stack.enter_async_context(connect(server.url("?q=stale"), additional_headers=bearer))
            assert (await why_closed(last))[0] == 1013
            for query in ("", "?format=binary", "?q=busy"):
                assert await frame(await stack.enter_async_context(connect(server.url(query))))

    asyncio.run(asyncio.wait_for(run(), 30))
