"""A hub as people start it, which knows of a node with eight GPUs, and people who book them over HTTP."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from gpulse.auth import local_socket
from gpulse.auth.directory import Directory
from gpulse.store import Records
from tests.fleet.lines import gpu, snapshot
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS

NODE = "gpu01"
GPUS = 8
HOUR = 3600.0


@contextlib.contextmanager
def running(data: Path, url: str | None = None) -> Iterator[RunningHub]:
    """Until the end of the block. The node has left its snapshot in a folder: what may be started in no time."""
    set_up(data)
    environment = os.environ | ({"GPULSE_STORE_URL": url} if url else {})
    with RunningHub("up", "--data", str(data), "--no-link", environment=environment, directory=data) as hub:
        hub.until(lambda: len(hub.node(NODE)["gpus"]) == GPUS)
        yield hub


def set_up(data: Path) -> None:
    dropped = data / "dropped"
    dropped.mkdir(exist_ok=True)
    (dropped / f"{NODE}.json").write_bytes(snapshot(*map(gpu, range(GPUS)), node=NODE, time=time.time()))
    (data / "gpulse.toml").write_text('hub.local = false\n[[drop_folders]]\npath = "dropped"\n', "utf-8")


def operator(url: str, data: Path) -> httpx.Client:
    """Ask as the person who runs the hub, over its socket."""
    path = local_socket.place(data, url).read_text().splitlines()[0]
    own = {"Origin": url.rstrip("/"), "X-Gpulse": "1"}
    return httpx.Client(base_url=url, headers=own, timeout=PATIENCE_SECONDS, transport=httpx.HTTPTransport(uds=path))


def members(data: Path, url: str | None, count: int) -> list[str]:
    """Keys of so many people."""

    async def make(directory: Directory) -> list[str]:
        keys = []
        for number in range(count):
            account = await directory.accounts.add(f"person{number:02}", "member")
            keys.append(await directory.keys.create(account.id, "booking", ["read", "write"]))
        return keys

    with Records(data, url) as records:
        return asyncio.run(make(Directory(records)))


def wanted(gpus: list[int], start: float, comment: str) -> dict[str, Any]:
    places = [{"node": NODE, "index": index} for index in gpus]
    return {"gpus": places, "start": start, "end": start + HOUR, "comment": comment}


def all_of(client: httpx.Client) -> list[dict[str, Any]]:
    """All bookings there are, a page after the other."""
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"from": 0, "to": time.time() + 365 * 86400, "limit": 10_000}
    while True:
        answer = client.get("api/v1/reservations", params=query).raise_for_status().json()
        found += answer["reservations"]
        if answer["next"] is None:
            return found
        query["before"] = answer["next"]
