"""The commands for reservations against the real API, as people and scripts run them."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gpulse.cli.places import Gpu, parse, text_of
from gpulse.errors import GpulseError
from tests.api.fleets import card, process, snapshot
from tests.cli.booking_site import Running, running
from tests.cli.hub import FakeHub, gpulse
from tests.cli.hub import running as fake_hub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        yield made


def test_reserve(hub: Running):
    done = hub.run("reserve", "gpu1:1-2", "--for", "2d", "--comment", "thesis \x1b[31m")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("reserved: ")
    assert lines[1] == "2 GPUs: gpu1:1-2"
    assert lines[2].startswith("from  ")
    assert lines[3].startswith("until ")
    assert lines[3].endswith(("CET (2 d)", "CEST (2 d)"))
    assert lines[4:] == ["for   member", r"“thesis \x1b[31m”"]
    assert hub.reserved() == [("member", "gpu1:1 gpu1:2", False)]


def test_a_node_with_a_card_that_is_split(hub: Running):
    cards = [card("GPU-gpu2-0", 0), card("GPU-gpu2-1", 1, mig_enabled=True)]
    parts = [card(f"MIG-gpu2-{part}", 1, parent_uuid="GPU-gpu2-1", mig_index=part) for part in range(2)]
    hub.site.fleet.line("gpu2", snapshot("gpu2", [*cards, *parts]))
    hub.site.fleet.tick()
    done = hub.run("reserve", "gpu2", "--for", "1h")
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "2 GPUs: gpu2:0-1")
    assert hub.reserved() == [("member", "gpu2:0 gpu2:1", False)]


def test_a_comment_that_is_too_long(hub: Running):
    done = hub.run("reserve", "gpu1:1", "--for", "1h", "--comment", "x" * 3000)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpulse: the comment is longer than 2000 characters; shorten it\n"
    assert hub.reserved() == []


def test_what_is_in_the_way_and_what_instead(hub: Running):
    hub.run("reserve", "gpu1:1", "--for", "2h", "--comment", "mine")
    done = hub.run("reserve", "gpu1:0-1", "--for", "1h", who="admin")
    assert (done.returncode, done.stdout) == (1, "")
    told = done.stderr.splitlines()
    assert told[0] == "gpulse: gpu1:1 is reserved at that time; take another time or other GPUs"
    assert told[1].startswith("  in the way: gpu1:1 for member until ")
    assert told[1].endswith(" “mine”")
    assert told[2].startswith("  instead: gpu1:0-1 from ")
    told = json.loads(hub.run("reserve", "gpu1:0-1", "--for", "1h", "--json", who="admin").stdout)["error"]
    assert (told["code"], told["conflicts"][0]["comment"], len(told["alternatives"])) == ("conflict", "mine", 2)


def test_what_is_in_the_way_later_begins_then(hub: Running):
    hub.run("reserve", "gpu1:1", "--from", "3h", "--for", "2h")
    told = hub.run("reserve", "gpu1:1", "--for", "1d", who="admin").stderr.splitlines()[1]
    assert re.fullmatch(r"  in the way: gpu1:1 for member from \w+day .* until \w+day .*", told)


def test_a_wish_and_a_dry_run(hub: Running):
    done = hub.run("reserve", "-n", "3", "--memory", "40GB", "--same-node", "--until", "2h", "--dry-run")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "3 GPUs: gpu1:1-3")
    assert hub.reserved() == []
    done = hub.run("reserve", "-n", "3", "--model", "H100", "--for", "2h", "--json")
    assert [gpu["index"] for gpu in json.loads(done.stdout)["gpus"]] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gpu1:0"], "say how long"),
        (["gpu1:0", "--for", "1h", "--until", "friday"], "say how long"),
        (["--for", "1h"], "say which GPUs"),
        (["gpu1:0", "-n", "2", "--for", "1h"], "not both"),
        (["gpu1:x", "--for", "1h"], "'gpu1:x' is no GPU"),
        (["gpu1:3-1", "--for", "1h"], "counts backwards"),
        (["gpu9:0", "--for", "1h"], 'there is no node "gpu9"'),
        (["gpu1:0", "--until", "someday"], "someday"),
        (["gpu1:0", "--for", "1h", "--person", "admin"], "reservations for others are made by admins"),
    ],
)
def test_mistakes_are_one_sentence(hub: Running, words: list[str], told: str):
    done = hub.run("reserve", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert hub.reserved() == []


def test_list_extend_end_and_cancel(hub: Running):
    made = json.loads(hub.run("reserve", "gpu1:1", "--for", "2h", "--comment", "x", "--json").stdout)
    hub.run("reserve", "gpu2:1", "--from", "3h", "--for", "1h", who="admin")
    listed = hub.run("reservations").stdout.splitlines()
    assert listed[0].split() == ["ID", "PERSON", "GPUS", "FROM", "UNTIL", "STATE", "COMMENT"]
    assert [line.split()[1:3] for line in listed[1:3]] == [["member", "gpu1:1"], ["admin", "gpu2:1"]]
    assert listed[-1] == "2 reservations"
    assert hub.run("reservations", "--mine").stdout.splitlines()[-1] == "1 reservation"
    assert len(json.loads(hub.run("reservations", "--node", "gpu2", "--json").stdout)["reservations"]) == 1
    longer = hub.run("extend", made["id"][:6], "1h")
    assert (longer.returncode, longer.stdout.splitlines()[3][-5:]) == (0, "(3 h)")
    shorter = hub.run("extend", made["id"], "--until", "1h", "--json")
    # Times that people write are whole seconds.
    assert abs(json.loads(shorter.stdout)["end"] - made["start"] - 3600) <= 1
    assert hub.run("end", made["id"][:6]).stdout.splitlines()[0] == f"ended: {made['id']}"
    again = hub.run("cancel", made["id"])
    assert (again.returncode, again.stderr) == (2, "gpulse: this reservation is over; make another\n")
    assert hub.run("end", "ffff").returncode == 2
    assert hub.run("reservations", "--mine").stdout == "there are no reservations\n"
    assert "over" in hub.run("reservations", "--mine", "--all").stdout


def test_in_a_narrow_terminal_times_stay(hub: Running):
    hub.run("reserve", "gpu1:1", "--for", "2h", "--comment", "what others shall know about it")
    for width, columns in {80: 6, 200: 7}.items():
        head, line, *_ = hub.run("reservations", "--width", str(width)).stdout.splitlines()
        assert head.split() == ["ID", "PERSON", "GPUS", "FROM", "UNTIL", "STATE", "COMMENT"][:columns]
        assert len(line) <= width


def test_what_one_person_does_on_several_gpus_is_one_line(hub: Running):
    hub.run("reserve", "gpu1:0-2", "gpu2:0", "--for", "2h")
    site = hub.site
    cards = [card(f"GPU-gpu1-{index}", index) for index in range(4)]
    everywhere = [process(20 + index, "alice", one["uuid"], "train") for index, one in enumerate(cards)]
    site.fleet.line("gpu1", snapshot("gpu1", cards, everywhere))
    site.tick()
    told = hub.run("reservations").stdout.splitlines()
    assert told[-1] == "squatter: member has reserved gpu1:0-2 gpu2:0, and alice is on them"


def test_who_did_not_come_is_told_so(hub: Running):
    """Also without --all, for a day."""
    site = hub.site
    site.desk.settings = msgspec.structs.replace(site.settings, release_no_shows=True, no_show_minutes=5)
    hub.run("reserve", "gpu2:1", "--for", "2h")
    site.tick(6 * 60)
    told = hub.run("reservations").stdout.splitlines()[-1]
    assert told.startswith("no-show: member has reserved GPUs and does not use them; they are released on ")
    site.tick(15 * 60)
    # The command goes by the clock of its machine.
    [released] = asyncio.run(site.desk.release_no_shows())
    assert "no-show, released" in hub.run("reservations", "--mine").stdout
    assert hub.run("reservations").stdout == "there are no reservations\n"
    assert released.person == "member"


def test_comments_json(hub: Running):
    hub.run("reserve", "gpu1:1", "--for", "2h", "--comment", "ä //")
    hub.run("reserve", "gpu2:1", "--from", "3h", "--for", "1h")
    done = hub.run("reservations", "--format", "comments.json")
    written = json.loads(done.stdout)
    assert (list(written), written["gpu1"]["1"]["name"], written["gpu1"]["1"]["comment"]) == (
        ["gpu1"],
        "member",
        "ä //",
    )
    assert "1 reservation that is still to come left out" in done.stderr


def test_as_json_are_those_that_are_listed(hub: Running):
    """However many pages there are, and without what was cancelled."""
    at = hub.site.clock.now
    ids = [hub.site.made("gpu1:1", start=at + hour * 3600, end=at + hour * 3600 + 1800)["id"] for hour in range(1, 5)]
    hub.site.ask(f"reservations/{ids[1]}", "DELETE")

    def listed(*words: str) -> list[str]:
        page = json.loads(hub.run("reservations", "--json", *words).stdout)
        assert (page["next"], page["enabled"]) == (None, True)
        return [one["id"] for one in page["reservations"]]

    assert listed() == [ids[3], ids[2], ids[0]]
    assert listed("--all") == ids[::-1]

    class Short(FakeHub):
        """The same hub, with a reservation a page."""

        def answer(self, target: str) -> tuple[int, bytes]:
            told = hub.site.ask(target.removeprefix("/api/v1/") + "&limit=1")
            return told.status_code, told.content

    with fake_hub(Short()) as short:
        done = gpulse("reservations", "--json", hub=short.url)
        assert [one["id"] for one in json.loads(done.stdout)["reservations"]] == [ids[3], ids[2], ids[0]]


def test_a_hub_without_reservations_writes_no_file():
    """A good file would be lost by it."""
    off = {"reservations": [], "findings": [], "now": 0, "next": None, "enabled": False}
    with fake_hub() as without:
        without.answers["/reservations"] = off
        done = gpulse("reservations", "--format", "comments.json", hub=without.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "reservations.enabled = false" in done.stderr


def test_hold_what_was_found(hub: Running):
    first = hub.run("free", "-n", "2", "--hold", "10m", "--export")
    assert (first.returncode, first.stdout) == (0, "export CUDA_VISIBLE_DEVICES=1,2\n")
    assert "gpulse: held until " in first.stderr
    assert hub.reserved() == [("member", "gpu1:1 gpu1:2", True)]
    hub.site.tick()
    # Another program of the same person gets others.
    second = json.loads(hub.run("free", "-n", "2", "--hold", "10m", "--json").stdout)
    assert [gpu["id"] for gpu in second["gpus"]] == ["GPU-gpu2-1", "GPU-gpu2-2"]
    assert second["hold"]["hold"] is True
    assert len(hub.reserved()) == 2
    too_long = hub.run("free", "--hold", "2h")
    assert too_long.returncode == 2
    assert "30 minutes at most" in too_long.stderr


def test_what_is_reserved_for_me_needs_no_hold(hub: Running):
    hub.run("reserve", "gpu2:3", "--for", "2h")
    hub.site.tick()
    done = hub.run("free", "--hold", "10m", "--export")
    assert done.stdout == "export CUDA_VISIBLE_DEVICES=3\n"
    assert "they are reserved for you already" in done.stderr
    assert hub.run("free", "-n", "4", "--same-node", who="admin").returncode == 1


def test_held_until_ones_own_reservation_begins(hub: Running):
    assert hub.run("reserve", "gpu1:1-3", "--from", "in 5m", "--for", "1h").returncode == 0
    hub.site.tick()
    done = hub.run("free", "node:gpu1", "--hold", "10m", "--export")
    assert (done.returncode, done.stdout) == (0, "export CUDA_VISIBLE_DEVICES=1\n")
    assert ", when your own reservation begins; gpulse cancel " in done.stderr
    assert ("member", "gpu1:1", True) in hub.reserved()


def test_a_short_id_of_one_far_ahead(hub: Running):
    assert hub.run("reserve", "gpu1:1", "--from", "in 40 days", "--for", "1h", who="admin").returncode == 0
    (listed,) = json.loads(hub.run("reservations", "--json").stdout)["reservations"]
    assert hub.run("cancel", listed["id"][:6], who="admin").returncode == 0


def test_who_was_too_slow_looks_again(hub: Running):
    """Between the answer and the hold somebody else has reserved it."""
    hub.site.made_elsewhere("gpu1:1", "gpu1:2", "gpu1:3", end=hub.site.clock.now + 7200)
    # The fleet does not know of it yet, as within the second in which another hub made it.
    late = threading.Timer(1.5, hub.site.tick)
    late.start()
    done = hub.run("free", "-n", "3", "--hold", "10m", "--export")
    late.join()
    assert (done.returncode, done.stdout) == (0, "export CUDA_VISIBLE_DEVICES=1,2,3\n")
    assert ("member", "gpu2:1 gpu2:2 gpu2:3", True) in hub.reserved()


def test_places():
    assert parse(["gpu03:0-2", "gpu04", "a:0.2", "b:1,3"]) == [
        Gpu("gpu03", "0"),
        Gpu("gpu03", "1"),
        Gpu("gpu03", "2"),
        Gpu("gpu04"),
        Gpu("a", "0.2"),
        Gpu("b", "1"),
        Gpu("b", "3"),
    ]
    assert parse(["gpu[1-2,10]:0"]) == [Gpu("gpu1", "0"), Gpu("gpu2", "0"), Gpu("gpu10", "0")]
    assert parse(["gpu1,gpu2:0"]) == [Gpu("gpu1", "0"), Gpu("gpu2", "0")]
    assert text_of(parse(["gpu03:0-2,5", "a:0.2"])) == "gpu03:0-2,5 a:0.2"
    for word in ("gpu03:", "gpu03:-1", "gpu03:0-", "gpu03:1.2.3", ":0", "gpu[:0", "gpu03:٣"):
        with pytest.raises(GpulseError):
            parse([word])
    with pytest.raises(GpulseError, match="more than can be reserved"):
        parse(["gpu[1-99]:0-999"])


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("gpu03:0-3,gpu04:1", "gpu03:0-3 gpu04:1"),
        ("gpu03:0,2,gpu04:1,3,gpu05:0", "gpu03:0,2 gpu04:1,3 gpu05:0"),
        ("gpu[01,02]:0,gpu04:1", "gpu01:0 gpu02:0 gpu04:1"),
        ("gpu03:1,gpu[01,02]:0,2", "gpu03:1 gpu01:0,2 gpu02:0,2"),
        ("gpu03:0,2node:1", "gpu03:0 2node:1"),
    ],
)
def test_another_node_after_a_comma(word: str, text: str):
    assert text_of(parse([word])) == text


@pytest.mark.parametrize("word", ["gpu03:0,gpu04", "gpu03:0,gpu04,gpu05:1"])
def test_a_node_alone_after_a_comma_may_be_anything(word: str):
    told = r"'gpu03:0,gpu04' is no GPU; write it like .* with a blank before another node"
    with pytest.raises(GpulseError, match=told):
        parse([word])
