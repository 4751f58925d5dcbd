"""gpulse reservations: who has reserved what, a line each."""

import time
from typing import Annotated, Literal

import typer

from gpulse.cli import booked, figures, options, terminal
from gpulse.cli.booked import Finding, Reservation
from gpulse.cli.client import Hub
from gpulse.cli.places import Gpu, text_of
from gpulse.cli.tables import Column, Span, Table
from gpulse.errors import GpulseError

_COLUMNS = (
    Column("ID"),
    Column("PERSON"),
    Column("GPUS"),
    Column("FROM"),
    Column("UNTIL"),
    Column("STATE"),
    Column("COMMENT", spare=1),
)
_STYLES = {"now": "green", "coming": "blue", "over": "dim", "cancelled": "dim"}
# So long who did not come is told that their GPUs were given to others.
_RELEASED_SECONDS = 86400.0


def reservations(
    *,
    mine: Annotated[bool, typer.Option("--mine", help="Only yours.")] = False,
    node: Annotated[str | None, typer.Option(metavar="NAME", help="Only of GPUs of this node.")] = None,
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this person.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those of the last month.")] = False,
    form: Annotated[
        Literal["comments.json"] | None, typer.Option("--format", help="Those of now, as a file of this kind.")
    ] = None,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
    width: options.Width = None,
) -> None:
    """Show the reservations of now and to come, and where what runs is not as reserved."""
    asked, now = Hub(hub, fingerprint, data), time.time()
    wanted = booked.span(now, past=everything or mine)
    given = {"node": node, "person": person, "mine": "true" if mine else None}
    wanted |= {name: value for name, value in given.items() if value is not None}
    if form is not None:
        _write(asked, wanted)
        return

    def shown(one: Reservation) -> bool:
        return everything or one.state in ("now", "coming") or (mine and _lost(one, now))

    body = asked.get("/reservations", wanted)
    if as_json:
        terminal.tell_json(booked.as_json(asked, body, wanted, shown))
        return
    page = _of_a_hub_with_some(asked, booked.all_pages(asked, body, wanted))
    terminal.show(table(list(filter(shown, page.reservations)), page.findings), width)


def _of_a_hub_with_some(hub: Hub, page: booked.Page) -> booked.Page:
    if not page.enabled:
        raise GpulseError(f"the hub at {hub.url} has no reservations; its settings have reservations.enabled = false")
    return page


def table(found: list[Reservation], findings: list[Finding]) -> Table:
    """The first to start first."""
    troubles: dict[str, list[str]] = {}
    for finding in findings:
        troubles.setdefault(finding.reservation, []).append(finding.kind.replace("_", "-"))
    rows = [_row(one, troubles.get(one.id, [])) for one in sorted(found, key=lambda one: (one.start, one.id))]
    sums = [figures.amount(len(found), "reservation", "reservations")] if found else []
    # Also about those that are over, or somebody else's: who is on a GPU that is not theirs is told so.
    sums += _told(findings)
    return Table(_COLUMNS, rows, sums, "there are no reservations")


def _told(findings: list[Finding]) -> list[str]:
    """What one person does on several GPUs that are reserved together is one line."""
    groups: dict[tuple[str, str, str | None], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.kind, one.reservation, one.other), []).append(one)
    lines = []
    for (kind, _, _), group in groups.items():
        places = [Gpu(one.node, one.index) for one in group if one.node is not None]
        message = group[0].message
        if len(places) > 1:
            message = message.replace(text_of(places[:1]), text_of(places), 1).removesuffix(" it") + " them"
        if group[0].release_at is not None:
            message += f"; they are released on {booked.short(group[0].release_at)}"
        lines.append(f"{kind.replace('_', '-')}: {message}")
    return lines


def _lost(one: Reservation, now: float) -> bool:
    """Whether it was released a short time ago."""
    return one.ending == "no_show" and now - one.last < _RELEASED_SECONDS


def _row(one: Reservation, troubles: list[str]) -> list[Span | str]:
    # Its GPUs were given to others, as nobody came.
    state = "no-show, released" if one.ending == "no_show" else one.state
    state = ", ".join(dict.fromkeys([f"{state} (hold)" if one.hold else state, *troubles]))
    return [
        one.id,
        Span(one.name, "bold" if one.mine else ""),
        text_of(one.gpus),
        booked.short(one.start),
        booked.short(booked.until_of(one)),
        Span(state, "red" if troubles else _STYLES.get(one.state, "")),
        one.comment,
    ]


def _write(hub: Hub, wanted: dict[str, str]) -> None:
    """As a comments.json; what it has no place for is said."""
    from gpulse.reservations import comments, model
    from gpulse.reservations.zones import own_zone

    page = _of_a_hub_with_some(hub, booked.all_pages(hub, hub.get("/reservations", wanted), wanted))
    found = [
        model.Reservation(
            id=one.id,
            person=one.person,
            maker=one.maker,
            places=tuple(model.Place(gpu.node, gpu.index or "") for gpu in one.gpus),
            start=one.start,
            end=one.last,
            comment=one.comment,
            made_at=one.start,
            revision=0,
        )
        for one in page.reservations
        if one.state in ("now", "coming")
    ]
    terminal.tell(*comments.write(found, page.now, own_zone()).rstrip("\n").split("\n"))
    left_out = len(comments.unwritten(found, page.now))
    if left_out:
        told = figures.amount(left_out, "reservation that is", "reservations that are")
        terminal.warn(f"{told} still to come left out: the format has no start")
