"""Reservations over HTTP: what is made of a request, who may, and what is told to whom."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpulse.api.application import create_app
from gpulse.api.noted_reservations import noted
from gpulse.auth.noting import THE_HUB
from gpulse.errors import StoreError
from gpulse.store import audit
from tests.api.asking import ask
from tests.api.booking import HOUR, NOW, Site, code
from tests.api.fleets import add, card, process, small, snapshot
from tests.api.people import open_access
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For tests that change nothing."""
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


def test_reserve_and_read_it_back(site: Site):
    made = site.made("gpu1:1", "gpu1:0", comment="<b>thesis</b>\n\u202e")
    assert [(gpu["node"], gpu["index"], gpu["id"]) for gpu in made["gpus"]] == [
        ("gpu1", "0", "GPU-gpu1-0"),
        ("gpu1", "1", "GPU-gpu1-1"),
    ]
    assert (made["start"], made["end"], made["last"]) == (NOW, NOW + 2 * HOUR, NOW + 2 * HOUR)
    assert (made["person"], made["maker"], made["state"], made["mine"], made["may_change"]) == (
        "member",
        "member",
        "now",
        True,
        True,
    )
    # Only who reserves it is told that.
    assert made.pop("notice") == "gpu1:0 is in use now by alice"
    made["notice"] = None
    page = site.ask("reservations").json()
    assert page["reservations"] == [made]
    assert (page["now"], page["next"], page["enabled"], page["zone"]) == (NOW, None, True, "Europe/Berlin")
    assert page["limits"] == {"ahead_days": 30.0, "longest_hours": 72.0, "most_gpus": 4, "most_reservations": 5}
    detail = site.ask(f"reservations/{made['id']}").json()
    history = detail.pop("history")
    assert detail == made
    assert [(one["action"], one["by"], one["before"]) for one in history] == [("made", "member", None)]
    assert history[0]["after"]["comment"] == "<b>thesis</b>\n\u202e"


def test_the_gpus_show_it_at_the_next_tick(site: Site):
    site.made("gpu2:3", comment="mine", end=NOW + HOUR)
    site.made("gpu2:3", start=NOW + HOUR, end=NOW + 2 * HOUR, who="admin")
    site.tick()
    gpu = site.ask("gpus/GPU-gpu2-3").json()
    assert gpu["state"] == "reserved"
    assert gpu["reservation"]["person"] == gpu["reservation"]["name"] == "member"
    assert (gpu["reservation"]["comment"], gpu["reservation"]["end"]) == ("mine", NOW + HOUR)
    assert gpu["next_reservation"]["person"] == "admin"
    assert site.ask("summary").json()["states"]["reserved"] == 1
    assert site.ask("gpus?q=reserved").json()["total"] == 1
    assert "GPU-gpu2-3" not in [one["id"] for one in site.ask("gpus?q=free").json()["items"]]
    site.tick(HOUR)
    assert site.ask("gpus/GPU-gpu2-3").json()["reservation"]["person"] == "admin"
    site.tick(HOUR)
    assert "reservation" not in site.ask("gpus/GPU-gpu2-3").json()


def test_free_leaves_out_what_others_reserved(site: Site):
    site.made("gpu1:1", "gpu1:2", "gpu1:3")
    site.made("gpu2:1", start=NOW + HOUR, end=NOW + 2 * HOUR, who="admin")
    site.tick()

    def free(n: int, who: str | None, more: str = "") -> list[str]:
        return [one["id"] for one in site.ask(f"free?n={n}{more}", who=who).json()["gpus"]]

    for stranger in (None, "viewer"):
        assert free(3, stranger) == ["GPU-gpu2-1", "GPU-gpu2-2", "GPU-gpu2-3"]
        assert free(3, stranger, "&for=2h") == []
        assert free(4, stranger) == []
        # Who one says to be makes no difference.
        assert free(4, stranger, "&me=member") == []
    assert free(3, "member") == ["GPU-gpu1-1", "GPU-gpu1-2", "GPU-gpu1-3"], "one's own come first"
    assert free(3, "admin", "&for=2h") == ["GPU-gpu2-1", "GPU-gpu2-2", "GPU-gpu2-3"]
    assert free(3, "viewer", "&for=59m") == ["GPU-gpu2-1", "GPU-gpu2-2", "GPU-gpu2-3"]
    assert code(site.ask("free?for=soon"), 422) == "when_unclear"
    text = ask(site.app, "/free?n=3", headers=site.headers("member")).text
    assert text.startswith("export CUDA_VISIBLE_DEVICES=1,2,3  # on gpu1: ssh gpu1\n")
    assert ask(site.app, "/free?n=4").status_code == 404


