"""Asks the application without a socket."""

import asyncio
from typing import Any

import httpx
from starlette.types import ASGIApp

from gpulse.api.application import create_app
from gpulse.fleet.fleet import Fleet
from tests.api.people import open_access


def ask(
    app: ASGIApp, path: str, method: str = "GET", headers: dict[str, str] | None = None, content: bytes | None = None
) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
            return await client.request(method, path, headers=headers or {}, content=content)

    return asyncio.run(asked())


def get(fleet: Fleet, path: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(create_app(fleet, access=open_access()), path, headers=named)


def answer(fleet: Fleet, path: str) -> Any:
    response = get(fleet, path)
    assert response.status_code == 200, response.text
    return response.json()


def refusal(fleet: Fleet, path: str, status: int) -> dict[str, str]:
    response = get(fleet, path)
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert set(error) == {"code", "message", "detail"}
    return error
