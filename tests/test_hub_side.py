"""Tokens of nodes that are asked: each may have its own, and only its own agent is shown it."""

import asyncio

import pytest

from gpulse.errors import NodeLost
from gpulse.hub_side import Asked, asking
from gpulse.transport.feed import Feed
from gpulse.transport.pull import Pull, PullTarget


class Noting(Pull):
    """Notes whom it should ask, with which token."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    async def stream(self, target: PullTarget, _feed: Feed) -> None:
        self.asked[target.name] = target.token


def ask(pull, token_file, *names):
    for name in names:
        target = Asked(name=name, host=name, port=7080, tls=False, token_file=token_file, interval_seconds=1.0)
        asyncio.run(asking(pull)(target, None))
    return pull.asked


def test_a_token_for_each_node(tmp_path):
    for name in ("gpu01", "gpu02", "fd00::7"):
        (tmp_path / name).write_text(f"token-of-{name}\n")
    asked = ask(Noting(), tmp_path / "{name}", "gpu01", "gpu02", "fd00::7")
    assert asked == {"gpu01": "token-of-gpu01", "gpu02": "token-of-gpu02", "fd00::7": "token-of-fd00::7"}


def test_one_token_for_all(tmp_path):
    (tmp_path / "token").write_text("shared")
    assert ask(Noting(), tmp_path / "token", "gpu01", "../x") == {"gpu01": "shared", "../x": "shared"}


@pytest.mark.parametrize("name", ["../token", "a/b", "..", "."])
def test_no_name_leads_elsewhere(tmp_path, name):
    (tmp_path / "token").write_text("of the hub itself")
    pull = Noting()
    with pytest.raises(NodeLost, match=r"its name cannot be \{name\} in token_file"):
        ask(pull, tmp_path / "tokens" / "{name}", name)
    assert pull.asked == {}


def test_the_file_of_the_node_is_named_where_it_is_missing(tmp_path):
    with pytest.raises(NodeLost, match=rf"{tmp_path}/gpu03\.token, cannot be read: "):
        ask(Noting(), tmp_path / "{name}.token", "gpu03")
    (tmp_path / "gpu03.token").write_text("two words")
    with pytest.raises(NodeLost, match=rf"{tmp_path}/gpu03\.token, holds no token"):
        ask(Noting(), tmp_path / "{name}.token", "gpu03")