def test_a_conflict_tells_who_and_what_instead(site: Site):
    site.made("gpu1:1", "gpu1:2", comment="mine")
    refused = site.reserve("gpu1:2", "gpu1:3", who="admin")
    assert code(refused, 409) == "conflict"
    error = refused.json()["error"]
    assert [(one["person"], one["comment"], one["state"]) for one in error["conflicts"]] == [("member", "mine", "now")]
    assert error["alternatives"][0]["start"] == NOW + 2 * HOUR
    assert [gpu["index"] for gpu in error["alternatives"][0]["gpus"]] == ["2", "3"]
    others = [gpu["id"] for one in error["alternatives"][1:] for gpu in one["gpus"]]
    assert others
    assert not {"GPU-gpu1-0", "GPU-gpu2-0"} & set(others), "somebody is on them"
    # One may begin when the other ends.
    assert site.made("gpu1:2", start=NOW + 2 * HOUR, end=NOW + 3 * HOUR, who="admin")["state"] == "coming"


def test_two_hundred_at_once_get_one_each(site: Site):
    """Over HTTP, all at the same instant: exactly one wins each GPU, and nobody gets a 5xx."""
    spots = [(node, index) for node in ("gpu1", "gpu2") for index in range(4)]

    async def one(client: httpx.AsyncClient, number: int) -> tuple[tuple[str, int], int]:
        node, index = spots[number % len(spots)]
        body = {"gpus": [{"node": node, "index": index}], "for": "1h", "comment": str(number)}
        answer = await client.post("/api/v1/reservations", json=body, headers=site.headers("admin"))
        assert answer.status_code == 201 or answer.json()["error"]["conflicts"]
        return (node, index), answer.status_code

    async def everybody() -> list[tuple[tuple[str, int], int]]:
        transport = httpx.ASGITransport(app=site.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub", timeout=PATIENCE_SECONDS) as client:
            return await asyncio.gather(*(one(client, number) for number in range(200)))

    site.headers("admin")
    outcomes = asyncio.run(everybody())
    assert {status for _, status in outcomes} == {201, 409}
    for spot in spots:
        assert [status for there, status in outcomes if there == spot].count(201) == 1
    assert len(site.table.current(NOW)) == len(spots)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"end": "18:00"}, 8 * HOUR),
        ({"end": "18:00", "zone": "UTC"}, 9 * HOUR),
        ({"end": "2026-11-16T18:00+02:00"}, 7 * HOUR),
        ({"end": "2d 4h"}, 52 * HOUR),
        ({"for": "90m"}, 1.5 * HOUR),
        ({"end": NOW + 60}, 60.0),
        ({"end": int(NOW) + 60, "start": NOW - 59}, 60.0),
    ],
)
def test_times_as_people_write_them(site: Site, given: dict[str, Any], seconds: float):
    made = site.made("gpu1:1", **given)
    assert (made["start"], made["end"]) == (NOW, NOW + seconds)


