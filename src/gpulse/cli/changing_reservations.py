"""gpulse extend, end and cancel: a reservation for longer, or no longer."""

from typing import Annotated

import typer

from gpulse.cli import booked, options
from gpulse.cli.booked import Reservation
from gpulse.cli.client import Hub
from gpulse.errors import GpulseError, HubRefused

_Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first letters of it.")]


def extend(
    identity: _Id,
    length: Annotated[str | None, typer.Argument(metavar="TIME", help="How much longer: 2h, '1d 12h'.")] = None,
    *,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Its new end instead: 'fri 18:00'.")] = None,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a reservation a later end, or with --until also an earlier one."""
    if (length is None) == (until is None):
        raise GpulseError(
            "say how much longer, or until when: gpulse extend ID 2h, gpulse extend ID --until 'fri 18:00'"
        )
    change = {"extend": length} if length is not None else {"end": until, "zone": booked.zone_name()}
    _change(Hub(hub, fingerprint, data), identity, "PATCH", "", change, as_json=as_json)


def end(
    identity: _Id,
    *,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """End a reservation now, so that others can have its GPUs."""
    _change(Hub(hub, fingerprint, data), identity, "POST", "/end", None, as_json=as_json)


def cancel(
    identity: _Id,
    *,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
) -> None:
    """Cancel a reservation; one that has begun ends now."""
    _change(Hub(hub, fingerprint, data), identity, "DELETE", "", None, as_json=as_json)


def _change(hub: Hub, identity: str, method: str, part: str, content: object, *, as_json: bool) -> None:
    try:
        told = hub.send(method, f"/reservations/{booked.find(hub, identity)}{part}", content)
    except HubRefused as refusal:
        raise booked.refused(hub, refusal) from None
    if as_json:
        typer.echo(told)
        return
    one = hub.decode(told, Reservation)
    words = {"cancelled": "cancelled", "over": "ended"}.get(one.state, "reserved")
    typer.echo("\n".join([f"{words}: {one.id}", *booked.in_full(one)]))
