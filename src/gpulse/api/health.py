"""The hub itself: is it alive, does its fleet tick, and what it has to say."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import STALLED_SECONDS, Hub, HubView
from gpulse.errors import RequestError
from gpulse.fleet.views import Summary
from gpulse_probe import __version__


class Alive(msgspec.Struct, kw_only=True):
    """The process answers."""

    status: Literal["ok"]


class Ready(msgspec.Struct, kw_only=True):
    """The fleet ticks."""

    status: Literal["ok"]
    generation: int


async def alive(hub: Hub, query: object, path: Mapping[str, str]) -> Alive:
    del hub, query, path
    return Alive(status="ok")


async def ready(hub: Hub, query: object, path: Mapping[str, str]) -> Ready:
    del query, path
    stalled = hub.stalled_seconds()
    if hub.fleet.generation == 0:
        raise RequestError(503, "not_ready", "the hub has just started; ask again in a second")
    if stalled > STALLED_SECONDS:
        raise RequestError(
            503, "not_ready", f"the fleet has not been looked at for {stalled:.0f} s", "the hub's log may say why"
        )
    return Ready(status="ok", generation=hub.fleet.generation)


async def get_hub(hub: Hub, query: object, path: Mapping[str, str]) -> HubView:
    del query, path
    return HubView(title=hub.title, version=__version__, generation=hub.fleet.generation, notices=list(hub.notices()))


async def get_summary(hub: Hub, query: object, path: Mapping[str, str]) -> Summary:
    del query, path
    return hub.fleet.summary()


ENDPOINTS = (
    Endpoint(
        path="/api/v1/summary",
        name="getSummary",
        summary="The fleet in figures; the states add up to its GPUs.",
        answer=Summary,
        handle=get_summary,
        may="read",
        errors=(400, 406),
    ),
    Endpoint(
        path="/api/v1/hub",
        name="getHub",
        summary="The hub's title, version and notices.",
        answer=HubView,
        handle=get_hub,
        may="read",
        errors=(400, 406),
    ),
    Endpoint(
        path="/healthz",
        name="healthz",
        summary="The process is alive.",
        answer=Alive,
        handle=alive,
        may="anyone",
        errors=(400, 406),
        cached=False,
    ),
    Endpoint(
        path="/readyz",
        name="readyz",
        summary="The fleet ticks; 503 when it does not.",
        answer=Ready,
        handle=ready,
        may="anyone",
        errors=(400, 406, 503),
        cached=False,
    ),
)
