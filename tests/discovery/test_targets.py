"""Targets: names that are unique, defaults that give way."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.config import Reach
from gpulse.discovery import Target, expand, unique
from gpulse.errors import HostsError


def test_defaults_give_way_to_the_text():
    defaults = Reach(
        group="lab",
        rack="r1",
        display_name="Lab {name}",
        user="ops",
        port=2222,
        identity_files=(Path("/key"),),
        interval_seconds=5.0,
        python="/opt/python",
    )
    assert expand("gpu1 me@gpu2:22", defaults) == [
        Target("gpu1", "gpu1", "ops", 2222, "lab", "r1", "Lab gpu1", 5.0, "/opt/python", (Path("/key"),)),
        Target("gpu2", "gpu2", "me", 22, "lab", "r1", "Lab gpu2", 5.0, "/opt/python", (Path("/key"),)),
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("me@gpu1:22", ["gpu1"]),
        ("h:2201 h:2202 h", ["h", "h:2202", "h:22"]),
        ("[::1]:2201 [::1]:2202", ["::1", "[::1]:2202"]),
    ],
)
def test_names(text, names):
    assert [target.name for target in expand(text)] == names


def test_the_same_door_twice_is_one_node():
    assert [target.name for target in expand("h h:2222", Reach(port=2222))] == ["h"]


def test_no_name_for_a_third():
    with pytest.raises(HostsError, match=r"node h:22 is listed twice"):
        expand("h:2201 h h:22")


def test_first_of_two_wins_and_the_second_is_told():
    told: list[str] = []
    targets = unique([*expand("me@a b"), *expand("a:22 a b", Reach(group="x"))], told.append, {"b": "Bee"})
    assert [(target.name, target.user, target.group) for target in targets] == [
        ("a", "me", None),
        ("b", None, None),
        ("a:22", None, "x"),
    ]
    assert [target.display_name for target in targets] == [None, "Bee", None]
    assert told == [
        "node a is listed twice: me@a is used, a of group x is not",
        "node b is listed twice: b is used, b of group x is not",
    ]


@given(st.text(st.sampled_from("ab1:2[]-,@! "), max_size=20))
def test_any_text_gives_unique_names(text):
    try:
        targets = expand(text)
    except HostsError:
        return
    assert targets
    assert len({target.name for target in targets}) == len(targets)
