"""What is hidden of people is in no byte of any answer, and no filter finds it."""

import asyncio
import json
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from starlette.applications import Starlette
from websockets.asyncio.client import connect

from gpulse.api.application import create_app
from gpulse.api.openapi import document
from gpulse.api.routes import ENDPOINTS
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Privacy
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.fleet.places import Place as NodePlace
from gpulse.reservations.desk import Desk
from gpulse.reservations.model import Place, Wanted
from gpulse.reservations.rules import By
from gpulse.reservations.table import Reservations
from tests.api.asking import ask
from tests.api.fleets import GIB, card, process, snapshot
from tests.api.people import HOSTS, People, make_people
from tests.api.test_live import serving

# Planted in what nodes tell, by whom they are for: of others these are seen at "full" alone...
ARGUMENTS = ("hush_folder", "hush_argument", "hush_script", "hush_container", "hush_title")
# ...and these also at "names".
NAMES = (
    "hush_login",
    "Hush Person",
    "hush_program",
    "hush_comment",
    "918273",
    "765432",
    "314159",
    "271828",
    "4242777",
    "1234567.875",
)
OWN = ("own_argument", "own_container", "555111")
CARDS = [f"GPU-{index}" for index in range(4)]
# A value for each parameter that is not a choice of few.
VALUES = {
    "node": "gpu1",
    "nodes": "gpu1",
    "gpu": CARDS[0],
    "q": "gpu1",
    "n": "4",
    "me": "hush_login",
    "model": "H100",
    "person": "hush_login",
    "from": "0",
    "text": "friday",
    "for": "2h",
}
PATHS = document(ENDPOINTS, "gpulse")["paths"]
LEVELS = ("names", "anonymous")


def planted() -> Fleet:
    """On gpu1 somebody else holds two GPUs, one of them idle; the third is the viewer's, the fourth both share."""
    # Time stands still, so that two answers differ by what they tell alone.
    fleet = Fleet(FleetSettings(people={"hush_login": "Hush Person"}), lambda: 1000.0, lambda: 1000.0)
    other: dict[str, Any] = {
        "uid": 314159,
        "parent_pid": 765432,
        "children": [271828],
        "start_time": 1234567.875,
        "cgroup": "/slurm_hush_container/uid_1/job_4242777/hush_container",
    }
    command = "/home/hush_folder/hush_program hush_script.py --token=hush_argument"
    processes = [
        process(918273, "hush_login", CARDS[0], command) | other | {"name": "hush_program"},
        process(918274, "hush_login", CARDS[1], command) | other | {"name": "hush_program hush_title"},
        process(918275, "hush_login", CARDS[3], command, 50) | other | {"name": None},
        process(555111, "viewer", CARDS[2], "python own_argument") | {"cgroup": "/docker/own_container"},
        process(555112, "viewer", CARDS[3], "python own_argument", 10),
    ]
    fleet.place(NodePlace(name="gpu1", address="ssh gpu1"))
    cards = [card(uuid, index, memory_used_bytes=40 * GIB) for index, uuid in enumerate(CARDS)]
    # One of those that the checks tell of, too.
    reports = [{"collector": "nvidia_nvml", "message": "hush_login and 918273: cannot be read"}]
    fleet.line("gpu1", snapshot("gpu1", cards, processes, reports=reports))
    fleet.log("gpu1", "hush_login has no home on it")
    fleet.place(NodePlace(name="gpu2", address="ssh gpu2"))
    fleet.down("gpu2", "hush_login may not log in to it; ask hush_login")
    fleet.tick()
    return fleet


class World(NamedTuple):
    people: People
    fleet: Fleet
    # By level.
    apps: dict[str, Starlette]
    viewer: dict[str, str]
    admin: dict[str, str]


# The id of the reservation that is planted.
RESERVATION: list[str] = []


def reserved(people: People, fleet: Fleet) -> Desk:
    """Somebody has reserved what the viewer is on."""
    table = Reservations(people.records, fleet.wall)
    places = (Place("gpu1", "0"), Place("gpu1", "2"))
    wanted = Wanted(person="hush_login", places=places, start=1000.0, end=2000.0, comment="hush_comment")
    RESERVATION[:] = [asyncio.run(table.make(wanted, By("hush_login"))).id]
    desk = Desk(table, fleet, Config().reservations, fleet.wall)
    desk.look()
    assert {one.kind for one in desk.findings} == {"squatter"}
    fleet.tick()
    return desk


