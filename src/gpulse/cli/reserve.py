"""gpulse reserve: reserves GPUs, those that are named or as many as are wished for."""

import sys
from typing import Annotated

import typer

from gpulse.cli import booked, options, terminal
from gpulse.cli.booked import Reservation
from gpulse.cli.client import Hub
from gpulse.cli.places import parse
from gpulse.errors import GpulseError, HubRefused


def reserve(
    places: Annotated[
        list[str] | None, typer.Argument(metavar="GPUS", help="Which: gpu03:0-3 gpu04 'gpu[05-08]:0' gpu09:0.2.")
    ] = None,
    *,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, metavar="GPUS", help="So many, whichever; the hub picks.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="With so much memory each: 40GB.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Of this model: H100.")] = None,
    same_node: Annotated[bool, typer.Option("--same-node", help="All on one node.")] = False,
    query: options.Query = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Its end: 'fri 18:00', '2026-12-01'.")] = None,
    length: Annotated[str | None, typer.Option("--for", metavar="TIME", help="For how long: '2d 4h', 90m.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="WHEN", help="Its start (default: now).")] = None,
    comment: Annotated[str, typer.Option(metavar="TEXT", help="What others shall know about it.")] = "",
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Whose it is, for admins (default: you).")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be reserved, and save nothing.")] = False,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """Reserve GPUs. Ends with 0 when they are yours, with 1 and what is in the way when they cannot be."""
    body = _wanted(places, count, memory, model, same_node=same_node, query=query)
    if (until is None) == (length is None):
        raise GpulseError("say how long: one of --until 'fri 18:00' and --for 2d")
    given = {"start": start, "end": until, "for": length, "person": person, "comment": comment or None}
    body |= {name: value for name, value in given.items() if value is not None} | {"zone": booked.zone_name()}
    asked = Hub(hub, fingerprint, data)
    try:
        if dry_run or (sys.stdin.isatty() and sys.stdout.isatty() and not yes):
            told = asked.send("POST", "/reservations", body | {"dry_run": True})
            if dry_run:
                _tell(asked, told, as_json)
                return
            planned = asked.decode(told, Reservation)
            terminal.tell(*booked.in_full(planned))
            if not typer.confirm("Reserve?", default=True):
                raise typer.Exit(booked.NOT_RESERVED)
            # Exactly what was shown: "18:00" may mean tomorrow by the time somebody has answered.
            for name in ("wish", "for"):
                body.pop(name, None)
            body |= {"gpus": planned.gpus, "end": planned.end}
            if start is not None:
                body["start"] = planned.start
        told = asked.send("POST", "/reservations", body)
    except HubRefused as refusal:
        raise booked.refused(asked, refusal, as_json=as_json) from None
    _tell(asked, told, as_json)


def _wanted(
    places: list[str] | None,
    count: int | None,
    memory: str | None,
    model: str | None,
    *,
    same_node: bool,
    query: str | None,
) -> dict[str, object]:
    wished = memory is not None or model is not None or same_node or query is not None
    if places:
        if count is not None or wished:
            raise GpulseError("name GPUs, or say how many of which kind with -n; not both")
        return {"gpus": parse(places)}
    if count is None:
        raise GpulseError(
            "say which GPUs: gpulse reserve gpu03:0-3 --for 2d, or how many: gpulse reserve -n 4 --for 2d"
        )
    wish = {"n": count, "memory": memory, "model": model, "same_node": same_node, "q": query or ""}
    return {"wish": {name: value for name, value in wish.items() if value is not None}}


def _tell(hub: Hub, told: bytes, as_json: bool) -> None:
    if as_json:
        terminal.tell_json(told)
        return
    one = hub.decode(told, Reservation)
    terminal.tell(*[*([f"reserved: {one.id}"] if one.id else []), *booked.in_full(one)])
