"""A node has one way into the fleet: lists before tokens, tokens before files."""

import socket
from pathlib import Path

import pytest

from gpulse.config import Config, Hub
from gpulse.discovery import Target
from gpulse.errors import RequestError
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.membership import Membership
from gpulse.transport.local import LocalTarget
from gpulse.transport.push import REVOKED
from gpulse.transport.ssh import SshTarget
from tests.fleet.lines import gpu, snapshot

HERE = socket.gethostname()
FOLDER = Path("/drop")


class Supervisor:
    """What the hub goes to itself."""

    def __init__(self):
        self.targets = []

    def set_targets(self, targets):
        self.targets = list(targets)

    def names(self):
        return sorted(target.name for target in self.targets)


class Token:
    def __init__(self, node: str):
        self.id, self.node = "1", node


class Line:
    def __init__(self):
        self.closed = None

    def send(self, text: str) -> None:
        pass

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


class Site:
    def __init__(self, config: Config):
        self.fleet = Fleet()
        self.supervisor = Supervisor()
        self.said = []
        self.members = Membership(config, self.fleet, self.supervisor, say=self.said.append)
        self.push = self.members.push

    def connect(self, name: str):
        self.push.admit(name, "a" * 16)
        line = Line()
        connection = self.push.connect(Token(name), "a" * 16, "10.0.0.7", line)
        connection.binary(snapshot(gpu(), node=name))
        return line


@pytest.fixture
def site() -> Site:
    return Site(Config(hub=Hub(local=False), names={"p1": "The first"}))


def test_listed_nodes_are_gone_to(site):
    site.members.listed([Target("a", "a"), Target("b", "b")])
    assert site.supervisor.names() == site.fleet.names() == ["a", "b"]
    assert all(isinstance(target, SshTarget) for target in site.supervisor.targets)
    site.members.listed([Target("b", "b")])
    assert site.supervisor.names() == site.fleet.names() == ["b"]


def test_this_machine(site):
    site = Site(Config())
    site.members.listed([Target("a", "a"), Target(HERE, HERE, group="lab")])
    assert site.supervisor.names() == sorted(["a", HERE])
    assert any(isinstance(target, LocalTarget) for target in site.supervisor.targets)
    assert (site.fleet.node(HERE).address, site.fleet.node(HERE).group) == ("this machine", "lab")


def test_who_has_a_token_is_expected(site):
    site.members.holders(frozenset({"p1", "p2"}))
    assert site.fleet.names() == []
    site.members.listed([Target("a", "a")])
    assert site.fleet.names() == ["a", "p1", "p2"]
    assert site.supervisor.names() == ["a"]
    assert site.fleet.node("p1").display_name == "The first"
    assert site.fleet.node("p1").address == "push"


def test_a_revoked_token_takes_the_node_away(site):
    site.members.listed([])
    site.members.holders(frozenset({"p1", "p2"}))
    line = site.connect("p1")
    site.members.holders(frozenset({"p2"}))
    assert line.closed == (4401, "the token of p1 was revoked")
    assert site.fleet.names() == ["p2"]


def test_listed_for_push(site):
    site.members.listed([Target("p1", "p1", transport="push", group="g")])
    assert site.supervisor.names() == []
    assert site.fleet.node("p1").group == "g"
    site.members.holders(frozenset({"p1"}))
    line = site.connect("p1")
    # Without a token it stays in the list, and cannot come back.
    site.members.holders(frozenset())
    assert line.closed is not None
    assert line.closed[0] == 4401
    assert site.fleet.names() == ["p1"]
    assert site.fleet.node("p1").state == "down"


def test_a_list_wins_over_a_token(site):
    site.members.listed([Target("p1", "p1")])
    site.members.holders(frozenset({"p1"}))
    with pytest.raises(RequestError) as refused:
        site.connect("p1")
    assert (refused.value.status, refused.value.code) == (409, "other_transport")
    assert "over SSH" in refused.value.message
    assert 'transport = "push"' in refused.value.detail
    site.members.listed([])
    line = site.connect("p1")
    assert site.fleet.node("p1").state == "up"
    site.members.listed([Target("p1", "p1")])
    assert line.closed == (4410, "p1 is read over SSH now")
    assert site.supervisor.names() == site.fleet.names() == ["p1"]


