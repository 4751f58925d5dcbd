"""Asking a provider of single sign-on that is slow, gone, or back again."""

import asyncio
import json

import pytest

from gpulse.auth import oidc_provider
from gpulse.auth.oidc_provider import Provider
from gpulse.config import Oidc
from gpulse.errors import SignInRefused
from tests.auth.conftest import Clock


class Answering:
    """A provider over real HTTP, which answers once it is let, and as it is told."""

    def __init__(self):
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self.status = 200

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.issuer = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_error):
        self.go.set()
        self._server.close()

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split()[1].decode())
        await self.go.wait()
        parts = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        metadata = {name: f"{self.issuer}/{part}" for name, part in parts.items()}
        metadata |= {"issuer": self.issuer, "response_types_supported": ["code"], "subject_types_supported": ["public"]}
        body = json.dumps(metadata | {"id_token_signing_alg_values_supported": ["RS256"]}).encode()
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(body)
        await writer.drain()
        writer.close()

    def provider(self, clock):
        return Provider(Oidc(issuer=self.issuer, client_id="gpulse"), clock)


async def trouble(work):
    with pytest.raises(SignInRefused) as caught:
        await work
    assert (caught.value.status, caught.value.code) == (502, "sso_trouble")
    return caught.value.message


def test_many_who_begin_ask_once():
    async def crowd():
        async with Answering() as there:
            provider = there.provider(Clock())
            begun = [asyncio.create_task(provider.metadata()) for _ in range(50)]
            while not there.asked:
                await asyncio.sleep(0.01)
            # Who asked first goes; the others are answered all the same.
            begun[0].cancel()
            there.go.set()
            found = await asyncio.gather(*begun[1:])
            assert {one["token_endpoint"] for one in found} == {f"{there.issuer}/token"}
            assert len(there.asked) == 1

    asyncio.run(crowd())


def test_trouble_is_told_for_a_while_without_asking():
    async def story():
        clock = Clock()
        async with Answering() as there:
            there.go.set()
            there.status = 500
            provider = there.provider(clock)
            first = await trouble(provider.metadata())
            assert "it says 500" in first
            assert [await trouble(provider.metadata()) for _ in range(3)] == [first] * 3
            assert len(there.asked) == 1
            there.status = 200
            clock.now += 10
            assert (await provider.metadata())["issuer"] == there.issuer
            assert len(there.asked) == 2

    asyncio.run(story())


def test_what_it_said_before_serves_while_it_does_not_answer():
    async def story():
        clock = Clock()
        async with Answering() as there:
            there.go.set()
            provider = there.provider(clock)
            known = await provider.metadata()
            there.go.clear()
            clock.now += 3601
            # At once, though the provider hangs.
            assert await provider.metadata() == known
            while len(there.asked) < 2:
                await asyncio.sleep(0.01)
            assert await provider.metadata() == known
            there.status = 500
            there.go.set()
            while provider._asking is not None:
                await asyncio.sleep(0.01)
            assert await provider.metadata() == known
            assert len(there.asked) == 2

    asyncio.run(story())


def test_waiting_for_a_turn_is_a_part_of_the_time_it_has(monkeypatch: pytest.MonkeyPatch):
    """Who waits for others that never end gives up in time."""
    monkeypatch.setattr(oidc_provider, "_SECONDS", 0.2)

    async def story():
        async with Answering() as there:
            there.go.set()
            provider = there.provider(Clock())
            for _ in range(oidc_provider._AT_ONCE):
                await provider._turn.acquire()
            told = await asyncio.wait_for(trouble(provider.metadata()), 30)
            assert "no answer within 0.2 s" in told
            assert there.asked == []

    asyncio.run(story())
