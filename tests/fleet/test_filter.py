"""The filter language, word by word."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.errors import FilterError
from gpulse.fleet.filter import FIGURES, KEYS, Filter, Subject, parse
from gpulse.fleet.model import GpuUse
from gpulse.fleet.views import GPU_STATES, GpuView, NodeView, PersonUse, ProcessView

GIB = 2**30
# Shared with the page, which has the same language: web/src/lib/filter.test.ts.
CASES = json.loads((Path(__file__).parent / "filter_cases.json").read_text())
GPU = GpuView(
    node="gpu03",
    id="GPU-1",
    uuid="GPU-1",
    index=0,
    state="busy",
    name="NVIDIA H100 80GB HBM3",
    model="H100 80G",
    memory_total_bytes=80 * GIB,
    memory_used_bytes=60 * GIB,
    utilization_ratio=0.07,
    temperature_celsius=81,
    power_watts=300.5,
    people=[PersonUse(person="Alice L.", processes=1)],
)
NODE = NodeView(
    name="gpu03", display_name="Big One", state="up", reason="", age_seconds=0.5, gpus=[GPU], group="lab", rack="R 7"
)
PROCESS = ProcessView(
    node="gpu03",
    pid=12,
    user="alice",
    person="Alice L.",
    name="python3",
    command="python3 train.py --size LARGE",
    cgroup="/system.slice/slurmstepd.scope/job_1234/step_0",
    gpus=[GpuUse(uuid="GPU-1", memory_bytes=GIB)],
)
SUBJECT = Subject(NODE, GPU, [PROCESS])


@pytest.mark.parametrize(("text", "expected"), CASES["matches"])
def test_what_matches(text: str, expected: bool):
    assert parse(text).matches(SUBJECT) is expected


def test_mine_is_who_asks():
    assert parse("mine", me="Alice").matches(SUBJECT)
    assert not parse("mine", me="bob").matches(SUBJECT)
    with pytest.raises(FilterError, match="me=alice"):
        parse("mine")


@pytest.mark.parametrize(("text", "words"), [*CASES["mistakes"], ("x" * 501, ["501", "500"])])
def test_a_mistake_is_named(text: str, words: list[str]):
    with pytest.raises(FilterError) as caught:
        parse(text)
    for word in words:
        assert word in str(caught.value)


def test_unknown_figures_do_not_compare():
    bare = Subject(NODE, GpuView(node="gpu03", id="x", state="free"))
    assert not parse("util<10").matches(bare)
    assert not parse("mem>0").matches(bare)
    assert not parse("free_mem>=0").matches(bare)


def test_a_node_without_gpus_is_found_by_its_own_words():
    node = NodeView(name="gpu09", display_name="gpu09", state="down", reason="refused", age_seconds=None, gpus=[])
    assert parse("down").matching(node) == []
    assert parse("gpu09").matching(node) == []
    assert parse("free").matching(node) is None
    assert parse("mem>1G").matching(node) is None


def test_a_node_tells_which_gpus_match_by_their_own_processes():
    other = GpuView(node="gpu03", id="GPU-2", uuid="GPU-2", index=1, state="free")
    node = NodeView(name="gpu03", display_name="gpu03", state="up", reason="", age_seconds=0, gpus=[GPU, other])
    assert [gpu.id for gpu in parse("train.py").matching(node, [PROCESS]) or ()] == ["GPU-1"]
    assert [gpu.id for gpu in parse("free").matching(node) or ()] == ["GPU-2"]
    assert parse("job:99").matching(node, [PROCESS]) is None


def test_a_card_split_into_instances_has_no_state_of_its_own():
    parent = GpuView(node="gpu03", id="GPU-3", state="free", counted=False)
    assert not parse("free").matches(Subject(NODE, parent))
    assert not parse("-busy").matches(Subject(NODE, parent))
    assert not parse("-state:busy").matches(Subject(NODE, parent))
    assert parse("gpu03").matches(Subject(NODE, parent))


def test_processes_are_asked_for_only_when_they_matter():
    assert not parse("free model:h100 mem>40G node:gpu[01-16]").needs_processes
    assert parse("free alice").needs_processes
    assert parse("job:1").needs_processes


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
        assert filter_.matches(SUBJECT) in (True, False)


@settings(max_examples=200)
@given(st.text(alphabet="gpu[]0123456789-,/@!&^:%{}()$", max_size=40))
def test_any_set_of_nodes_is_understood_or_refused(text: str):
    try:
        parse(f"node:{text}").matches(SUBJECT)
    except FilterError as error:
        assert "node:" in str(error)


@pytest.mark.parametrize(
    "text", ["gpu[+1-2000000]", 'node:"gpu[ 1-2000000]"', "node:gpu[1_0-2000000]", "node:gpu[١-٩]"]
)
def test_ranges_cannot_be_smuggled_past_the_limit(text):
    with pytest.raises(FilterError):
        parse(text if text.startswith("node:") else f"node:{text}")
