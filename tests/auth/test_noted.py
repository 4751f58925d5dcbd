"""No change without its entry: whatever writes in auth, by whoever asks for it, is in the audit log."""

import ast
import asyncio
import inspect
from pathlib import Path
from typing import NamedTuple

import pytest

import gpulse
from gpulse.auth.accounts import Accounts
from gpulse.auth.changing import Change
from gpulse.auth.feeds import Feeds
from gpulse.auth.identity import Identity
from gpulse.auth.keys import Keys
from gpulse.auth.links import Links
from gpulse.auth.noting import Actor, actor
from gpulse.auth.sessions import Sessions
from gpulse.auth.tokens import Tokens
from gpulse.errors import GpulseError, SignInRefused
from gpulse.store import audit as table

BY = Actor("root", "session", "10.0.0.7")
SOURCE = Path(gpulse.__file__).parent


class World(NamedTuple):
    directory: object
    tokens: Tokens
    doing: object
    bob: str
    key: str
    session: str
    feed: str
    join: object

    def entries(self):
        return self.doing(self.directory.audit.entries(limit=1000))


@pytest.fixture
def world(directory, records, doing, clock, bob):
    tokens = Tokens(records, clock)
    tokens.create_node("gpu9")
    key = doing(directory.keys.create(bob.id, "script", ["read"])).split("_")[1]
    session = doing(directory.sessions.begin(bob.id, "10.0.0.9", "")).cookie.split("_")[1]
    feed = doing(directory.feeds.make(bob.id, "mine")).split("_")[1]
    join = tokens.check(tokens.create_join("gpu[1-8]", clock.now + 60))
    return World(directory, tokens, doing, bob.id, key, session, feed, join)


# Of every public method that writes: how it is called, and the entry it leaves: who, from where, what, of what.
WRITES = {
    "Accounts.add": (lambda w: w.directory.accounts.add("eve", "viewer", by=BY), (*BY, "account.add", "eve")),
    "Accounts.set_role": (lambda w: w.directory.accounts.set_role(w.bob, "admin", by=BY), (*BY, "account.role", "bob")),
    "Accounts.set_display": (
        lambda w: w.directory.accounts.set_display(w.bob, "Bob", by=BY),
        (*BY, "account.display", "bob"),
    ),
    "Accounts.disable": (lambda w: w.directory.accounts.disable(w.bob, by=BY), (*BY, "account.disable", "bob")),
    "Accounts.disable_all": (
        lambda w: w.directory.accounts.disable_all([w.bob], by=BY),
        (*BY, "account.disable", "bob"),
    ),
    "Accounts.enable": (lambda w: disabled_then(w.directory.accounts.enable, w), (*BY, "account.enable", "bob")),
    "Accounts.set_password": (
        lambda w: w.directory.accounts.set_password(w.bob, "another battery", by=BY),
        (*BY, "account.password", "bob"),
    ),
    "Accounts.upsert_external": (
        lambda w: w.directory.accounts.upsert_external("https://sso", "7", "eve", "member", address="10.0.0.8"),
        ("eve", "oidc", "10.0.0.8", "account.add", "eve"),
    ),
    "Accounts.connect": (
        lambda w: w.directory.accounts.connect(w.bob, "https://sso", "7", by=BY),
        (*BY, "account.connect", "bob"),
    ),
    "Accounts.change": (
        lambda w: w.directory.accounts.change(w.bob, Change(role="viewer"), by=BY),
        (*BY, "account.role", "bob"),
    ),
    "Accounts.operator": (lambda w: w.directory.accounts.operator("eve", by=BY), (*BY, "account.add", "eve")),
    "Sessions.begin": (
        lambda w: w.directory.sessions.begin(w.bob, "10.0.0.8", "", way="password"),
        ("bob", "session", "10.0.0.8", "session.begin", "bob"),
    ),
    "Sessions.end": (lambda w: w.directory.sessions.end(w.session, by=BY), (*BY, "session.end", None)),
    "Sessions.end_all": (lambda w: w.directory.sessions.end_all(w.bob, by=BY), (*BY, "session.end_all", "bob")),
    "Keys.create": (lambda w: w.directory.keys.create(w.bob, "x", ["read"], by=BY), (*BY, "key.make", None)),
    "Keys.revoke": (lambda w: w.directory.keys.revoke(w.key, by=BY), (*BY, "key.revoke", None)),
    "Keys.revoke_all": (lambda w: w.directory.keys.revoke_all(w.bob, by=BY), (*BY, "key.revoke_all", "bob")),
    "Links.make": (lambda w: w.directory.links.make(w.bob, by=BY), (*BY, "link.make", "bob")),
    "Feeds.make": (lambda w: w.directory.feeds.make(w.bob, "mine", by=BY), (*BY, "feed.make", None)),
    "Feeds.revoke": (lambda w: w.directory.feeds.revoke(w.feed, w.bob, by=BY), (*BY, "feed.revoke", None)),
    "Tokens.create_node": (lambda w: w.tokens.create_node("gpu1", by=BY), (*BY, "token.make", "gpu1")),
    "Tokens.create_nodes": (lambda w: w.tokens.create_nodes(["gpu1"], by=BY), (*BY, "token.make", "gpu1")),
    "Tokens.create_join": (
        lambda w: w.tokens.create_join("n[1-2]", w.tokens._clock() + 60, by=BY),
        (*BY, "token.make_join", "n[1-2]"),
    ),
    "Tokens.revoke": (lambda w: w.tokens.revoke(["gpu9"], by=BY), (*BY, "token.revoke", "gpu9")),
    "Tokens.trade": (
        lambda w: w.tokens.trade(w.join, "gpu2", "10.0.0.8"),
        (None, "token", "10.0.0.8", "token.join", "gpu2"),
    ),
}
# These change nothing that people or nodes may do...
READS = {
    *("Accounts.by_id", "Accounts.by_name", "Accounts.by_subject", "Accounts.list", "Accounts.view"),
    *("Accounts.check_password", "Sessions.check", "Sessions.current", "Sessions.goes_on", "Sessions.live"),
    "Sessions.came_by_link",
    *(
        "Sessions.ends_at",
        "Sessions.list",
        "Keys.check",
        "Keys.current",
        "Keys.list",
        "Keys.proof",
        "Tokens.check",
        "Tokens.admit",
    ),
    *("Feeds.list", "Feeds.read"),
    *("Tokens.live", "Tokens.why_ended", "Tokens.nodes", "Tokens.listing", "Tokens.refresh"),
}
# ...and these have their entry elsewhere.
ELSEWHERE = {
    "Links.redeem": "whoever redeems a link begins a session by it",
}


