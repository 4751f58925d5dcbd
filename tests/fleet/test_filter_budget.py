"""The budget of one question: terms, names and bytes; ranges cost nothing to read."""

import time

import pytest

from gpulse.errors import FilterError
from gpulse.fleet.filter import parse
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search


def _fleet(nodes: int) -> Fleet:
    fleet = Fleet()
    for number in range(nodes):
        fleet.place(Place(name=f"a{number}"))
    return fleet


def test_a_range_costs_nothing_to_read():
    """One such question froze the hub for seconds and took hundreds of megabytes."""
    fleet, began = _fleet(10), time.thread_time()
    for text in (
        " ".join(["node:a[1-99999]"] * 31),
        "node:a[1-99999],b1",
        "node:a[0-99]b[0-99]c[0-9]",
    ):
        Search(fleet, parse(text)).all()
    assert time.thread_time() - began < 0.05


def test_a_question_has_one_budget():
    assert len(parse(" ".join(["node:a[1-99999]"] * 31)).terms) == 1
    assert len(parse('user:alice user:"alice" -user:alice "user:alice" busy "busy" busy').terms) == 5
    with pytest.raises(FilterError, match="more than 100,000 nodes"):
        parse("node:a[1-60000] node:b[1-60000]")
    with pytest.raises(FilterError, match="33 terms; at most 32"):
        parse(" ".join(f"w{number}" for number in range(33)))
    parse(" ".join(f"w{number}" for number in range(32)))