def access(people: People, others: Any) -> Any:
    config = Config(access=AccessSettings(hosts=HOSTS), privacy=Privacy(others=others))
    return people.access(anonymous=True, config=config)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    people = make_people(tmp_path_factory.mktemp("hub"))
    fleet = planted()
    desk = reserved(people, fleet)
    apps = {level: create_app(fleet, access=access(people, level), desk=desk) for level in (*LEVELS, "full")}
    keys = {role: {"Authorization": f"Bearer {people.key(role)}"} for role in ("viewer", "admin")}
    yield World(people, fleet, apps, keys["viewer"], keys["admin"])
    people.records.close()


def addresses(more: str = "") -> Iterator[tuple[str, str, str]]:
    """Of everything that is described and that people read: method, path, and an address for each choice there is."""
    for path, methods in PATHS.items():
        filled = path.replace("{node}", "gpu1").replace("{id}", CARDS[0]).replace("{reservation}", RESERVATION[0])
        for method, operation in methods.items():
            if operation["x-may"] not in ("read", "anyone", "self") or method not in ("get", "post"):
                continue
            if method == "post" and operation["x-may"] != "read":
                continue
            parameters = operation.get("parameters", [])
            queries = [f"?{query}" for query in ("", *choices(parameters))]
            takes_sight = any(one["name"] == "sight" for one in parameters)
            for query in queries:
                yield method.upper(), path, filled + query + (f"&{more}" if takes_sight else "")


def choices(parameters: list[dict[str, Any]]) -> Iterator[str]:
    for one in parameters:
        name, schema = one["name"], one["schema"]
        if one["in"] != "query" or name == "sight":
            continue
        if name in VALUES:
            yield f"{name}={VALUES[name]}"
        elif "enum" in schema:
            yield from (f"{name}={value}" for value in schema["enum"])
        elif schema.get("type") == "boolean":
            yield f"{name}=true"


def everything(app: Starlette, headers: dict[str, str], more: str = "") -> str:
    """All answers to all questions, their headers too."""
    told, good = [], set()
    for method, path, address in addresses(more):
        answer = ask(app, address, method, headers, b"{}" if method == "POST" else None)
        if answer.status_code == 200:
            good.add(path)
        told.append(f"{address}: {answer.headers} {answer.text}")
    reads = {path for path, methods in PATHS.items() if any(one["x-may"] == "read" for one in methods.values())}
    assert reads - good <= {"/api/v1/live", "/free"}, "each was answered at least once"
    # What was asked stands in refusals.
    return "\n".join(told).replace("me=hush_login", "").replace("person=hush_login", "")


def found(words: tuple[str, ...], text: str) -> set[str]:
    return {word for word in words if word.lower() in text.lower()}


def test_all_that_is_planted_can_be_seen(world: World):
    told = everything(world.apps["full"], {})
    assert found(ARGUMENTS + NAMES + OWN, told) == {*ARGUMENTS, *NAMES, *OWN}
    assert found(ARGUMENTS + NAMES + OWN, everything(world.apps["anonymous"], world.admin)) == {
        *ARGUMENTS,
        *NAMES,
        *OWN,
    }


def test_names_without_arguments(world: World):
    told = everything(world.apps["names"], {})
    assert found(ARGUMENTS + OWN[:2], told) == set()
    assert found(NAMES, told) == set(NAMES)


def test_nobody_has_a_name(world: World):
    assert (
        found(
            ARGUMENTS + NAMES + OWN + ("viewer",),
            everything(world.apps["anonymous"], {}).replace('"role":"viewer"', ""),
        )
        == set()
    )


@pytest.mark.parametrize("level", LEVELS)
def test_oneself_is_seen_in_full(world: World, level: str):
    told = everything(world.apps[level], world.viewer)
    assert found(OWN, told) == set(OWN)
    assert found(ARGUMENTS, told) == set()
    assert found(NAMES, told) == (set(NAMES) if level == "names" else set())


@pytest.mark.parametrize("level", LEVELS)
def test_who_asks_for_less_gets_what_strangers_see(world: World, level: str):
    for headers in (world.admin, world.viewer, {}):
        told = everything(world.apps["names"], headers, f"sight={level}")
        assert found(ARGUMENTS + OWN[:2], told) == set()
        assert found(NAMES, told) == (set(NAMES) if level == "names" else set())


def test_who_asks_for_less_is_not_named_either(world: World):
    """Whoever shows the page to others, or exports it, does not show who they are."""
    told = []
    for method, _, address in addresses("sight=anonymous"):
        if "sight=anonymous" in address and "own" not in address:
            for app in world.apps.values():
                told.append(ask(app, address, method, world.viewer, b"{}" if method == "POST" else None).text)
    assert len(told) > 30
    assert any("findings" in one and "somebody" in one for one in told)
    assert not [one for one in told if "viewer" in one or '"mine":true' in one]