def test_files_come_last(site):
    site.members.listed([Target("a", "a")])
    site.members.holders(frozenset({"p1"}))
    assert not site.members.claim(FOLDER, "a")
    assert not site.members.claim(FOLDER, "p1")
    assert site.members.claim(FOLDER, "f")
    site.fleet.place(Place("f", address="file"))
    assert not site.members.claim(Path("/other"), "f")
    assert site.members.claim(FOLDER, "f")
    site.members.listed([Target("b", "b")])
    assert site.fleet.names() == ["b", "f", "p1"]
    site.members.listed([Target("f", "f")])
    assert not site.members.claim(FOLDER, "f")
    assert site.supervisor.names() == ["f"]


def test_the_machine_of_the_hub_does_not_push():
    site = Site(Config())
    site.members.listed([])
    site.members.holders(frozenset({HERE}))
    with pytest.raises(RequestError) as refused:
        site.connect(HERE)
    assert "the hub runs on" in refused.value.message


def test_a_file_of_another_folder_takes_over_when_the_first_is_forgotten(site):
    site.members.listed([])
    assert site.members.claim(FOLDER, "f")
    site.fleet.place(Place("f", address="file"))
    site.fleet.remove("f")
    assert site.members.claim(Path("/other"), "f")


def test_who_comes_with_a_token_of_this_moment_stays_when_lists_change(site):
    """The lists may change before the tokens are looked at again."""
    site.members.listed([])
    line = site.connect("p9")
    site.members.listed([Target("a", "a")])
    assert line.closed is None
    site.members.holders(frozenset({"p9"}))
    site.members.listed([])
    assert line.closed is None
    assert site.fleet.node("p9").state == "up"


def test_a_token_that_came_and_went_between_two_looks(site):
    site.members.listed([Target("listed", "listed", transport="push")])
    lines = [site.connect("p9"), site.connect("listed")]
    site.members.holders(frozenset())
    assert [line.closed[0] for line in lines] == [REVOKED] * 2
    assert site.fleet.names() == ["listed"]
    assert site.fleet.node("listed").state == "down"


def test_a_token_that_came_to_its_end(site):
    site.members.listed([])
    site.members.holders(frozenset({"p1", "p2", "p3"}))
    line = site.connect("p1")
    site.members.holders(frozenset({"p3"}), frozenset({"p1"}))
    assert line.closed is not None
    assert line.closed[0] == REVOKED
    assert "the token of p1 came to its end" in line.closed[1]
    assert "gpulse token create p1" in line.closed[1]
    assert site.fleet.names() == ["p3"]
    assert len(site.said) == 2
    assert "the token of p1 came to its end" in site.said[0]
    assert "the token of p2 was revoked" in site.said[1]


def test_many_ended_tokens_are_told_in_one_sentence(site):
    site.members.listed([])
    names = frozenset(f"p{number}" for number in range(1, 1201))
    site.members.holders(names)
    site.members.holders(frozenset(), names)
    assert len(site.said) == 1
    assert site.said[0].startswith("the token of p1, p2, p3, p4, p5 and 1,195 more came to its end")


def test_a_change_of_tokens_touches_only_what_changed(site, monkeypatch):
    """There may be ten thousand others."""
    site.members.listed([Target("a", "a"), Target("listed", "listed", transport="push")])
    site.members.holders(frozenset(f"p{number}" for number in range(2000)))
    touched = []
    for name in ("place", "remove"):
        original = getattr(site.fleet, name)
        monkeypatch.setattr(
            site.fleet,
            name,
            lambda what, name=name, original=original: (touched.append((name, what)), original(what)),
        )
    monkeypatch.setattr(site.supervisor, "set_targets", touched.append)
    site.members.holders(frozenset(f"p{number}" for number in range(1, 2001)))
    assert [(name, getattr(what, "name", what)) for name, what in touched] == [("remove", "p0"), ("place", "p2000")]
    # It is the same as if all had been arranged anew.
    names = site.fleet.names()
    site.members.listed([Target("a", "a"), Target("listed", "listed", transport="push")])
    assert site.fleet.names() == names
    assert site.push.names() == set(names) - {"a"}


def test_a_file_gives_way_to_a_new_token(site):
    site.members.listed([])
    assert site.members.claim(FOLDER, "f")
    site.fleet.place(Place("f", address="file"))
    site.members.holders(frozenset({"f"}))
    assert not site.members.claim(FOLDER, "f")
    assert site.fleet.node("f").address == "push"
    site.members.holders(frozenset())
    assert site.fleet.names() == []
    assert site.members.claim(FOLDER, "f")
