"""Sets of nodes: names are compared with them as ClusterShell would write them out, at no cost of their size."""

import random

import pytest
from ClusterShell.NodeSet import NodeSet as Reference
from ClusterShell.NodeSet import NodeSetException

from gpulse.errors import FilterError
from gpulse.fleet.node_sets import MOST_PATTERNS, NodeSet

_STARTS = ("0", "1", "2", "5", "9", "00", "01", "07", "10", "12")


def _range(dice: random.Random) -> str:
    first = dice.choice(_STARTS)
    if dice.random() < 0.4:
        return first
    last = str(dice.randint(int(first), int(first) + 15)).zfill(len(first) if first.startswith("0") else 1)
    return f"{first}-{last}" + (f"/{dice.randint(1, 3)}" if dice.random() < 0.3 else "")


def _pattern(dice: random.Random) -> str:
    # Digits beside a bracket are left out: ClusterShell reads a1[9-10] as a[19-110].
    text = dice.choice(["a", "b", "ab", ""])
    for bracket in range(dice.randint(0, 2)):
        text += f"[{','.join(_range(dice) for _ in range(dice.randint(1, 3)))}]"
        text += dice.choice(["x", "-y", "w"] if bracket == 0 else ["", "z"])
    return text or "q"


def _set(dice: random.Random) -> str:
    text = _pattern(dice)
    for _ in range(dice.randint(0, 3)):
        text += dice.choice([",", ",", "!", "&", "^"]) + _pattern(dice)
    return text


@pytest.mark.parametrize("seed", range(8))
def test_as_cluster_shell_writes_them_out(seed: int):
    dice = random.Random(seed)
    compared = 0
    for _ in range(250):
        text = _set(dice)
        try:
            names = frozenset(map(str, Reference(text)))
        except NodeSetException:
            continue
        ours = NodeSet("node:", text)
        near = {name + "1" for name in names} | {name[:-1] for name in names} | {"a0", "a00", "a01", "a1", "b07"}
        assert {name for name in names | near if name in ours} == names, text
        assert ours.names() == names, text
        assert ours.size >= len(names), text
        compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("n1[0-3]", ["n10", "n13"], ["n1", "n14", "n100", "n010"]),
        ("n[1-12]2", ["n12", "n112", "n122"], ["n2", "n132", "n012"]),
        ("n[1-2][03-04]", ["n103", "n204"], ["n13", "n305"]),
        ("n[0098-0101]", ["n0098", "n0101"], ["n98", "n101", "n0102"]),
        ("n[08-12]", ["n08", "n12"], ["n8", "n012"]),
        ("n[098-1001]", ["n098", "n999", "n1001"], ["n98", "n0998"]),
        ("gpu[1-999]!gpu7&gpu[1-9]", ["gpu1", "gpu9"], ["gpu7", "gpu10"]),
        ("r[1-2]c[1-2]s[1-3/2]", ["r1c2s3"], ["r1c2s2", "r3c1s1"]),
        ("gpu[ 1 , 3 ]", ["gpu1", "gpu3"], ["gpu2"]),
        ("n[1-9]", [], ["n१", "n²", "n", "n1 "]),
    ],
)
def test_what_is_inside(text: str, inside: list[str], outside: list[str]):
    nodes = NodeSet("node:", text)
    assert [name for name in inside if name not in nodes] == []
    assert [name for name in outside if name in nodes] == []
    assert set(inside) <= nodes.names()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu[1-", "not closed"),
        ("gpu]1[", "too many"),
        ("gpu[[1]]", "too many"),
        ("gpu[4-1]", "backwards"),
        ("gpu[1-9/0]", "backwards"),
        ("gpu[01-010]", "same number of digits"),
        ("gpu[]", "is not a number"),
        ("gpu[a-b]", "is not a number"),
        ("gpu[1-9999999999]", "nine digits"),
        ("a,,b", "missing"),
        ("a,", "missing"),
        ("!a", "missing"),
        ("", "missing"),
        ("@all", "groups"),
        ("a[1]" * 9, "8 brackets"),
        ("gpu[0-999999999]", "more than 100,000"),
        ("a[0-999]b[0-999]", "more than 100,000"),
        (",".join(f"a{n}x[1-2]" for n in range(MOST_PATTERNS + 1)), f"more than {MOST_PATTERNS}"),
    ],
)
def test_mistakes_are_named(text: str, words: str):
    with pytest.raises(FilterError) as refused:
        NodeSet("node:", text)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 500
