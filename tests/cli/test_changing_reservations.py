"""gpulse extend asks on a terminal before it saves; and what people are told who name things wrongly."""

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.api.booking import HOUR
from tests.cli.booking_site import ZONE, Running, running

QUESTION = "Change it? [Y/n]: "


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        # Between two seconds, as it nearly always is.
        made.site.clock.now = int(made.site.clock.now) + 0.7
        yield made


def now_of(hub: Running, identity: str) -> dict[str, Any]:
    return dict(hub.site.ask(f"reservations/{identity}").json())


def until(told: str) -> list[str]:
    return re.findall(r"^until (.+)$", told, re.MULTILINE)


@pytest.mark.parametrize("words", [["1h"], ["--until", "in 3h"]])
def test_extend_asks_on_a_terminal_and_saves_what_was_shown(hub: Running, words: list[str]):
    made = hub.site.made("gpu1:1", **{"for": "2h"})
    with hub.on_a_terminal("extend", made["id"][:4], *words) as command:
        shown = command.until(QUESTION)
        assert shown.startswith("1 GPU: gpu1:1\nfrom  ")
        assert "(3 h)" in shown
        assert now_of(hub, made["id"])["end"] == made["end"]
        # "in 3h" would be another end now.
        hub.site.tick(600)
        command.answer("y")
        status, told = command.ended()
    assert (status, f"reserved: {made['id']}\n" in told) == (0, True)
    assert until(told) == until(shown) != []
    assert abs(now_of(hub, made["id"])["end"] - made["start"] - 3 * HOUR) < 1


def test_who_says_no_changes_nothing(hub: Running):
    made = hub.site.made("gpu1:1")
    with hub.on_a_terminal("extend", made["id"], "1h") as command:
        command.until(QUESTION)
        command.answer("n")
        assert command.ended()[0] == 1
    after = now_of(hub, made["id"])
    assert (after["end"], len(after["history"])) == (made["end"], 1)


def test_what_has_changed_while_somebody_thinks_is_not_what_was_shown(hub: Running):
    made = hub.site.made("gpu1:1")
    with hub.on_a_terminal("extend", made["id"], "1h") as command:
        command.until(QUESTION)
        other = hub.site.ask(f"reservations/{made['id']}", "PATCH", {"comment": "another"}, "admin")
        assert other.status_code == 200
        command.answer("y")
        status, told = command.ended()
    assert status == 2
    assert "somebody has changed this reservation meanwhile; look at it again" in told
    assert now_of(hub, made["id"])["end"] == made["end"]


def test_yes_is_not_asked(hub: Running):
    made = hub.site.made("gpu1:1")
    with hub.on_a_terminal("extend", made["id"], "1h", "--yes") as command:
        status, told = command.ended()
    assert (status, QUESTION in told) == (0, False)
    assert now_of(hub, made["id"])["end"] == made["end"] + HOUR


def test_what_is_in_the_way_is_told_before_anybody_is_asked(hub: Running):
    made = hub.site.made("gpu1:1")
    hub.site.made("gpu1:1", who="admin", start=made["end"] + 60)
    with hub.on_a_terminal("extend", made["id"], "1h") as command:
        status, told = command.ended()
    assert (status, QUESTION in told) == (1, False)
    assert "in the way: gpu1:1 for admin" in told
    assert "it is your own" not in told


def test_ones_own_in_the_way(hub: Running):
    made = hub.site.made("gpu1:1")
    done = hub.run("reserve", "gpu1:1", "--for", "1h")
    assert (done.returncode, done.stdout) == (1, "")
    told = done.stderr.splitlines()
    assert told[1].startswith("  in the way: gpu1:1 for member until ")
    assert told[2].startswith(f"    it is your own: gpulse extend {made['id']} TIME makes it longer")


@pytest.mark.parametrize("command", ["extend", "end", "cancel"])
def test_an_id_that_is_too_short(hub: Running, command: str):
    made = hub.site.made("gpu1:1")
    done = hub.run(command, made["id"][:3], *(["1h"] if command == "extend" else []))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{made['id'][:3]!r} is too short for an id; give its first 4 letters at least; " in done.stderr
    assert done.stderr.count("\n") == 1
    assert now_of(hub, made["id"])["state"] == "now"


def test_a_cancelled_one_is_listed_as_it_was_planned(hub: Running):
    made = hub.site.made("gpu1:1", start=hub.site.clock.now + 96 * HOUR)
    hub.run("cancel", made["id"])
    line = hub.run("reservations", "--mine", "--all").stdout.splitlines()[1]
    planned = (datetime.fromtimestamp(made[name], ZoneInfo(ZONE)) for name in ("start", "end"))
    assert re.findall(r" (\d+) \w{3}(?: \d{4})? (\d\d:\d\d)", line) == [(str(at.day), f"{at:%H:%M}") for at in planned]
    assert " cancelled" in line


def test_from_now_for_an_hour_is_an_hour(hub: Running):
    """The clock of the fixture is between two seconds."""
    for length in (["--until", "1h"], ["--for", "1h"]):
        done = hub.run("reserve", "gpu1:1", *length, "--dry-run")
        begins, ends = re.findall(r", \d\d:(\d\d(?::\d\d)?) ", done.stdout)
        assert begins == ends, done.stdout


def test_bytes_that_are_no_text(hub: Running):
    made = hub.site.made("gpu1:1")
    raw = os.fsdecode(b"caf\xe9")
    for words in (
        ["reserve", "gpu1:2", "--for", "1h", "--comment", raw],
        ["reservations", "--node", raw],
        ["extend", made["id"], raw],
        ["end", raw * 3],
    ):
        done = hub.run(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert re.fullmatch(r'gpulse: "(caf\\xe9)+" is not UTF-8; write it with a terminal .*\n', done.stderr), words
    assert hub.reserved() == [("member", "gpu1:1", False)]


@pytest.mark.parametrize("words", [["reserve", "0:2", "--for", "1h"], ["reservations", "--node", "0"]])
def test_nodes_are_listed_by_a_command(hub: Running, words: list[str]):
    done = hub.run(*words)
    told = 'gpulse: there is no node "0"; `gpulse nodes` and GET api/v1/nodes list them\n'
    assert (done.returncode, done.stderr) == (2, told)
    near = hub.run(*(word.replace("0", "gpu", 1) if word.startswith("0") else word for word in words))
    assert (near.returncode, "; did you mean gpu" in near.stderr) == (2, True)


def test_json_is_the_answer_of_the_hub(hub: Running):
    made = hub.site.made("gpu1:1")
    assert json.loads(hub.run("extend", made["id"], "1h", "--json").stdout)["end"] == made["end"] + HOUR


def test_a_person_nobody_knows_is_told_of(hub: Running):
    words = ["reserve", "gpu1:3", "--for", "1h", "--person", "alcie"]
    assert "note: nobody is known here as 'alcie'" in hub.run(*words, who="admin").stdout
    words = ["reserve", "gpu1:2", "--for", "1h", "--person", "Member"]
    told = hub.run(*words, who="admin").stdout
    assert "for   member" in told
    assert "note:" not in told
