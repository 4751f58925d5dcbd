"""gpulse extend, end and cancel: a reservation for longer, or no longer."""

import sys
from typing import Annotated

import typer

from gpulse.cli import booked, options, terminal
from gpulse.cli.booked import Reservation
from gpulse.cli.client import Hub
from gpulse.errors import GpulseError, HubRefused

_Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first letters of it.")]


def extend(
    identity: _Id,
    length: Annotated[str | None, typer.Argument(metavar="TIME", help="How much longer: 2h, '1d 12h'.")] = None,
    *,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Its new end instead: 'fri 18:00'.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a reservation a later end, or with --until also an earlier one.

    Ends with 0 when it has it, with 1 and what is in the way when it cannot.
    """
    if (length is None) == (until is None):
        raise GpulseError(
            "say how much longer, or until when: gpulse extend ID 2h, gpulse extend ID --until 'fri 18:00'"
        )
    change: dict[str, object] = {"extend": length} if length is not None else {"end": until, "zone": booked.zone_name()}
    asked = Hub(hub, fingerprint, data)
    path = f"/reservations/{booked.find(asked, identity)}"
    if sys.stdin.isatty() and sys.stdout.isatty() and not yes:
        change = _confirmed(asked, path, change)
    _send(asked, "PATCH", path, change, as_json=as_json)


def end(
    identity: _Id,
    *,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """End a reservation now, so that others can have its GPUs."""
    asked = Hub(hub, fingerprint, data)
    _send(asked, "POST", f"/reservations/{booked.find(asked, identity)}/end", as_json=as_json)


def cancel(
    identity: _Id,
    *,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """Cancel a reservation; one that has begun ends now."""
    asked = Hub(hub, fingerprint, data)
    _send(asked, "DELETE", f"/reservations/{booked.find(asked, identity)}", as_json=as_json)


def _confirmed(hub: Hub, path: str, change: dict[str, object]) -> dict[str, object]:
    """What was shown and agreed to, exactly: "18:00" may mean tomorrow by the time somebody has answered."""
    try:
        planned = hub.decode(hub.send("PATCH", path, change | {"dry_run": True}), Reservation)
    except HubRefused as refusal:
        raise booked.refused(hub, refusal, until=True) from None
    terminal.tell(*booked.in_full(planned))
    if not typer.confirm("Change it?", default=True):
        raise typer.Exit(booked.NOT_RESERVED)
    # A dry run tells the number of the state that it started from.
    return {"end": planned.end, "revision": planned.revision}


def _send(hub: Hub, method: str, path: str, content: object = None, *, as_json: bool) -> None:
    try:
        told = hub.send(method, path, content)
    except HubRefused as refusal:
        raise booked.refused(hub, refusal, as_json=as_json, until=True) from None
    if as_json:
        terminal.tell_json(told)
        return
    one = hub.decode(told, Reservation)
    words = {"cancelled": "cancelled", "over": "ended"}.get(one.state, "reserved")
    terminal.tell(*[f"{words}: {one.id}", *booked.in_full(one)])
