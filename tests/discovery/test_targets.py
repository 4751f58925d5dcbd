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


def test_another_way_to_a_host_is_the_same_node():
    told: list[str] = []
    pull = Reach(transport="pull", token_file=Path("/token"), tls=True)
    targets = unique([*expand("a b:2222"), *expand("a:7081 b c c:7081", pull), *expand("a", pull)], told.append)
    assert [(target.name, target.transport, target.port) for target in targets] == [
        ("a", "ssh", None),
        ("b", "ssh", 2222),
        ("c", "pull", None),
        ("c:7081", "pull", 7081),
    ]
    assert (targets[2].token_file, targets[2].tls) == (Path("/token"), True)
    assert told == [
        "node a is listed twice: a is used, a:7081 by pull is not",
        "node b is listed twice: b:2222 is used, b by pull is not",
        "node a is listed twice: a is used, a by pull is not",
    ]


def test_a_port_that_is_not_told_is_the_usual_one():
    assert [target.name for target in expand("h:1 h", Reach(transport="pull"))] == ["h", "h:7080"]


def test_names_that_are_not_hosts():
    told: list[str] = []
    targets = [
        Target("gpu1", "10.0.0.1", transport="pull", port=7080, called="gpu1"),
        Target("gpu1", "10.0.0.1", transport="pull", port=7081, called="gpu1"),
        Target("gpu1", "10.0.0.2", transport="pull", port=7080, called="gpu1"),
    ]
    assert [target.name for target in unique(targets, told.append)] == ["gpu1", "gpu1:7081"]
    assert told == ["node gpu1 is listed twice: 10.0.0.1:7080 by pull is used, 10.0.0.2:7080 by pull is not"]
    # Twice through it, as text of a source goes: the same again.
    assert unique(unique(targets[:2], told.append), told.append) == unique(targets[:2], told.append)


@given(st.text(st.sampled_from("ab1:2[]-,@! "), max_size=20))
def test_any_text_gives_unique_names(text):
    try:
        targets = expand(text)
    except HostsError:
        return
    assert targets
    assert len({target.name for target in targets}) == len(targets)


@pytest.mark.parametrize(
    "name", ["a;id", "$(id)", "-oProxyCommand=id", "a b", "../a", "a\nb", "a\x1b[2J", "\u202ea", "a/b", ""]
)
def test_a_name_outside_the_alphabet_is_left_out_and_the_rest_stays(name):
    problems: list[str] = []
    listed = [
        Target("x", name or "", called=name or None),
        Target("gpu1", "gpu1"),
        Target("fe80::1%eth0", "fe80::1%eth0"),
    ]
    assert [target.name for target in unique(listed, problems.append)] == ["gpu1", "fe80::1%eth0"]
    assert len(problems) == 1
    assert "is left out" in problems[0]
