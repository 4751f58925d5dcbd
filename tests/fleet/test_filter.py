"""The filter language, word by word."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.errors import FilterError
from gpulse.fleet import health
from gpulse.fleet.booked import Booked
from gpulse.fleet.figure_terms import FIGURES
from gpulse.fleet.filter import Filter, parse
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.fleet.health import FLAGS
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search
from gpulse.fleet.sight import FULL, Sight
from gpulse.fleet.terms import KEYS
from gpulse.fleet.views import GPU_STATES
from tests.fleet.lines import GIB, gpu, process, snapshot, update

# Shared with the page, which has the same language: web/src/lib/filter.test.ts.
CASES = json.loads((Path(__file__).parent / "filter_cases.json").read_text())
GPU = gpu(
    uuid="GPU-1",
    memory_used_bytes=60 * GIB,
    utilization_ratio=0.07,
    temperature_celsius=81,
    temperature_slowdown_celsius=85,
    power_watts=300.5,
    throttle_reasons=["sw_power_cap", "hw_thermal_slowdown"],
)
PROCESS = process(
    12,
    "GPU-1",
    name="python3",
    command="python3 train.py --size LARGE",
    cgroup="/system.slice/slurmstepd.scope/job_1234/step_0",
)
PLACE = Place(name="gpu03", display_name="Big One", group="lab", rack="R 7")


def fleet_of(*gpus: dict[str, Any], processes: Any = (), place: Place = PLACE) -> Fleet:
    fleet = Fleet(
        FleetSettings(people={"alice": "Alice L.", "carol": "Carol C."}), clock=lambda: 5000.0, wall=lambda: 1000.0
    )
    fleet.place(place)
    fleet.line(place.name, snapshot(*gpus, processes=processes))
    return fleet


def found(fleet: Fleet, text: str, me: str | None = None, sight: Sight = FULL) -> list[str]:
    """The GPUs that match, by id; a node without any by its name."""
    search = Search(fleet, parse(text, me, sight))
    return [
        name
        for node, places in search.roster.by_node(search.all())
        for name in ([node.ids[place] for place in places] or [node.place.name])
    ]


CAROL = Booked("r1", "carol", 900.0, 9000.0)
BOB = Booked("r2", "bob", 900.0, 9000.0)
FLEET = fleet_of(GPU, processes=[PROCESS])
# Carol has reserved what alice is on.
FLEET.book({("gpu03", "0"): CAROL}, {})


@pytest.mark.parametrize(("text", "expected"), CASES["matches"])
def test_what_matches(text: str, expected: bool):
    assert found(FLEET, text) == (["GPU-1"] if expected else [])


def test_mine_is_who_asks():
    assert found(FLEET, "mine", me="Alice")
    assert not found(FLEET, "mine", me="bob")
    with pytest.raises(FilterError, match="me=alice"):
        parse("mine")


def reserved_fleet() -> Fleet:
    """Of three GPUs carol has one, bob one, and later the third."""
    fleet = fleet_of(*(gpu(index, uuid=f"GPU-{index}") for index in range(3)))
    later = BOB._replace(start=2000.0)
    fleet.book({("gpu03", "0"): CAROL, ("gpu03", "1"): BOB}, {("gpu03", "2"): later})
    fleet.tick()
    return fleet


def test_reserved_by_whom():
    fleet = reserved_fleet()
    assert found(fleet, "reserved") == ["GPU-0", "GPU-1"]
    assert found(fleet, "reserved:carol") == ["GPU-0"]
    assert found(fleet, "reserved -reserved:carol") == ["GPU-1"]
    assert found(fleet, "reserved:bob") == ["GPU-1"], "what begins later is not reserved yet"
    for me in ("bob", "BOB"):
        assert found(fleet, "reserved:me", me=me) == ["GPU-1"]
    assert found(fleet, "reserved:me", me="Carol C.") == ["GPU-0"]
    assert found(fleet, "-reserved:me", me="dave") == ["GPU-0", "GPU-1", "GPU-2"]
    fleet.book({}, {})
    assert found(fleet, "reserved:carol") == []
    assert found(fleet, "-reserved:carol") == ["GPU-0", "GPU-1", "GPU-2"]


def test_who_has_reserved_a_card_has_its_instances():
    parent = gpu(0, uuid="GPU-3", mig_enabled=True)
    parts = [gpu(0, uuid=f"MIG-{at}", parent_uuid="GPU-3", mig_index=at) for at in range(2)]
    fleet = fleet_of(parent, *parts)
    fleet.book({("gpu03", "0"): CAROL}, {})
    assert found(fleet, "reserved:carol") == ["GPU-3", "MIG-0", "MIG-1"]
    fleet.book({("gpu03", "0.1"): CAROL}, {})
    assert found(fleet, "reserved:carol") == ["MIG-1"]


def test_who_is_hidden_is_not_found_by_what_they_have_reserved():
    fleet = reserved_fleet()
    bob = Sight("anonymous", frozenset({"bob"}))
    assert found(fleet, "reserved:bob", sight=bob) == found(fleet, "reserved:me", me="bob", sight=bob) == ["GPU-1"]
    for text in ("reserved:carol", 'reserved:"carol c."'):
        assert found(fleet, text, sight=bob) == []
        assert found(fleet, f"-{text}", sight=bob) == ["GPU-0", "GPU-1", "GPU-2"]
    assert found(fleet, "reserved:me", me="carol", sight=bob) == [], "a name that is only said opens nothing"
    assert found(fleet, "reserved:somebody", sight=bob) == ["GPU-0"]
    assert found(fleet, "reserved:carol", sight=Sight("names")) == ["GPU-0"]
    assert found(fleet, "reserved:somebody") == []


@pytest.mark.parametrize(("text", "words"), [*CASES["mistakes"], ("x" * 501, ["501", "500"])])
def test_a_mistake_is_named(text: str, words: list[str]):
    with pytest.raises(FilterError) as caught:
        parse(text)
    for word in words:
        assert word in str(caught.value)


def test_unknown_figures_do_not_compare():
    bare = fleet_of({"uuid": "GPU-9"})
    for text in ("util<10", "util>=0", "temp<100", "power=0", "mem>0", "free_mem>=0"):
        assert found(bare, text) == []
        assert found(bare, f"-{text}") == ["GPU-9"]


@pytest.mark.parametrize("watts", [300.4, 0.1, 699.999, 71.25])
def test_figures_compare_as_they_were_told(watts: float):
    """The columns have seven digits: no more may be made of them, and no less."""
    fleet = fleet_of(gpu(power_watts=watts, utilization_ratio=0.29))
    assert found(fleet, f"power={watts} util=29")
    assert not found(fleet, f"power<{watts}")
    assert not found(fleet, f"power>{watts}")


def test_what_the_driver_keeps_is_not_free():
    fleet = fleet_of(gpu(memory_used_bytes=20 * GIB, memory_reserved_bytes=GIB))
    assert found(fleet, "free_mem=59GiB")
    fleet.line("gpu03", update(0, 1, 1001.0, gpus={"memory_reserved_bytes": [2 * GIB]}))
    assert found(fleet, "free_mem=58GiB")


def test_a_node_without_gpus_is_found_by_its_own_words():
    fleet = fleet_of(place=Place(name="gpu09", rack="r1"))
    fleet.down("gpu09", "refused")
    for text in ("down", "gpu09", "rack:r1", "node:gpu[01-09]", "-user:alice", "-mem>1G", "-flag:hot", "-free"):
        assert found(fleet, text) == ["gpu09"], text
    for text in ("free", "mem>1G", "user:alice", "model:h100", "flag:hot", "job:1", "-down"):
        assert found(fleet, text) == [], text


def test_a_fleet_of_nothing():
    assert found(Fleet(), "free util<10 alice user:bob") == []


def test_a_node_tells_which_gpus_match_by_their_own_processes():
    fleet = fleet_of(GPU, gpu(1, uuid="GPU-2"), processes=[PROCESS])
    assert found(fleet, "train.py") == ["GPU-1"]
    assert found(fleet, "-train.py") == ["GPU-2"]
    assert found(fleet, "-train.py gpu03") == ["GPU-2"]
    assert found(fleet, "free") == ["GPU-2"]
    assert found(fleet, "user:alice") == ["GPU-1"]
    assert found(fleet, "job:99") == []


def test_a_process_that_calls_itself_another_name_is_found_by_it():
    fleet = fleet_of(GPU, processes=[PROCESS])
    assert found(fleet, "renamed") == []
    fleet.line("gpu03", update(0, 1, 1001.0, processes={"name": ["renamed"]}))
    assert found(fleet, "renamed") == ["GPU-1"]
    assert found(fleet, "-renamed") == []


def test_what_was_found_is_forgotten_with_the_next_snapshot():
    fleet = fleet_of(GPU, processes=[PROCESS])
    assert found(fleet, "train.py lab user:alice model:h100")
    fleet.line("gpu03", snapshot({**GPU, "name": "NVIDIA L40S"}, processes=[{**PROCESS, "user": "bob"}], seq=5))
    fleet.place(Place(name="gpu03", group="shared"))
    assert found(fleet, "train.py shared user:bob model:l40s")
    for text in ("user:alice", "model:h100", "lab"):
        assert found(fleet, text) == [], text


def test_a_card_split_into_instances_has_no_state_of_its_own():
    parent = gpu(0, uuid="GPU-3", mig_enabled=True)
    fleet = fleet_of(parent, gpu(0, uuid="MIG-1", parent_uuid="GPU-3", mig_index=0))
    assert found(fleet, "free") == ["MIG-1"]
    assert found(fleet, "-busy") == ["MIG-1"]
    assert found(fleet, "-state:busy") == ["MIG-1"]
    assert found(fleet, "gpu03") == ["GPU-3", "MIG-1"]


@pytest.mark.parametrize(
    ("flag", "fields"),
    [
        ("fault", {"fault": "does not answer"}),
        ("rows_failed", {"remapped_rows_failed": True}),
        ("ecc_uncorrected", {"ecc_uncorrected_volatile_total": 3}),
        ("hot", {"temperature_celsius": 84}),
        ("throttled", {"throttle_reasons": ["hw_slowdown"]}),
        ("rows_pending", {"remapped_rows_pending": True}),
        ("pages_pending", {"retired_pages_pending": True}),
        ("nvlink_down", {"nvlink_links_active": 17}),
    ],
)
def test_flags_that_come_and_go(flag: str, fields: dict[str, Any]):
    well = gpu(0, temperature_slowdown_celsius=87, nvlink_links=18, nvlink_links_active=18)
    ill = {**gpu(1), "temperature_slowdown_celsius": 87, "nvlink_links": 18, "nvlink_links_active": 18, **fields}
    fleet = fleet_of(well, ill)
    assert found(fleet, f"flag:{flag}") == ["GPU-1"]
    assert found(fleet, f"-flag:{flag}") == ["GPU-0"]
    # By an update: the other is well again, and this one is not.
    columns = {name: [value, well.get(name)] for name, value in fields.items()}
    fleet.line("gpu03", update(0, 1, 1001.0, gpus=columns))
    assert found(fleet, f"flag:prohibited,{flag}") == ["GPU-0"]


def test_flags_that_a_snapshot_brings():
    events = [{"time": 999.0, "xid": 79}], [{"time": 999.0, "xid": 13}], [{"time": 1.0 - 1e6, "xid": 79}]
    cards = [gpu(index, xid_events=each) for index, each in enumerate(events)]
    fleet = fleet_of(
        *cards, gpu(3, compute_mode="prohibited"), gpu(4), processes=[process(7, "GPU-4", vanished=True, user=None)]
    )
    assert found(fleet, "flag:xid") == ["GPU-0"]
    assert found(fleet, "flag:xid_program") == ["GPU-1"]
    assert found(fleet, "flag:prohibited") == ["GPU-3"]
    assert found(fleet, "flag:vanished") == ["GPU-4"]
    fleet.line("gpu03", update(0, 1, 1001.0, processes={"vanished": [None]}))
    assert found(fleet, "flag:vanished") == []


def test_a_flag_is_found_where_it_is_told():
    """What a view tells and what a filter finds come from one place."""
    assert set(FLAGS) >= health.UNHEALTHY
    for view in FLEET.gpus():
        assert view.flags
        for flag in FLAGS:
            assert bool(found(FLEET, f"flag:{flag}")) is (flag in view.flags)


def test_words_written_in_escapes_are_found_too():
    fleet = fleet_of(gpu())
    line = update(0, 1, 1001.0, gpus={"throttle_reasons": [["hw_slowdown"]]}).replace(b"slowdown", b"\\u0073lowdown")
    fleet.line("gpu03", line)
    assert found(fleet, "flag:throttled") == ["GPU-0"]


PARTS = st.sampled_from([*KEYS, *FIGURES, *GPU_STATES, "mine", ":", ">", "<=", '"', "-", " ", "[", "]", "01-16", "40g"])


@settings(max_examples=300)
@given(st.text(max_size=60) | st.lists(PARTS, max_size=12).map("".join))
def test_any_text_is_a_filter_or_a_clear_error(text: str):
    try:
        filter_ = parse(text, me="alice")
    except FilterError as error:
        assert len(str(error)) > 20
    else:
        assert isinstance(filter_, Filter)
        assert len(Search(FLEET, filter_).all()) <= 1


@settings(max_examples=200)
@given(st.text(alphabet="gpu[]0123456789-,/@!&^:%{}()$", max_size=40))
def test_any_set_of_nodes_is_understood_or_refused(text: str):
    try:
        found(FLEET, f"node:{text}")
    except FilterError as error:
        assert "node:" in str(error)


@pytest.mark.parametrize(
    "text", ["gpu[+1-2000000]", 'node:"gpu[ 1-2000000]"', "node:gpu[1_0-2000000]", "node:gpu[١-٩]"]
)
def test_ranges_cannot_be_smuggled_past_the_limit(text):
    with pytest.raises(FilterError):
        parse(text if text.startswith("node:") else f"node:{text}")
