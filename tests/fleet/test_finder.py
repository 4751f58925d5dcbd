"""Finding free GPUs: which are chosen, and what is said when there are too few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.fleet.finder import Wish, describe, find, place_of
from gpulse.fleet.sizes import gibibytes, parse_size
from gpulse.fleet.views import GPU_STATES, GpuState, GpuView, PersonUse

GIB = 2**30


def gpu(node: str, index: int, state: GpuState = "free", gigabytes: int = 80, **more: object) -> GpuView:
    fields: dict[str, object] = {
        "model": f"H100 {gigabytes}G",
        "memory_total_bytes": gigabytes * GIB,
        "memory_used_bytes": 0,
        "uuid": f"GPU-{node}-{index}",
    }
    fields.update(more)
    return GpuView(node=node, id=f"{node}/{index}", index=index, state=state, **fields)  # type: ignore[arg-type]


def node(name: str, states: str, gigabytes: int = 80) -> list[GpuView]:
    kinds: dict[str, GpuState] = {"f": "free", "b": "busy", "i": "idle", "r": "reserved", "d": "down"}
    people = [PersonUse(person="alice")]
    return [
        gpu(name, index, kinds[letter], gigabytes, people=people if letter in "bi" else [])
        for index, letter in enumerate(states)
    ]


def places(gpus: list[GpuView]) -> list[str]:
    return [place_of(each) for each in gpus]


def test_on_a_node_of_several_models_cards_are_named_by_uuid():
    """CUDA counts the fastest first there: an index may mean another card."""
    mixed = [gpu("gpu1", 0, model="RTX 3090"), gpu("gpu1", 1, model="A100 80G", state="busy")]
    assert find(mixed, Wish(n=1)).export == "CUDA_VISIBLE_DEVICES=GPU-gpu1-0"


def test_whole_nodes_stay_whole():
    answer = find([*node("gpu1", "ffff"), *node("gpu2", "bffb")], Wish(n=2))
    assert answer.found
    assert places(answer.gpus) == ["gpu2:1", "gpu2:2"]
    assert answer.node == "gpu2"
    assert answer.export == "CUDA_VISIBLE_DEVICES=1,2"
    assert answer.explanation == "2 free on gpu2"


def test_the_tightest_gap_is_taken_then_natural_order():
    fleet = [*node("gpu1", "bfff"), *node("gpu2", "bbff"), *node("gpu10", "bbff")]
    assert places(find(fleet, Wish(n=2)).gpus) == ["gpu2:2", "gpu2:3"]


def test_several_nodes_when_no_single_one_has_enough():
    fleet = [*node("gpu1", "bf"), *node("gpu2", "ff"), *node("gpu3", "fb")]
    answer = find(fleet, Wish(n=3))
    assert places(answer.gpus) == ["gpu2:0", "gpu2:1", "gpu1:1"]
    assert answer.node is None
    assert answer.export is None
    assert answer.explanation == "3 free on 2 nodes: gpu2, gpu1"


def test_same_node_is_kept_to():
    answer = find([*node("gpu1", "bf"), *node("gpu2", "ff")], Wish(n=3, same_node=True))
    assert not answer.found
    assert answer.gpus == []
    assert answer.explanation == "no node has 3 free: gpu2 has 2, 3 are free on all nodes"


def test_memory_and_model_are_of_the_card():
    fleet = [*node("gpu1", "ff", 24), *node("gpu2", "ff", 80)]
    assert places(find(fleet, Wish(memory_bytes=40 * 10**9)).gpus) == ["gpu2:0"]
    assert places(find(fleet, Wish(model="24g")).gpus) == ["gpu1:0"]
    answer = find(fleet, Wish(n=3, memory_bytes=40 * 10**9, model="H100"))
    assert answer.explanation == "2 of 3 free H100 with 40 GB: gpu2:0, gpu2:1"


def test_what_is_missing_names_who_holds_idle_ones():
    fleet = [*node("gpu03", "fi"), *node("gpu07", "bif"), *node("gpu08", "r")]
    fleet[3].people.append(PersonUse(person="bob"))
    answer = find(fleet, Wish(n=4, memory_bytes=40 * 10**9))
    assert answer.explanation == (
        "2 of 4 free with 40 GB: gpu03:0, gpu07:2; 2 more are idle but held by alice, bob; 1 is reserved"
    )


def test_nothing_fits_at_all():
    assert find([], Wish()).explanation == "the fleet has no GPU yet"
    answer = find(node("gpu1", "ff"), Wish(model="B200", memory_bytes=10**12))
    assert answer.explanation == "no GPU B200 with 1000 GB among the 2 there are; ask for less"


def test_only_those_asked_for_are_chosen():
    fleet = [*node("gpu1", "bff"), *node("gpu2", "ffff")]
    assert places(find(fleet, Wish(), {"gpu1/2", "gpu2/0"}).gpus) == ["gpu1:2"]
    assert not find(fleet, Wish(n=2), {"gpu1/2"}).found


def test_instances_are_named_by_uuid_and_their_card_is_not_chosen():
    card = gpu("gpu1", 0, counted=False)
    slices = [
        gpu("gpu1", 0, gigabytes=10, parent_uuid=card.uuid, mig_index=place, uuid=f"MIG-{place}", mig_profile="1g.10gb")
        for place in (0, 1)
    ]
    answer = find([card, *slices], Wish(n=2))
    assert places(answer.gpus) == ["gpu1:0.0", "gpu1:0.1"]
    assert answer.export == "CUDA_VISIBLE_DEVICES=MIG-0,MIG-1"
    assert describe(slices[0]) == "gpu1:0.0  H100 10G  MIG 1g.10gb  10.0 GiB free"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(GPU_STATES), st.booleans()), max_size=24),
    st.integers(1, 6),
    st.booleans(),
)
def test_only_free_ones_and_exactly_as_many(cards: list[tuple[str, GpuState, bool]], n: int, same_node: bool):
    fleet = [gpu(name, place, state, counted=counted) for place, (name, state, counted) in enumerate(sorted(cards))]
    answer = find(fleet, Wish(n=n, same_node=same_node))
    if answer.found:
        assert len({each.id for each in answer.gpus}) == n
        assert all(each.state == "free" and each.counted for each in answer.gpus)
        assert not same_node or len({each.node for each in answer.gpus}) == 1
    else:
        free = [each.node for each in fleet if each.state == "free" and each.counted]
        assert (max(map(free.count, free), default=0) if same_node else len(free)) < n
        assert answer.explanation


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("40G", 40 * 10**9),
        ("40 gb", 40 * 10**9),
        ("40GiB", 40 * GIB),
        ("40", 40 * 10**9),
        ("0.5t", 5 * 10**11),
        ("512M", 512 * 10**6),
        ("", None),
        ("-4G", None),
        ("4 X", None),
        ("1e9", None),
        ("nan", None),
    ],
)
def test_sizes(text: str, size: int | None):
    assert parse_size(text) == size


@given(st.text(max_size=20))
def test_any_text_is_a_size_or_none(text: str):
    size = parse_size(text)
    assert size is None or size >= 0


def test_a_size_is_told_as_nvidia_smi_counts():
    assert gibibytes(81559 * 2**20) == "79.6 GiB"