def disabled_then(enable, world: World):
    world.doing(world.directory.accounts.disable(world.bob))
    return enable(world.bob, by=BY)


def done(world: World, name: str):
    """Of nodes' tokens some wait for the disk themselves."""
    work = WRITES[name][0](world)
    return world.doing(work) if inspect.isawaitable(work) else work


def methods() -> set[str]:
    return {
        f"{kind.__name__}.{name}"
        for kind in (Accounts, Sessions, Keys, Links, Feeds, Tokens)
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_method_is_known_here():
    """A new one belongs into WRITES, with its entry, unless it changes nothing."""
    assert methods() <= {*WRITES, *READS, *ELSEWHERE}
    assert {*WRITES, *READS, *ELSEWHERE} <= methods()


@pytest.mark.parametrize("name", WRITES)
def test_a_change_leaves_its_entry(world, name):
    before = {entry.id for entry in world.entries()}
    done(world, name)
    added = [entry for entry in world.entries() if entry.id not in before]
    found = {(one.who, one.way, one.address, one.action, one.target) for one in added}
    expected = WRITES[name][1]
    assert any(all(wanted in (None, told) for wanted, told in zip(expected, entry, strict=True)) for entry in found), (
        found
    )


@pytest.mark.parametrize("name", WRITES)
def test_where_the_entry_cannot_be_written_nothing_changes(world, records, monkeypatch, name):
    if name == "Accounts.enable":
        world.doing(world.directory.accounts.disable(world.bob))
        work = lambda: world.doing(world.directory.accounts.enable(world.bob, by=BY))  # noqa: E731 - as the others
    else:
        work = lambda: done(world, name)  # noqa: E731 - as the others

    def rows():
        tables = ("accounts", "sessions", "keys", "links", "feeds", "tokens")
        return records.read(
            lambda one: [sorted(map(repr, one.exec_driver_sql(f"SELECT * FROM {name}"))) for name in tables]  # noqa: S608 - our own names
        ).result()

    def broken(*_):
        raise Full("no room for an entry")

    before = rows()
    monkeypatch.setattr(table, "add", broken)
    with pytest.raises(Full):
        work()
    assert rows() == before


class Full(GpulseError):
    """Of this test."""


def test_whoever_changes_something_says_in_whose_name():
    """In the whole hub, as far as the names tell: a call without `by=` would be noted as the hub's own doing."""
    noted = {name.split(".")[1] for name, (_, entry) in WRITES.items() if entry[:3] == tuple(BY)}
    # Also of other things; those are told apart by what they are called on.
    owners = {"accounts", "sessions", "keys", "links", "tokens", "_tokens"}
    found, missing = 0, []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.parent.name == "auth":
            continue
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr not in noted
            ):
                continue
            on = call.func.value
            owner = on.attr if isinstance(on, ast.Attribute) else on.id if isinstance(on, ast.Name) else ""
            if owner in owners:
                found += 1
                if "by" not in {keyword.arg for keyword in call.keywords}:
                    missing.append(f"{path.relative_to(SOURCE)}:{call.lineno}")
    assert found >= 20
    assert missing == []