@pytest.mark.parametrize(
    ("given", "status", "word"),
    [
        ({"end": "someday"}, 422, "when_unclear"),
        ({"end": "01/02/2027"}, 422, "when_unclear"),
        ({"end": "18:00", "zone": "Mars/Olympus"}, 422, "when_unclear"),
        ({"end": "18:00", "zone": "../../etc/passwd"}, 422, "when_unclear"),
        ({"end": "18:00", "for": "2h"}, 422, "when_unclear"),
        ({"end": None}, 422, "when_unclear"),
        ({"start": "yesterday"}, 422, "in_the_past"),
        ({"end": "2026-11-16 08:00"}, 422, "ends_before_start"),
        ({"end": 1e300}, 422, "too_far"),
        ({"start": -1e300, "end": "friday"}, 422, "too_far"),
        ({"start": 9e11, "end": 9e12}, 422, "too_far"),
        ({"for": "4d"}, 422, "too_long"),
        ({"start": NOW + 31 * 24 * HOUR, "for": "1h"}, 422, "too_far"),
        ({"for": "1h", "person": "admin"}, 403, "not_yours"),
        ({"for": "31m", "hold": True}, 422, "too_long"),
        ({"gpus": [{"node": "gpu1", "index": 9}]}, 422, "gpu_unknown"),
        ({"gpus": [{"node": "gpu1", "index": "01"}]}, 422, "gpu_unknown"),
        ({"gpus": [{"node": "gpu9"}]}, 422, "gpu_unknown"),
        ({"gpus": []}, 422, "no_gpus"),
        ({"gpus": None}, 422, "no_gpus"),
        ({"wish": {"n": 1}}, 422, "no_gpus"),
        ({"gpus": None, "wish": {"n": 1, "memory": "900GB"}}, 422, "no_gpus"),
        # What they may not have at all is told before it is looked whether it is there.
        ({"gpus": None, "wish": {"n": 9}}, 422, "too_many_gpus"),
        ({"gpus": None, "wish": {"n": 1, "memory": "lots"}}, 422, "bad_memory"),
        ({"gpus": None, "wish": {"n": 1, "q": "no:such"}}, 422, "bad_filter"),
        ({"gpus": None, "wish": {"n": 0}}, 400, "bad_body"),
        ({"comment": "x" * 2001}, 400, "bad_body"),
        ({"gpus": [{"node": "gpu1", "index": [0]}]}, 400, "bad_body"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(untouched: Site, given: dict[str, Any], status: int, word: str):
    site = untouched
    body = {"gpus": [{"node": "gpu1", "index": 1}], **({} if {"for", "end"} & set(given) else {"for": "1h"}), **given}
    assert code(site.ask("reservations", "POST", body), status) == word
    assert site.ask("reservations").json()["reservations"] == []


def test_limits_are_for_members(site: Site):
    assert code(site.reserve("gpu1:0", "gpu1:1", "gpu1:2", "gpu1:3", "gpu2:0"), 422) == "too_many_gpus"
    for hour in range(5):
        site.made("gpu1:0", start=NOW + hour * HOUR, end=NOW + (hour + 1) * HOUR)
    assert code(site.reserve("gpu1:1"), 422) == "too_many"
    site.made("gpu1:1", "gpu1:2", "gpu1:3", "gpu2:0", "gpu2:1", who="admin", **{"for": "90d"})
    # A key without the scope is no admin's.
    key = {"Authorization": f"Bearer {site.people.key('admin', 'read', 'write')}"}
    body = json.dumps({"gpus": [{"node": "gpu2", "index": 3}], "for": "90d"}).encode()
    assert code(ask(site.app, "/api/v1/reservations", "POST", key, body), 422) == "too_long"


def test_a_whole_node_and_a_wish(site: Site):
    whole = site.ask("reservations", "POST", {"gpus": [{"node": "gpu1"}], "for": "1h"}).json()
    assert [gpu["index"] for gpu in whole["gpus"]] == ["0", "1", "2", "3"]
    wish = {"n": 3, "memory": "40GB", "model": "H100", "same_node": True}
    picked = site.ask("reservations", "POST", {"wish": wish, "for": "1h"}, "admin").json()
    assert [gpu["id"] for gpu in picked["gpus"]] == ["GPU-gpu2-1", "GPU-gpu2-2", "GPU-gpu2-3"], "alice is on the first"
    refused = site.ask("reservations", "POST", {"wish": wish, "for": "1h"}, "admin")
    assert code(refused, 409) == "conflict"
    assert refused.json()["error"]["alternatives"][0]["start"] == NOW + HOUR
    later = {"wish": wish | {"q": "node:gpu1"}, "start": NOW + 2 * HOUR, "for": "1h"}
    assert site.ask("reservations", "POST", later, "admin").json()["gpus"][0]["node"] == "gpu1"


def split(site: Site, *, cards: bool = True) -> None:
    """gpu3: a card, and one that is split in two and may be told or not, as in a container."""
    whole = card("GPU-gpu3-0", 0)
    parted = [card("GPU-gpu3-1", 1, mig_enabled=True)] if cards else []
    parts = [card(f"MIG-gpu3-{part}", 1, parent_uuid="GPU-gpu3-1", mig_index=part) for part in range(2)]
    add(site.fleet, "gpu3", 1)
    site.fleet.line("gpu3", snapshot("gpu3", [whole, *parted, *parts]))
    site.fleet.tick()


def test_a_whole_node_with_a_card_that_is_split(site: Site):
    split(site)
    whole = site.ask("reservations", "POST", {"gpus": [{"node": "gpu3"}], "for": "1h"}).json()
    assert [(gpu["index"], gpu["id"]) for gpu in whole["gpus"]] == [("0", "GPU-gpu3-0"), ("1", "GPU-gpu3-1")]
    # The instances are those of who has the card, and no more GPUs than that.
    assert code(site.reserve("gpu3:1.1", who="admin"), 409) == "conflict"
    assert site.ask(f"reservations/{whole['id']}", "DELETE").status_code == 200
    both = [{"node": "gpu3"}, {"node": "gpu3", "index": "1.0"}, {"node": "gpu3", "index": 1}]
    again = site.ask("reservations", "POST", {"gpus": both, "for": "1h"}).json()
    assert [gpu["index"] for gpu in again["gpus"]] == ["0", "1"]


def test_a_whole_node_that_tells_only_the_instances_of_a_card(site: Site):
    split(site, cards=False)
    whole = site.ask("reservations", "POST", {"gpus": [{"node": "gpu3"}], "for": "1h"}).json()
    assert [gpu["index"] for gpu in whole["gpus"]] == ["0", "1.0", "1.1"]


def test_a_dry_run_saves_nothing(site: Site):
    planned = site.reserve("gpu1:1", dry_run=True)
    assert (planned.status_code, planned.json()["id"]) == (200, "")
    assert planned.json()["end"] == NOW + 2 * HOUR
    assert site.ask("reservations").json()["reservations"] == []
    site.made("gpu1:1")
    assert code(site.reserve("gpu1:1", who="admin", dry_run=True), 409) == "conflict"


def test_change_extend_end_and_cancel(site: Site):
    made = site.made("gpu1:1")
    path = f"reservations/{made['id']}"
    assert site.ask(path, "PATCH", {"extend": "2h"}).json()["end"] == NOW + 4 * HOUR
    changed = site.ask(
        path, "PATCH", {"end": "15:00", "comment": "now shorter", "gpus": [{"node": "gpu2", "index": 1}]}
    )
    assert (changed.json()["end"], changed.json()["comment"]) == (NOW + 5 * HOUR, "now shorter")
    assert changed.json()["gpus"][0]["id"] == "GPU-gpu2-1"
    stale = site.ask(path, "PATCH", {"comment": "x", "revision": made["revision"]})
    assert code(stale, 409) == "changed_meanwhile"
    assert code(site.ask(path, "PATCH", {"end": "18:00", "extend": "1h"}), 422) == "when_unclear"
    assert code(site.ask(path, "PATCH", {"end": "someday"}), 422) == "when_unclear"
    site.made("gpu2:1", start=NOW + 6 * HOUR, end=NOW + 7 * HOUR, who="admin")
    refused = site.ask(path, "PATCH", {"extend": "2h"})
    assert code(refused, 409) == "conflict"
    assert refused.json()["error"]["conflicts"][0]["person"] == "admin"
    site.tick(HOUR)
    ended = site.ask(f"{path}/end", "POST", {}).json()
    assert (ended["state"], ended["ending"], ended["last"]) == ("over", "ended", NOW + HOUR)
    assert code(site.ask(f"{path}/end", "POST", {}), 409) == "over"
    coming = site.made("gpu2:3", start=NOW + 2 * HOUR, end=NOW + 3 * HOUR)
    cancelled = site.ask(f"reservations/{coming['id']}", "DELETE").json()
    assert (cancelled["state"], cancelled["may_change"]) == ("cancelled", False)
    actions = [one["action"] for one in site.ask(path).json()["history"]]
    assert actions == ["made", "changed", "changed", "ended"]


def test_what_is_not_ones_own(site: Site):
    made = site.made("gpu1:1", who="admin")
    path = f"reservations/{made['id']}"
    assert site.ask(path).json()["may_change"] is False
    for answer in (
        site.ask(path, "PATCH", {"extend": "1h"}),
        site.ask(f"{path}/end", "POST", {}),
        site.ask(path, "DELETE"),
    ):
        assert code(answer, 403) == "not_yours"
    assert code(site.ask("reservations/000000000000"), 404) == "reservation_unknown"
    assert code(site.ask(path, "DELETE", who="viewer"), 403) == "not_yours"
    for_member = site.made("gpu1:2", who="admin", person="member")
    assert (for_member["person"], for_member["maker"]) == ("member", "admin")
    assert site.ask(f"reservations/{for_member['id']}", "DELETE").status_code == 200


def test_who_may_not_reserve_any_more_lets_go_of_what_is_theirs(site: Site):
    made = site.made("gpu1:2", who="admin", person="viewer")
    path = f"reservations/{made['id']}"
    seen = site.ask(path, who="viewer").json()
    assert (seen["mine"], seen["may_change"], seen["may_end"]) == (True, False, True)
    assert site.ask(path).json()["may_end"] is False
    assert code(site.ask(path, "PATCH", {"extend": "1h"}, "viewer"), 403) == "forbidden"
    assert site.ask(f"{path}/end", "POST", {}, "viewer").json()["ending"] == "ended"
    assert site.ask(path, who="viewer").json()["may_end"] is False


def test_gpus_that_are_gone_can_be_given_up_one_by_one(site: Site):
    made = site.made("gpu1:1", "gpu1:2", "gpu1:3")
    add(site.fleet, "gpu1", 2)
    path = f"reservations/{made['id']}"
    assert [gpu["id"] for gpu in site.ask(path).json()["gpus"]] == ["GPU-gpu1-1", None, None]
    less = {"gpus": [{"node": "gpu1", "index": 1}, {"node": "gpu1", "index": "2"}]}
    changed = site.ask(path, "PATCH", less)
    assert [gpu["index"] for gpu in changed.json()["gpus"]] == ["1", "2"], changed.text
    # What it has not any more is to be had as little as by anybody else.
    again = {"gpus": [{"node": "gpu1", "index": 3}]}
    assert code(site.ask(path, "PATCH", again), 422) == "gpu_unknown"


def test_every_change_is_in_the_audit_log(site: Site):
    made = site.made("gpu1:1")
    site.ask(f"reservations/{made['id']}", "PATCH", {"extend": "1h"})
    site.ask(f"reservations/{made['id']}", "DELETE")
    entries = [one for one in site.ask("audit", who="admin").json()["items"] if one["who"] != THE_HUB.name]
    assert [(one["action"], one["who"], one["target"]) for one in entries] == [
        (f"reservation.{word}", "member", made["id"]) for word in ("end", "change", "make")
    ]
    assert entries[-1]["detail"] == {
        "person": "member",
        "gpus": ["gpu1:1"],
        "start": "2026-11-16T09:00:00Z",
        "end": "2026-11-16T11:00:00Z",
    }


def test_an_entry_of_the_audit_log_can_be_read(site: Site):
    site.clock.now += 0.75
    site.made("gpu1:1", "gpu1:2", "gpu1:3", "gpu1:0", "gpu2:1", "gpu2:3", who="admin")
    (entry,) = [one for one in site.ask("audit", who="admin").json()["items"] if one["action"] == "reservation.make"]
    assert entry["detail"] == {
        "person": "admin",
        "gpus": ["gpu1:0-3", "gpu2:1,3"],
        "start": "2026-11-16T09:00:00Z",
        "end": "2026-11-16T11:00:00Z",
    }


def test_where_its_entry_cannot_be_written_nothing_is_reserved_or_changed(site: Site, monkeypatch):
    made = site.made("gpu1:1")

    def full(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(audit, "add", full)
        assert site.reserve("gpu1:2").status_code == 503
        assert site.ask(f"reservations/{made['id']}", "PATCH", {"extend": "1h"}).status_code == 503
        assert site.ask(f"reservations/{made['id']}", "DELETE").status_code == 503
    assert site.ask("reservations").json()["reservations"] == [made]
    assert [one["action"] for one in site.ask(f"reservations/{made['id']}").json()["history"]] == ["made"]


def test_a_change_of_nothing_is_no_entry(site: Site):
    made = site.made("gpu1:1")
    assert site.ask(f"reservations/{made['id']}", "PATCH", {"comment": made["comment"]}).status_code == 200
    actions = [one["action"] for one in site.ask("audit", who="admin").json()["items"]]
    assert "reservation.make" in actions
    assert "reservation.change" not in actions


def test_a_no_show_released_is_an_entry_of_the_hub(tmp_path: Path):
    site = Site(tmp_path, release_no_shows=True)
    made = site.made("gpu1:1", end=NOW + 5 * HOUR)
    # Looked at as each second would be, for a no-show is one that was seen unused.
    site.tick()
    site.tick(HOUR)
    site.tick(15 * 60)
    assert asyncio.run(site.desk.follow(noted(THE_HUB, "release"))) == ""
    entries = site.ask("audit", who="admin").json()["items"]
    (entry,) = [one for one in entries if one["action"] == "reservation.release"]
    assert (entry["who"], entry["target"]) == (THE_HUB.name, made["id"])
    site.close()


def test_which_are_listed(site: Site):
    first = site.made("gpu1:1", end=NOW + HOUR)
    second = site.made("gpu2:1", start=NOW + 24 * HOUR, end=NOW + 25 * HOUR, who="admin")
    late = site.made("gpu2:2", start=NOW + 40 * 24 * HOUR, end=NOW + 41 * 24 * HOUR, who="admin")

    def ids(query: str = "", who: str | None = "member") -> list[str]:
        return [one["id"] for one in site.ask(f"reservations{query}", who=who).json()["reservations"]]

    assert ids() == [second["id"], first["id"]]
    assert ids("?node=gpu1") == ids("?mine=true") == ids("?person=member") == [first["id"]]
    assert ids(f"?from={NOW + 2 * HOUR}&to={NOW + 50 * 24 * HOUR}") == [late["id"], second["id"]]
    page = site.ask("reservations?limit=1").json()
    assert ([one["id"] for one in page["reservations"]], page["next"]) == ([second["id"]], second["id"])
    assert ids(f"?limit=1&before={page['next']}") == [first["id"]]
    # What was over long ago is read from the database.
    site.clock.now += 60 * 24 * HOUR
    assert ids(f"?from={NOW}&to={NOW + HOUR}") == [first["id"]]
    assert code(site.ask("reservations?from=yesterday"), 400) == "bad_parameter"


def test_who_released_it_is_no_secret(tmp_path: Path):
    """Nobody is: it was gpulse, also where people are anonymous."""
    site = Site(tmp_path, others="anonymous", release_no_shows=True)
    made = site.made("gpu2:1", who="admin", **{"for": "4h"})
    for minutes in (1, 31, 16):
        site.tick(minutes * 60)
        asyncio.run(site.desk.release_no_shows())
    history = site.ask(f"reservations/{made['id']}").json()["history"]
    assert [(one["action"], one["by"]) for one in history] == [("made", "somebody"), ("released", "gpulse")]
    site.close()


def test_free_for_longer_than_is_known(site: Site):
    assert site.ask("free?for=366d").status_code == 200
    refused = site.ask("free?for=367d")
    assert (code(refused, 422), "366 days" in refused.text) == ("too_far", True)


def test_without_reservations():
    app = create_app(small(), access=open_access())
    assert ask(app, "/api/v1/reservations").json()["enabled"] is False
    assert ask(app, "/api/v1/when?text=friday").json()["error"]["code"] == "reservations_off"


def test_when(site: Site):
    told = site.ask("when?text=friday 18:00", who=None).json()
    assert told == {
        "at": NOW + 4 * 24 * HOUR + 8 * HOUR,
        "zone": "Europe/Berlin",
        "text": "Friday 20 November 2026, 18:00 CET",
        "in_seconds": 4 * 24 * HOUR + 8 * HOUR,
        "length_seconds": None,
    }
    told = site.ask(f"when?text=2d 4h&start={NOW + HOUR}").json()
    assert (told["in_seconds"], told["length_seconds"]) == (53 * HOUR, 52 * HOUR)
    assert site.ask("when?text=19:00&zone=Asia/Tokyo").json()["text"] == "Monday 16 November 2026, 19:00 JST"
    for text in ("", "blah", "01/02/2027", "x" * 200):
        assert code(site.ask(f"when?text={text}"), 422) == "when_unclear"


def on(site: Site, node: str, *users: tuple[int, str], seq: int = 2) -> None:
    """Somebody is on cards of a node."""
    cards = [card(f"GPU-{node}-{index}", index) for index in range(4)]
    there = [
        process(100 + place, user, f"GPU-{node}-{index}", "python x") | {"start_time": site.clock.now}
        for place, (index, user) in enumerate(users)
    ]
    site.fleet.line(node, snapshot(node, cards, there, seq=seq))


def findings(site: Site, who: str | None = "member") -> list[tuple[Any, ...]]:
    told = site.ask("reservations", who=who).json()["findings"]
    return [(one["kind"], one["node"], one["index"], one["person"], one["other"]) for one in told]


def test_what_runs_is_compared_with_what_is_reserved(site: Site):
    made = site.made("gpu2:1", "gpu2:2")
    site.tick()
    assert findings(site) == []
    before = site.fleet.reservations
    on(site, "gpu2", (1, "mallory"), (2, "member"))
    site.tick()
    assert findings(site) == [("squatter", "gpu2", "1", "member", "mallory")]
    assert site.fleet.reservations == before + 1, "who watches is told to ask"
    finding = site.ask("reservations").json()["findings"][0]
    assert (finding["reservation"], finding["gpu"], finding["pids"]) == (made["id"], "GPU-gpu2-1", [100])
    site.tick()
    assert site.fleet.reservations == before + 1, "nothing is new"
    site.fleet.down("gpu2", "unplugged")
    site.tick()
    assert findings(site) == [], "of a node that is down nobody knows"


def test_no_show_overrun_and_blocked(site: Site):
    site.made("gpu2:1", who="admin")
    site.made("gpu1:0", start=NOW + 45 * 60, end=NOW + 2 * HOUR)
    site.tick()
    assert findings(site) == [("blocked", "gpu1", "0", "member", "alice")]
    site.tick(29 * 60)
    assert len(findings(site)) == 1
    site.tick(2 * 60)
    assert ("no_show", None, None, "admin", None) in findings(site)
    on(site, "gpu2", (1, "admin"))
    site.tick()
    assert len(findings(site)) == 1, "they came"
    site.tick(2 * HOUR)
    assert ("overrun", "gpu2", "1", "admin", None) in findings(site)


def test_no_shows_are_released_where_the_site_says_so(tmp_path: Path):
    site = Site(tmp_path, release_no_shows=True, no_show_minutes=5)
    made = site.made("gpu2:1")
    site.tick(4 * 60)
    assert asyncio.run(site.desk.release_no_shows()) == []
    site.tick(2 * 60)
    (told,) = site.ask("reservations").json()["findings"]
    # It was told a minute late.
    assert (told["kind"], told["release_at"]) == ("no_show", NOW + 21 * 60)
    assert asyncio.run(site.desk.release_no_shows()) == [], "who is told of it can still come"
    site.tick(14 * 60)
    assert asyncio.run(site.desk.release_no_shows()) == []
    site.tick(60)
    assert [one.id for one in asyncio.run(site.desk.release_no_shows())] == [made["id"]]
    detail = site.ask(f"reservations/{made['id']}").json()
    assert (detail["state"], detail["ending"], detail["history"][-1]["action"]) == ("over", "no_show", "released")
    assert asyncio.run(site.desk.release_no_shows()) == []
    site.tick()
    assert site.ask("gpus/GPU-gpu2-1").json()["state"] == "free"
    site.close()


def test_no_shows_stay_where_it_does_not(site: Site):
    site.made("gpu2:1")
    site.tick(46 * 60)
    (told,) = site.ask("reservations").json()["findings"]
    assert (told["kind"], told["release_at"]) == ("no_show", None)
    assert asyncio.run(site.desk.release_no_shows()) == []
    assert site.ask("reservations").json()["reservations"][0]["state"] == "now"


def test_who_is_hidden(tmp_path: Path):
    site = Site(tmp_path, others="anonymous")
    hidden = site.made("gpu2:1", comment="hush_comment", who="admin", person="hush_login")
    own = site.made("gpu2:2", comment="own_comment")
    on(site, "gpu2", (1, "hush_other"), (2, "hush_other"))
    site.tick()
    page = site.ask("reservations").json()
    by_id = {one["id"]: one for one in page["reservations"]}
    assert (by_id[hidden["id"]]["person"], by_id[hidden["id"]]["name"], by_id[hidden["id"]]["comment"]) == (
        "somebody",
        "somebody",
        "",
    )
    assert by_id[hidden["id"]]["maker"] == "somebody"
    assert by_id[own["id"]]["comment"] == "own_comment"
    conflict = site.reserve("gpu2:1")
    paths = ("reservations", f"reservations/{hidden['id']}", "gpus", "nodes", "nodes/gpu2", "free?n=8", "users")
    for who in (None, "viewer", "member"):
        told = "".join(site.ask(path, who=who).text for path in paths) + conflict.text
        assert "hush" not in told
        assert ("own_comment" in told) == (who == "member")
        for query in ("person=hush_login", "person=hush_login&from=0"):
            page = site.ask(f"reservations?{query}", who=who).json()
            assert (page["reservations"], page["findings"]) == ([], [])
    admin = "".join(site.ask(path, who="admin").text for path in paths)
    assert all(word in admin for word in ("hush_login", "hush_comment", "hush_other", "own_comment"))
    lowered = site.ask("reservations?sight=anonymous", who="admin").text
    assert "hush" not in lowered
    assert "own_comment" not in lowered
    site.close()


def test_calendars(site: Site):
    site.made("gpu1:1", comment="mine, really\r\nBEGIN:VEVENT")
    site.made("gpu2:1", who="admin", comment="of the admin")
    cookie = {**site.people.page(site.people.session("member")), "Origin": "http://hub"}

    def make(scope: str) -> str:
        body = json.dumps({"scope": scope}).encode()
        answer = ask(site.app, "/api/v1/me/feeds", "POST", cookie, body)
        assert answer.status_code == 201, answer.text
        return "/" + str(answer.json()["path"])

    mine, fleet, node = make("mine"), make("fleet"), make("node:gpu2")
    answer = ask(site.app, mine)
    assert answer.headers["content-type"].startswith("text/calendar")
    assert answer.text.count("\r\nBEGIN:VEVENT\r\n") == 1
    assert "gpu1:1 member" in answer.text
    assert ask(site.app, fleet).text.count("\r\nBEGIN:VEVENT\r\n") == 2
    assert "of the admin" in ask(site.app, node).text
    listed = ask(site.app, "/api/v1/me/feeds", headers=cookie)
    assert [one["scope"] for one in listed.json()["items"]] == ["mine", "fleet", "node:gpu2"]
    assert listed.json()["enabled"] is True
    secret = mine.split("_")[2].removesuffix(".ics")
    assert secret not in listed.text + site.ask("audit", who="admin").text
    # A key makes none; nobody ends another's; a secret that is none opens nothing.
    assert code(site.ask("me/feeds", "POST", {"scope": "mine"}), 403) == "not_by_key"
    identity = mine.split("_")[1]
    assert code(site.ask(f"me/feeds/{identity}", "DELETE", who="admin"), 404) == "feed_unknown"
    wrong = mine.replace(secret, "0" * 48)
    for bad in (wrong, "/feeds/x.ics", "/feeds/gpk_000000000000_" + "0" * 48 + ".ics"):
        assert ask(site.app, bad).status_code == 404
    assert ask(site.app, f"/api/v1/me/feeds/{identity}", "DELETE", cookie).status_code == 200
    assert ask(site.app, mine).status_code == 404
    # It ends with the account, and does not come back.
    accounts, member = site.people.directory.accounts, site.people.accounts["member"]
    asyncio.run(accounts.disable(member))
    assert ask(site.app, fleet).status_code == 404
    asyncio.run(accounts.enable(member))
    assert ask(site.app, fleet).status_code == 404


def test_calendars_end_with_the_keys(site: Site):
    directory, member = site.people.directory, site.people.accounts["member"]
    for end in (
        lambda: directory.keys.revoke_all(member),
        lambda: directory.accounts.set_password(member, "another battery", revoke_keys=True),
    ):
        address = f"/feeds/{asyncio.run(directory.feeds.make(member, 'mine'))}.ics"
        assert ask(site.app, address).status_code == 200
        asyncio.run(end())
        assert ask(site.app, address).status_code == 404


def test_calendars_have_names_of_their_own(site: Site):
    cookie = {**site.people.page(site.people.session("member")), "Origin": "http://hub"}

    def made(scope: str) -> httpx.Response:
        return ask(site.app, "/api/v1/me/feeds", "POST", cookie, json.dumps({"scope": scope}).encode())

    for scope, name in (("mine", "member"), ("fleet", "all"), ("node:gpu2", "gpu2")):
        assert f"X-WR-CALNAME:gpulse: {name}\r\n" in ask(site.app, f"/{made(scope).json()['path']}").text
    assert code(made("node:gpu22"), 404) == "unknown_node"
    wrong = made("everything")
    assert code(wrong, 422) == "bad_scope"
    assert wrong.json()["error"]["detail"] == 'take "mine", "fleet" or "node:NAME"'


def test_a_calendar_sees_no_more_than_its_owner(tmp_path: Path):
    site = Site(tmp_path, others="anonymous")
    site.made("gpu2:1", comment="hush", who="admin")
    secret = asyncio.run(site.people.directory.feeds.make(site.people.accounts["viewer"], "fleet"))
    text = ask(site.app, f"/feeds/{secret}.ics").text
    assert "gpu2:1 somebody" in text
    assert "hush" not in text
    assert "admin" not in text
    site.close()
