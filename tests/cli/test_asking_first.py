"""gpulse reserve on a terminal: what it shows is what it saves, however late the answer; a no saves nothing."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gpulse.reservations.model import Reservation
from tests.cli.booking_site import ZONE, Running, running

HOUR = 3600.0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        yield made


def kept(hub: Running) -> list[Reservation]:
    return hub.site.table.between(0, float("inf"), cancelled=True)


def in_full(moment: float) -> str:
    local = datetime.fromtimestamp(moment, ZoneInfo(ZONE))
    return f"{local:%A} {local.day} {local:%B %Y, %H:%M}"


def test_what_was_shown_is_saved_however_late_the_answer(hub: Running):
    asked = hub.site.clock.now
    with hub.on_a_terminal("reserve", "-n", "2", "--from", "in 3h", "--for", "2d 4h") as command:
        shown = command.until("Reserve? [Y/n]")
        assert kept(hub) == []
        # Now others are free, and "in 3h" is another moment.
        hub.site.made("gpu2:1", who="admin")
        hub.site.clock.now += 2 * HOUR
        command.answer("y")
        status, told = command.ended()
    assert status == 0
    mine = [one for one in kept(hub) if one.person == "member"]
    (saved,) = mine
    assert abs(saved.start - asked - 3 * HOUR) <= 1
    assert saved.end - saved.start == 52 * HOUR
    lines = shown.strip().splitlines()
    assert lines[0] == f"2 GPUs: {saved.places[0]}-{saved.places[1].index}"
    assert lines[1].startswith(f"from  {in_full(saved.start)}")
    assert lines[2].startswith(f"until {in_full(saved.end)}")
    assert lines[1].endswith(("CET", "CEST"))
    assert lines[2].endswith("(2 d 4 h)")
    assert told.strip().splitlines()[-5:] == [f"reserved: {saved.id}", *lines]


def test_what_starts_now_starts_with_the_answer_and_ends_as_shown(hub: Running):
    asked = hub.site.clock.now
    with hub.on_a_terminal("reserve", "gpu1:1", "--for", "2h") as command:
        shown = command.until("Reserve? [Y/n]")
        hub.site.clock.now += HOUR / 2
        command.answer("")
        assert command.ended()[0] == 0
    (saved,) = kept(hub)
    assert (saved.start, saved.end) == (asked + HOUR / 2, asked + 2 * HOUR)
    assert f"until {in_full(saved.end)}" in shown


@pytest.mark.parametrize("answer", ["n", "no", "N"])
def test_no_saves_nothing(hub: Running, answer: str):
    with hub.on_a_terminal("reserve", "gpu1:1", "--for", "2h") as command:
        command.until("Reserve? [Y/n]")
        command.answer(answer)
        status, told = command.ended()
    assert (status, "reserved" in told) == (1, False)
    assert kept(hub) == []


def test_neither_does_who_goes_away(hub: Running):
    with hub.on_a_terminal("reserve", "gpu1:1", "--for", "2h") as command:
        command.until("Reserve? [Y/n]")
    assert kept(hub) == []


def test_too_late_for_what_was_shown(hub: Running):
    with hub.on_a_terminal("reserve", "gpu1:1", "--from", "in 1h", "--for", "2h") as command:
        command.until("Reserve? [Y/n]")
        hub.site.clock.now += 2 * HOUR
        command.answer("y")
        status, told = command.ended()
    assert (status, "the start is in the past" in told) == (2, True)
    assert kept(hub) == []


def test_who_says_yes_is_not_asked(hub: Running):
    with hub.on_a_terminal("reserve", "gpu1:1", "--for", "2h", "--yes") as command:
        status, told = command.ended()
    assert (status, "Reserve?" in told) == (0, False)
    assert len(kept(hub)) == 1