def test_who_is_known_by_what():
    ann = Identity("ann", "admin", "1", "session", frozenset())
    assert actor(ann, "10.0.0.7") == Actor("ann", "session", "10.0.0.7")
    assert actor("local: root") == Actor("local: root", "local", "")
    assert actor(Identity(None, None, None, "anonymous", frozenset())).name == "anonymous"


def test_what_is_told_elsewhere_is_noted_with_the_role_before(directory, doing):
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member", address="10.0.0.8"))
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member", address="10.0.0.8"))
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "admin", address="10.0.0.9"))
    role, made = doing(directory.audit.entries())
    assert (made.who, made.way, made.address, made.detail) == (
        "eve",
        "proxy",
        "10.0.0.8",
        {"role": "member", "issuer": "proxy"},
    )
    assert (role.address, role.detail) == ("10.0.0.9", {"role_before": "member", "role": "admin"})


def test_codes_that_are_none_are_counted_by_the_minute(directory, doing, clock):
    def told():
        return [(one.address, one.detail.get("times")) for one in doing(directory.audit.entries())]

    for _ in range(50):
        doing(directory.refused_links.note("10.0.0.7", "link_bad"))
    doing(directory.refused_links.note("10.0.0.8", "link_bad"))
    doing(directory.refresh())
    assert told() == [("10.0.0.8", None), ("10.0.0.7", None)]
    clock.now += 61
    doing(directory.refresh())
    assert told()[0] == ("10.0.0.7", 49)
    assert len(told()) == 3
    doing(directory.refused_links.note("10.0.0.7", "link_bad"))
    doing(directory.refused_links.settle(ending=True))
    assert told()[0] == ("10.0.0.7", 1)


def test_however_many_addresses_there_are(directory, doing):
    for number in range(300):
        doing(directory.refused_links.note(f"10.0.{number // 250}.{number % 250}", "link_bad"))
    assert len(doing(directory.audit.entries(limit=1000))) == 101
    doing(directory.refused_links.settle(ending=True))
    (last, *_) = doing(directory.audit.entries())
    assert (last.address, last.detail["times"]) == ("other addresses", 199)


def test_a_wave_that_joins_has_an_entry_each(directory, records, doing, clock):
    tokens = Tokens(records, clock)
    join = tokens.check(tokens.create_join("gpu[1-40]", clock.now + 60, by=BY))

    async def wave():
        await asyncio.gather(*(tokens.trade(join, f"gpu{number}", f"10.0.0.{number}") for number in range(1, 41)))

    doing(wave())
    joined = [one for one in doing(directory.audit.entries(limit=100)) if one.action == "token.join"]
    assert {(one.target, one.address) for one in joined} == {(f"gpu{n}", f"10.0.0.{n}") for n in range(1, 41)}
    assert {one.who for one in joined} == {f"join token {join.id}"}


def test_a_link_that_is_none_changes_nothing(directory, doing, bob):
    assert bob.live
    with pytest.raises(SignInRefused):
        doing(directory.links.redeem("gpl_x"))
    assert [one.action for one in doing(directory.audit.entries())] == ["account.add", "account.add"]