def test_nobody_gets_more_by_asking(world: World):
    assert found(ARGUMENTS + NAMES, everything(world.apps["anonymous"], {}, "sight=full")) == set()
    assert found(ARGUMENTS, everything(world.apps["names"], {}, "sight=full")) == set()


def test_how_others_look(world: World):
    def processes(level: str) -> list[dict[str, Any]]:
        return ask(world.apps[level], "/api/v1/nodes/gpu1").json()["processes"]

    named = processes("names")[0]
    assert (named["user"], named["person"], named["name"], named["command"], named["cgroup"]) == (
        "hush_login",
        "Hush Person",
        "hush_program",
        "hush_program",
        "/slurm/job_4242777",
    )
    assert processes("names")[2]["command"] == "hush_program", "of the command where there is no name"
    use = {"uuid": CARDS[0], "kinds": ["compute"], "memory_bytes": 40 * GIB, "sm_ratio": 0.5}
    assert processes("anonymous")[0] == {"user": "somebody", "person": "somebody", "node": "gpu1", "gpus": [use]}
    shared = ask(world.apps["anonymous"], f"/api/v1/gpus/{CARDS[3]}", headers=world.viewer).json()
    assert [(one["person"], one["processes"]) for one in shared["people"]] == [("somebody", 1), ("viewer", 1)]


def test_people_whose_names_are_hidden_are_counted(world: World):
    def users(headers: dict[str, str], query: str = "") -> tuple[list[str], int, int]:
        page = ask(world.apps["anonymous"], f"/api/v1/users{query}", headers=headers).json()
        return [one["person"] for one in page["items"]], page["total"], page.get("others", 0)

    assert users({}) == ([], 0, 2)
    assert users(world.viewer) == (["viewer"], 1, 1)
    assert users(world.admin) == (["Hush Person", "viewer"], 2, 0)
    assert users({}, "?q=hush") == users({}, "?q=nothing") == ([], 0, 2)


WORDS = ("hush_argument", "hush_folder", "hush_script", "hush_container", '"hush_script.py --token"', "hush_title")
NAMED = ("hush_login", "hush_program", "user:hush_login", 'user:"hush person"', "job:4242777", "4242777", "mine")


@pytest.mark.parametrize("word", [*WORDS, *NAMED])
@pytest.mark.parametrize("level", LEVELS)
def test_no_filter_finds_what_is_hidden(world: World, level: str, word: str):
    """Nor by what it leaves out, nor by a sum."""
    hidden = level == "anonymous" or word in WORDS
    nothing = "nothing_has_this"

    def told(app: Starlette, path: str, q: str) -> str:
        answer = ask(app, f"/api/v1/{path}q={q}&me=hush_login")
        assert answer.status_code == 200
        return answer.text

    for path in ("nodes?", "gpus?", "gpus?sort=-utilization&", "free?n=3&"):
        for sign in ("", "-"):
            same = told(world.apps[level], path, sign + word) == told(world.apps[level], path, sign + nothing)
            assert same or not hidden, (path, sign)
    if word != "hush_container":
        # At "full" the same word is found.
        assert json.loads(told(world.apps["full"], "gpus?", word))["total"] == (1 if word == "hush_title" else 3)
        assert json.loads(told(world.apps[level], "gpus?", word))["total"] == (0 if hidden else 3)


def test_filters_find_what_is_seen(world: World):
    def total(level: str, q: str, headers: dict[str, str]) -> int:
        return ask(world.apps[level], f"/api/v1/gpus?q={q}", headers=headers).json()["total"]

    for level in LEVELS:
        for own in ("own_argument", "user:viewer", "mine"):
            assert total(level, own, world.viewer) == 2, own
    assert total("anonymous", "user:somebody", world.viewer) == total("anonymous", "some", world.viewer) == 3
    assert total("names", "user:somebody", world.viewer) == total("full", "somebody", {}) == 0
    assert total("names", "python", {}) == 2


def test_an_answer_is_kept_for_those_who_see_the_same(world: World):
    app = world.apps["names"]
    answers = [ask(app, "/api/v1/nodes/gpu1", headers=headers) for headers in (world.admin, world.viewer, {})]
    assert len({answer.text for answer in answers}) == len({answer.headers["etag"] for answer in answers}) == 3
    tag = {"If-None-Match": answers[0].headers["etag"]}
    assert ask(app, "/api/v1/nodes/gpu1", headers=world.viewer | tag).status_code == 200
    assert ask(app, "/api/v1/nodes/gpu1", headers=world.admin | tag).status_code == 304
    # Who has no process sees what those see who are not signed in.
    member = {"Authorization": f"Bearer {world.people.key('member')}"}
    assert ask(app, "/api/v1/nodes/gpu1", headers=member).headers["etag"] == answers[2].headers["etag"]


