"""Few nodes are looked at to find free GPUs, and the answer is that of looking at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.fleet.booked import Booked
from gpulse.fleet.filter import Filter
from gpulse.fleet.finder import Wish, find
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search
from gpulse.fleet.shortlist import shortlist
from gpulse.fleet.terms import fits_wish
from tests.fleet.lines import GIB, gpu, process, snapshot

NAMES = {"h": "NVIDIA H100 80GB HBM3", "l": "NVIDIA L40S"}
# Free, busy, idle, a split card with one instance that is free; reserved by another, or by who asks; free but reserved
# soon, by another or by who asks; reserved by who asks, then by another.
KINDS = st.sampled_from(["hf", "hb", "hi", "lf", "lb", "m", "hr", "lm", "hs", "lo", "hx"])
NOW = 1000.0


def fleet_of(nodes: list[list[str]]) -> Fleet:
    fleet = Fleet(clock=lambda: 5000.0, wall=lambda: 1000.0)
    now: dict[tuple[str, str], Booked] = {}
    later: dict[tuple[str, str], Booked] = {}
    for number, kinds in enumerate(nodes):
        name = f"n{number}"
        fleet.place(Place(name=name))
        cards, processes = [], []
        for index, kind in enumerate(kinds):
            uuid = f"GPU-{number}-{index}"
            if kind == "m":
                cards.append(gpu(index, uuid=uuid, mig_enabled=True))
                cards.append(gpu(index, uuid=f"MIG-{uuid}", parent_uuid=uuid, mig_index=0, memory_total_bytes=10 * GIB))
                continue
            memory = 80 * GIB if kind[0] == "h" else 48 * GIB
            busy = 0.9 if kind[1] == "b" else 0.0
            cards.append(gpu(index, uuid=uuid, name=NAMES[kind[0]], memory_total_bytes=memory, utilization_ratio=busy))
            if kind[1] in "bi":
                processes.append(process(100 + index, uuid, user=f"user{index}"))
            spot = (name, str(index))
            if kind[1] in "rmx":
                now[spot] = Booked(id="a", person="bob" if kind[1] == "r" else "ann", start=0, end=NOW + 30)
            if kind[1] in "sox":
                later[spot] = Booked(id="b", person="ann" if kind[1] == "o" else "bob", start=NOW + 60, end=NOW + 90)
        fleet.line(name, snapshot(*cards, processes=processes))
    fleet.book(now, later)
    fleet.tick()
    return fleet


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(KINDS, max_size=5), max_size=6),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from([None, "h100", "L40S", "A100"]),
    st.sampled_from([None, 9 * GIB, 60 * GIB, 90 * GIB]),
    st.sampled_from([None, "ann"]),
    st.sampled_from([0.0, 120.0]),
)
def test_the_same_answer_as_from_all_gpus(
    nodes: list[list[str]],
    n: int,
    same_node: bool,
    model: str | None,
    memory: int | None,
    me: str | None,
    seconds: float,
):
    fleet = fleet_of(nodes)
    wish = Wish(n=n, memory_bytes=memory, model=model, same_node=same_node, me=me, for_seconds=seconds)
    search = Search(fleet, Filter(fits_wish(model, memory), False))
    chosen = shortlist(fleet, search.roster, search.all(), wish, NOW)
    ids, gpus = set(), []
    for node, places in search.roster.by_node(chosen):
        ids.update(node.ids[place] for place in places)
        gpus += fleet.gpus_of(node.place.name)
    everything = fleet.gpus()
    answer = find(everything, wish, bookings=fleet.bookings, now=NOW)
    assert find(gpus, wish, ids, len(everything), fleet.bookings, NOW) == answer
    for one in answer.gpus:
        assert not fleet.bookings.kept((one.node, str(one.index)), me, NOW + seconds)
