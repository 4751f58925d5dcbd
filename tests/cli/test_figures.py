"""Figures and states as people read them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.cli import figures
from gpulse.errors import GpulseError
from gpulse.fleet.views import GPU_STATES, GpuView
from tests.cli.hub import GIB, gpu


def view(*arguments, **values):
    return msgspec.convert(gpu(*arguments, **values), GpuView)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, "–"), (0.4, "0 s"), (-3, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (10 * 86400, "10 d")],
)
def test_age(seconds, told):
    assert figures.age(seconds) == told


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("30s", 30),
        ("15m", 900),
        ("15 min", 900),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1d", 86400),
        ("0.5h", 1800),
    ],
)
def test_duration(text, seconds):
    assert figures.duration(text) == seconds


@given(st.text())
def test_any_duration_is_a_number_or_one_sentence(text):
    try:
        assert figures.duration(text) >= 0
    except GpulseError as error:
        assert "is not a length of time" in str(error)


def test_unknown_is_a_dash():
    assert figures.percent(None) == "–"
    assert figures.used_of(None, 80 * GIB) == "– / 80.0"
    assert figures.used_of(3, None) == "–"
    assert figures.watts(None, 700) == "–"


def test_figures_have_fixed_digits():
    assert figures.percent(0.974) == "97 %"
    assert figures.used_of(int(71.24 * GIB), 80 * GIB) == "71.2 / 80.0"
    assert figures.watts(612.4, 700) == "612 / 700"
    assert figures.memory(1.5 * 1024 * GIB) == "1.5 TiB"
    assert figures.power(12_345) == "12.3 kW"


def test_every_state_has_a_shape_of_its_own():
    shapes = [figures.state(word).text for word in (*GPU_STATES, "up", "new")]
    assert [text.split(" ")[1] for text in shapes] == [*GPU_STATES, "up", "new"]
    assert len({text[0] for text in shapes}) == len(shapes)
    assert "?" not in "".join(shapes)


def test_a_split_card_is_not_counted():
    gpus = [
        view("gpu1", 0, "busy", counted=False, power_watts=300.0),
        view("gpu1", 0, "free", parent_uuid="GPU-gpu1-0", mig_index=2, memory_total_bytes=10 * GIB),
        view("gpu1", 1, "busy", memory_used_bytes=20 * GIB, power_watts=200.0),
    ]
    assert figures.gpu_states(gpus) == "2 GPUs: 1 free, 1 busy"
    assert figures.gpu_sums(gpus) == "memory 20.0 GiB of 90.0 GiB · 500 W"
    assert [figures.gpu_index(one) for one in gpus] == ["0", "0.2", "1"]
    assert len(figures.strip(gpus)) == 2


def test_people_with_most_memory_come_first():
    gpus = [
        view("gpu1", 0, people=[{"person": "ann", "memory_bytes": 5}, {"person": "bob", "memory_bytes": 3}]),
        view("gpu1", 1, people=[{"person": "bob", "memory_bytes": 3}, {"person": "eve"}]),
    ]
    assert figures.people(gpus) == "bob, ann, eve"


def test_sums_over_unknowns_are_not_zero():
    nothing = [view("gpu1", 0, "unknown", memory_total_bytes=None, memory_used_bytes=None)]
    assert figures.gpu_sums(nothing) == "memory – of – · power –"
    some = [*nothing, view("gpu1", 1, memory_used_bytes=GIB, power_watts=50.0)]
    assert figures.gpu_sums(some) == "memory 1.0 GiB of 80.0 GiB (1 unknown) · 50 W (1 unknown)"


def test_people_who_are_unknown_are_a_question():
    unread = view("gpu1", 0, "unknown", people=None)
    assert figures.people([unread]) == "?"
    assert figures.people([unread, view("gpu1", 1, people=[{"person": "ann"}])]) == "ann, ?"