def unpacked(frame: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    """Head, layout and planes of a full frame."""
    body = 12 + int.from_bytes(frame[8:12], "little")
    head = json.loads(frame[12:body])
    layout = body + head["layout_bytes"]
    return head, zlib.decompress(frame[body:layout]), zlib.decompress(frame[layout:])


def persons(planes: bytes) -> list[int]:
    plane = planes[6 * len(CARDS) : 8 * len(CARDS)]
    return [int.from_bytes(plane[at : at + 2], "little") for at in range(0, len(plane), 2)]


async def first(url: str, headers: dict[str, str]) -> list[str | bytes]:
    """The messages up to the first frame."""
    async with connect(url, additional_headers=headers) as listener:
        messages = [await asyncio.wait_for(listener.recv(), 10)]
        while isinstance(messages[-1], str) and json.loads(messages[-1])["type"] == "own":
            messages.append(await asyncio.wait_for(listener.recv(), 10))
        return messages


def live(people: People, level: str, query: str, headers: dict[str, str]) -> list[str | bytes]:
    async def run() -> list[str | bytes]:
        async with serving(planted(), access=access(people, level)) as server:
            return await first(server.url(query), headers)

    return asyncio.run(run())


@pytest.mark.parametrize("more", ["", "&q=gpu1"])
def test_live_json(world: World, more: str):
    def told(level: str, headers: dict[str, str], query: str = "") -> str:
        (frame,) = live(world.people, level, f"?format=json{more}{query}", headers)
        assert isinstance(frame, str)
        return frame

    assert found(("Hush Person", "viewer"), told("names", {})) == {"Hush Person", "viewer"}
    assert found(("viewer", *NAMES), told("anonymous", world.viewer)) == {"viewer"}
    for frame in (told("anonymous", {}), told("full", world.admin, "&sight=anonymous")):
        assert found((*ARGUMENTS, *NAMES, "viewer"), frame) == set()
        assert "somebody" in frame


@pytest.mark.parametrize("word", ["hush_argument", "user:hush_login", "job:4242777"])
def test_the_filter_of_live_json(world: World, word: str):
    (frame,) = live(world.people, "anonymous", f"?q={word}", {})
    assert json.loads(frame)["total"] == 0
    (frame,) = live(world.people, "full", f"?q={word}", {})
    assert json.loads(frame)["total"] == 1


def test_live_frames(world: World):
    (frame,) = live(world.people, "names", "?format=binary", {})
    head, _, planes = unpacked(frame)
    assert [head["people"][number] for number in persons(planes)] == [
        "Hush Person",
        "Hush Person",
        "viewer",
        "Hush Person",
    ]

    for level, query, headers in (("anonymous", "", {}), ("names", "&sight=anonymous", world.viewer)):
        (frame,) = live(world.people, level, f"?format=binary{query}", headers)
        head, layout, planes = unpacked(frame)
        assert (head["people"], persons(planes)) == (["", "somebody"], [1, 1, 1, 1])
        assert found((*ARGUMENTS, *NAMES, "viewer"), json.dumps(head) + layout.decode()) == set()

    own, frame = live(world.people, "anonymous", "?format=binary", world.viewer)
    assert json.loads(own) == {"type": "own", "person": "viewer", "gpus": [2]}
    assert persons(unpacked(frame)[2]) == [1, 1, 1, 1], "the same frame for all"


def test_which_gpus_are_ones_own_is_told_again_when_it_changes(world: World):
    fleet = planted()

    async def run() -> None:
        async with (
            serving(fleet, access=access(world.people, "anonymous")) as server,
            connect(server.url("?format=binary"), additional_headers=world.viewer) as listener,
        ):

            async def message() -> Any:
                text = await asyncio.wait_for(listener.recv(), 10)
                return json.loads(text)["gpus"] if isinstance(text, str) else text[5]

            assert [await message(), await message()] == [[2], 0]
            fleet.tick()
            assert await message() == 1, "a delta, and no word about what has not changed"
            cards = [card(uuid, index) for index, uuid in enumerate(CARDS)]
            mine = [process(7, "viewer", uuid, "python x") for uuid in CARDS[:2]]
            fleet.line("gpu1", snapshot("gpu1", cards, mine, seq=2))
            fleet.tick()
            assert [await message(), await message()] == [[0, 1], 1]

    asyncio.run(run())
