"""Requests that are not quite right: what is said, and that nothing was done."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gpulse.errors import StoreError
from gpulse.reservations.rules import END_OF_TIME
from tests.api.asking import ask
from tests.api.booking import HOUR, NOW, Site, code
from tests.api.fleets import add, card, process, snapshot

DAY = 24 * HOUR
LONG = b'{"gpus": [{"node": "gpu1", "index": 2}], "for": "100d"}'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


GPU = {"node": "gpu1", "index": 1}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"gpus": [GPU], "for": "1h", "dryrun": True}, "dryrun"),
        ({"gpus": [{**GPU, "gpu": 1}], "for": "1h"}, "gpu"),
        ({"wish": {"n": 1, "count": 2}, "for": "1h"}, "count"),
        ({"gpus": [GPU], "for": "1h", "until": "friday"}, "until"),
    ],
)
def test_a_misspelt_field_books_nothing(site: Site, body, field):
    answer = site.ask("reservations", "POST", body)
    assert code(answer, 400) == "bad_body"
    assert f"unknown field `{field}`" in answer.json()["error"]["detail"]
    assert site.ask("reservations").json()["reservations"] == []


@pytest.mark.parametrize("body", [{"for": "20m"}, {"until": "1h"}, {"comments": "x"}])
def test_a_misspelt_field_changes_nothing(site: Site, body):
    made = site.made("gpu1:1")
    assert code(site.ask(f"reservations/{made['id']}", "PATCH", body), 400) == "bad_body"
    assert site.ask("reservations").json()["reservations"] == [made]


@pytest.mark.parametrize(
    ("more", "wanted", "told"),
    [
        ({"start": "yesterday 9:00", "end": "tomorrow 9:00"}, "in_the_past", "from Sunday 15 November 2026, 09:00 CET"),
        ({"start": "friday 9:00", "end": "2026-11-19"}, "ends_before_start", "until Friday 20 November 2026, 00:00"),
        ({"start": "2027-05-20 9:00", "for": "1h"}, "too_far", "from Thursday 20 May 2027, 09:00 CEST"),
        ({"start": "tomorrow", "for": "5d"}, "too_long", "until Sunday 22 November 2026"),
    ],
)
def test_a_refusal_shows_what_was_understood(site: Site, more, wanted, told):
    answer = site.reserve("gpu1:1", **more)
    assert code(answer, 422) == wanted
    assert told in answer.json()["error"]["detail"]


def test_what_was_understood_has_whole_seconds(site: Site):
    site.clock.now += 0.25
    assert ", 10:00 CET until Thursday" in site.reserve("gpu1:1", **{"for": "73h"}).json()["error"]["detail"]


def test_whose_must_have_a_name(site: Site):
    answer = site.reserve("gpu1:1", person="", who="admin")
    assert (code(answer, 422), answer.json()["error"]["message"]) == ("no_person", "the person has no name")


def test_too_long_is_said_of_a_wish_too(site: Site):
    site.made("gpu1:1", "gpu1:2", "gpu1:3", who="admin")
    wish = {"wish": {"n": 3, "same_node": True, "q": "node:gpu1"}, "for": "2h"}
    assert code(site.ask("reservations", "POST", wish), 409) == "conflict"
    assert code(site.ask("reservations", "POST", wish | {"for": "100d"}), 422) == "too_long"
    assert code(site.ask("reservations", "POST", wish | {"person": "alice"}), 403) == "not_yours"


def test_nothing_is_offered_that_would_be_refused(site: Site):
    """A member reserves 30 days ahead at most."""
    site.made("gpu1:1", start=NOW + 29 * DAY, end=NOW + 31 * DAY, who="admin")
    for who, starts in {"member": [29], "admin": [29, 31]}.items():
        refused = site.reserve("gpu1:1", start=NOW + 29 * DAY, end=NOW + 29 * DAY + HOUR, who=who).json()["error"]
        offered = refused["alternatives"]
        assert sorted((one["start"] - NOW) / DAY for one in offered) == starts
    wish = {"wish": {"n": 4, "same_node": True, "q": "node:gpu1"}, "start": NOW + 29 * DAY, "for": "2h"}
    assert site.ask("reservations", "POST", wish).json()["error"]["alternatives"] == []
    assert len(site.ask("reservations", "POST", wish, who="admin").json()["error"]["alternatives"]) == 1


def test_what_is_not_free_now_is_told_of(site: Site):
    assert site.made("gpu1:0", start=NOW + 3 * HOUR)["notice"] is None, "by then it may be"
    add(site.fleet, "gpu3", 6)
    cards = [card(f"GPU-gpu3-{index}", index) for index in range(6)]
    everywhere = [process(20 + index, "alice", one["uuid"], "train") for index, one in enumerate(cards)]
    site.fleet.line("gpu3", snapshot("gpu3", cards, everywhere))
    site.fleet.tick()
    told = site.reserve(*(f"gpu3:{index}" for index in (0, 1, 2, 4)), dry_run=True, who="admin").json()["notice"]
    assert told == "gpu3:0-2,4 are in use now by alice"
    assert site.made("gpu3:0", person="alice", who="admin")["notice"] is None, "it is her own"
    site.fleet.down("gpu3", "no route to host")
    site.fleet.tick()
    assert site.made("gpu3:1", "gpu3:2", who="admin")["notice"] == "gpu3 is not up now"


def test_whether_a_card_that_cannot_be_read_is_in_use_is_unknown(site: Site):
    add(site.fleet, "gpu3", 2)
    cards = [card("GPU-gpu3-0", 0), card("GPU-gpu3-1", 1, failed_fields=["processes"])]
    site.fleet.line("gpu3", snapshot("gpu3", cards))
    site.fleet.tick()
    assert site.reserve("gpu3:0", dry_run=True).json()["notice"] is None
    assert site.reserve("gpu3:1", dry_run=True).json()["notice"] == "whether gpu3:1 is in use is unknown"


def test_of_many_that_are_not_free_some_are_named(site: Site):
    add(site.fleet, "gpu3", 8)
    cards = [card(f"GPU-gpu3-{index}", index) for index in range(8)]
    on = {"alice": (0, 1, 3), "bob": (3, 4), "carlos": (5,), "dora": (6, 7)}
    users = [(login, index) for login, indexes in on.items() for index in indexes]
    processes = [process(20 + at, login, f"GPU-gpu3-{index}", "train") for at, (login, index) in enumerate(users)]
    site.fleet.line("gpu3", snapshot("gpu3", cards, processes))
    add(site.fleet, "gpu4", 3)
    site.fleet.down("gpu4", "no route to host")
    site.fleet.tick()
    first = "gpu3:0-1 are in use now by alice; gpu3:3 is in use now by alice, bob; gpu3:4 is in use now by bob"
    gpus = [f"gpu3:{index}" for index in range(6)]
    for more, rest in (
        ([], "and 1 more of them is in use or down"),
        (["gpu3:6", "gpu3:7"], "and 3 more of them are in use or down"),
        (["gpu3:6", "gpu3:7", "gpu4:0", "gpu4:1"], "and 5 more of them are in use or down"),
    ):
        told = site.reserve(*gpus, *more, dry_run=True, who="admin").json()["notice"]
        assert told == f"{first}; {rest}"


def test_an_admin_with_a_lesser_key_is_told_so(site: Site):
    made = site.made("gpu1:1")
    bearer = {"Authorization": f"Bearer {site.people.key('admin', 'read', 'write')}"}
    path = f"/api/v1/reservations/{made['id']}"
    for method, body in (("DELETE", None), ("PATCH", b'{"comment": "x"}')):
        answer = ask(site.app, path, method, bearer, body)
        assert code(answer, 403) == "not_yours"
        assert "ask them, or do it on the page, or give gpulse login a key" in answer.json()["error"]["detail"]
    # How it was understood is told all the same.
    told = ask(site.app, "/api/v1/reservations", "POST", bearer, LONG).json()["error"]["detail"]
    assert "a key of yours that has the scope admin; understood: from" in told
    assert site.ask("reservations").json()["reservations"] == [made]


def test_a_length_is_meant_from_now_on_where_it_has_begun(site: Site):
    runs = site.made("gpu1:1", **{"for": "8h"})
    comes = site.made("gpu1:2", start=NOW + 2 * HOUR)
    site.tick(HOUR)
    for one, end in ((runs, NOW + 4 * HOUR), (comes, NOW + 5 * HOUR)):
        assert site.ask(f"reservations/{one['id']}", "PATCH", {"end": "3h"}).json()["end"] == end


def test_milliseconds_are_no_seconds(site: Site):
    answer = site.reserve("gpu1:1", end=(NOW + HOUR) * 1000, who="admin")
    assert code(answer, 422) == "too_far"
    assert "not milliseconds" in answer.json()["error"]["detail"]
    assert code(site.reserve("gpu1:1", end=END_OF_TIME, who="admin"), 422) == "too_far"
    assert site.made("gpu1:1", end=END_OF_TIME - 1, who="admin")["end"] == END_OF_TIME - 1


def test_whose_is_a_login_however_it_is_written(site: Site):
    assert site.made("gpu1:1", who="admin", person=" Member ")["person"] == "member"
    assert len(site.ask("reservations?mine=true").json()["reservations"]) == 1


def test_a_login_in_other_letters_is_the_only_one_it_can_be(site: Site):
    def whose(person: str) -> tuple[str, bool]:
        told = site.reserve("gpu2:1", who="admin", person=person, dry_run=True).json()
        return told["person"], told["notice"] is None

    site.fleet.settings = msgspec.structs.replace(
        site.fleet.settings, people={"u17": "Bob", "u18": "Dan", "u19": "Eve", "u20": "Eve"}
    )
    cards = [card(f"GPU-gpu1-{index}", index) for index in range(4)]
    logins = ("alice", "bob", "dan", "Dan", "Zoe")
    everybody = [process(20 + number, login, "GPU-gpu1-0", "train") for number, login in enumerate(logins)]
    site.fleet.line("gpu1", snapshot("gpu1", cards, everybody))
    site.fleet.tick()
    assert whose("ALICE") == ("alice", True)
    assert whose("zoe") == ("Zoe", True)
    assert whose("U17") == ("u17", True)
    # What people are called is meant where it is written just so.
    assert (whose("Bob"), whose("bob"), whose("BOB")) == (("u17", True), ("bob", True), ("BOB", False))
    assert (whose("Dan"), whose("dan"), whose("DAN")) == (("u18", True), ("dan", True), ("DAN", False))
    assert (whose("Eve"), whose("EVE")) == (("Eve", False), ("EVE", False))


def test_whoever_is_not_known_is_told_of(site: Site):
    made = site.made("gpu1:1", who="admin", person="alcie")
    assert made["person"] == "alcie"
    assert "nobody is known here as 'alcie'" in made["notice"]
    # A process is enough, or an account.
    assert site.made("gpu1:2", who="admin", person="alice")["notice"] is None
    assert site.made("gpu1:3", who="admin", person="viewer")["notice"] is None
    changed = site.ask(f"reservations/{made['id']}", "PATCH", {"person": "alise"}, who="admin").json()
    assert "alise" in changed["notice"]
    again = site.ask(f"reservations/{made['id']}", "PATCH", {"comment": "x"}, who="admin").json()
    assert again["notice"] is None


def test_mine_is_for_who_is_known(site: Site):
    assert code(site.ask("reservations?mine=true", who=None), 401) == "sign_in"


def test_a_node_that_is_not_there(site: Site):
    answer = site.ask("reservations?node=gpu11")
    assert code(answer, 404) == "unknown_node"
    assert "did you mean gpu1" in answer.json()["error"]["detail"]
    assert site.ask("reservations?node=gpu2").json()["reservations"] == []


def test_ten_thousand_gpus_are_not_too_long_a_request(site: Site):
    gpus = [{"node": f"a-long-name-of-a-node-{number:05}", "index": 3} for number in range(10_000)]
    assert code(site.ask("reservations", "POST", {"gpus": gpus, "for": "1h"}), 422) == "gpu_unknown"


def test_where_the_records_are_is_for_admins(site: Site, monkeypatch):
    made = site.made("gpu1:1")

    def away(*_, **__):
        raise StoreError("postgresql://gpulse@db7.internal/gpulse cannot be used: connection failed")

    monkeypatch.setattr(site.table, "history", away)
    for who in ("member", "viewer", None):
        answer = site.ask(f"reservations/{made['id']}", who=who)
        assert code(answer, 503) == "no_store"
        assert "db7" not in answer.text
    assert "db7.internal" in site.ask(f"reservations/{made['id']}", who="admin").text
