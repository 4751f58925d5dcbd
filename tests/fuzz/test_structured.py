"""Snapshots and updates of the right shape with the wrong values in them, made from the schema."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse_probe.schema import RECORDS
from tests.fuzz.looking import BASE, Looking

_TEXTS = st.text(max_size=20) | st.sampled_from(["GPU-0", "GPU-1", "alice", "\0", "\u202e", "a" * 300])
_WHOLE = (0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, 10**18, 10**40, -(10**40))
_BROKEN = (0.5, -0.0, 5e-324, 1e18, 3.5e38, 1.7e308, -1.7e308)
_NUMBERS = st.integers(-(10**25), 10**25) | st.integers(-2, 100) | st.sampled_from(_WHOLE)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": _NUMBERS,
    "float": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(_BROKEN) | _NUMBERS,
    "str": _TEXTS,
    "bool": st.booleans(),
    "[str]": st.lists(_TEXTS, max_size=3),
    "[int]": st.lists(_NUMBERS, max_size=3),
}
_WRONG = st.sampled_from([None, -1, 1e308, "", "x", [], {}, [None], True, 2**64, 10**40])
_UNLIMITED = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _record(name: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = {field.name: _value(field.type) for field in RECORDS[name]}
    return st.lists(st.sampled_from(sorted(fields)), max_size=8, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({each: fields[each] for each in chosen})
    )


def _value(kind: str) -> st.SearchStrategy[Any]:
    if kind in _VALUES:
        return _VALUES[kind] | st.none()
    within = st.deferred(lambda: _record(kind.strip("[]")))
    return st.lists(within, max_size=3) if kind.startswith("[") else within


def _columns(name: str, count: int) -> st.SearchStrategy[dict[str, Any]]:
    """A value for each, mostly; sometimes something else altogether."""
    fields = {
        field.name: st.lists(_value(field.type), min_size=count, max_size=count) | _WRONG for field in RECORDS[name]
    }
    return st.lists(st.sampled_from(sorted(fields)), max_size=6, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({each: fields[each] for each in chosen})
    )


_SNAPSHOTS = st.fixed_dictionaries(
    {"schema": st.just(1), "time": _VALUES["float"], "seq": _NUMBERS},
    optional={field.name: _value(field.type) for field in RECORDS["Snapshot"] if field.kind == "part"},
)
_UPDATES = st.fixed_dictionaries(
    {"update": st.just(0), "seq": st.integers(1, 5), "time": st.floats(900, 1100) | _VALUES["float"]},
    optional={
        "host": _record("Host") | _WRONG,
        "gpus": _columns("Gpu", 2) | _WRONG,
        "processes": _columns("Process", 2) | _WRONG,
        "uses": _columns("GpuUse", 2) | _WRONG,
        "reports": st.lists(_record("Report"), max_size=2),
        "devices_age_seconds": _VALUES["float"],
    },
)


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


@_UNLIMITED
@given(st.lists(_SNAPSHOTS, min_size=1, max_size=2))
def test_snapshots(documents):
    looking = Looking()
    for document in documents:
        looking.take(_line(document))
        looking.look()
    looking.recover()


@_UNLIMITED
@given(st.lists(_UPDATES, min_size=1, max_size=3))
def test_updates(documents):
    looking = Looking()
    for document in documents:
        looking.take(_line(document))
        looking.look()
    looking.recover()


def _filled(name: str, whole: int, broken: float) -> dict[str, Any]:
    """A record with the same strange number in every field that takes one."""
    found: dict[str, Any] = {}
    for field in RECORDS[name]:
        if field.type in ("int", "float"):
            found[field.name] = whole if field.type == "int" else broken
        elif field.kind == "part":
            within = _filled(field.type.strip("[]"), whole, broken)
            found[field.name] = [within] if field.type.startswith("[") else within
        elif field.type == "str":
            found[field.name] = "GPU-0"
    return found


@pytest.mark.parametrize("whole", _WHOLE)
@pytest.mark.parametrize("broken", _BROKEN)
def test_the_same_number_everywhere(whole, broken):
    looking = Looking()
    assert looking.take(_line(_filled("Snapshot", whole, broken) | {"schema": 1, "seq": 0}))
    looking.look()
    assert looking.take(BASE)
    parts = {
        part: {
            name: [value] * 2 for name, value in _filled(record, whole, broken).items() if not isinstance(value, list)
        }
        for part, record in (("gpus", "Gpu"), ("processes", "Process"), ("uses", "GpuUse"))
    }
    for seq in (1, 2):
        # Rates are made of two.
        line = {"update": 0, "seq": seq, "time": broken * seq, "host": _filled("Host", whole, broken), **parts}
        looking.take(_line(line))
        looking.look()
    looking.recover()
