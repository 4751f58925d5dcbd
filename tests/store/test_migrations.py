"""Databases of older versions: what was in them is still there, and works."""

import json
import sqlite3

import pytest
from sqlalchemy import insert

from gpulse.auth import token_text
from gpulse.auth.directory import Directory
from gpulse.auth.tokens import Tokens
from gpulse.store import Records, migrations, reservations
from gpulse.store.reservations import ChangeRow, OriginRow, ReservationRow
from gpulse.store.tokens import NODE, REVOKED, TokenRow
from gpulse.store.tokens import tokens as table


@pytest.fixture
def of_0001(tmp_path, monkeypatch):
    """A folder as the version before accounts left it, and the text of a node's token there."""
    monkeypatch.setattr(migrations, "HEAD", "0001")
    text, live = token_text.make(NODE)
    revoked = token_text.make(NODE)[1]

    def rows(connection):
        for revision, (name, parts, ended_at) in enumerate((("gpu01", live, None), ("gpu02", revoked, 2.0)), 1):
            row = TokenRow(
                id=parts.id,
                kind=NODE,
                nodes=name,
                digest=parts.digest,
                replaces=False,
                created_at=1.0,
                expires_at=None,
                used_at=None,
                ended_at=ended_at,
                ended=None if ended_at is None else REVOKED,
                joined_by=None,
                revision=revision,
            )
            connection.execute(insert(table), row._asdict())

    with Records(tmp_path) as records:
        records.write(rows).result()
    monkeypatch.undo()
    return tmp_path, text


def tables(folder):
    driver = sqlite3.connect(folder / "gpulse.db")
    try:
        return {name for (name,) in driver.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        driver.close()


def test_from_tokens_to_accounts(of_0001):
    folder, text = of_0001
    assert tables(folder) == {"alembic_version", "tokens"}
    with Records(folder) as records:
        tokens = Tokens(records)
        assert tokens.check(text).node == "gpu01"
        assert sorted(one.state for one in tokens.listing()) == ["live", "revoked"]
        directory = Directory(records)
        assert directory.accounts.list() == []
        first = directory.hub_id
    assert tables(folder) == {
        "alembic_version", "tokens", "hub", "accounts", "sessions", "keys", "links", "audit",
        "reservations", "reservation_places", "reservation_changes", "reservation_origins", "feeds", "writes",
    }  # fmt: skip
    with Records(folder) as records:
        assert Directory(records).hub_id == first


def test_a_step_that_fails_leaves_the_older_version(of_0001, monkeypatch):
    folder, text = of_0001
    from alembic import command

    real = command.upgrade

    def broken(config, revision):
        real(config, revision)
        raise RuntimeError("a mistake in a step")

    monkeypatch.setattr(command, "upgrade", broken)
    with pytest.raises(RuntimeError):
        Records(folder)
    assert tables(folder) == {"alembic_version", "tokens"}
    monkeypatch.undo()
    with Records(folder) as records:
        assert Tokens(records).check(text).node == "gpu01"


def test_what_was_imported_before_is_known_by_how_it_was_imported(tmp_path, bare_url, monkeypatch):
    """Whatever became of it since; what was made here has no origin."""
    monkeypatch.setattr(migrations, "HEAD", "0004")
    places = [["gpu01", "0"], ["gpu01", "0.2"]]
    values = {"person": "bob", "maker": "root", "start_at": 1.0, "end_at": 5.0, "last_at": 5.0, "comment": ""}
    values |= {"hold": False, "made_at": 1.0, "changed_at": None, "ended_at": None, "ending": None, "revision": 1}

    def rows(connection):
        for identity, action in (("a" * 12, "imported"), ("b" * 12, "made")):
            kept = ReservationRow(id=identity, imported=action == "imported", **values)
            reservations.add(connection, kept, [("gpu02", "1")])
            after = json.dumps({"id": identity, "person": "ann", "places": places, "end": 9.5})
            reservations.note(connection, ChangeRow(identity, 1.0, "root", action, None, after))
            reservations.note(connection, ChangeRow(identity, 2.0, "root", "changed", after, json.dumps(values)))

    with Records(tmp_path, bare_url) as records:
        records.write(rows).result()
    monkeypatch.undo()
    with Records(tmp_path, bare_url) as records:
        found = records.read(lambda one: reservations.imported(one, 9.0)).result()
        assert [tuple(origin) for origin, _ in found] == [
            ("a" * 12, "gpu01", "0", "ann", 9.5),
            ("a" * 12, "gpu01", "0.2", "ann", 9.5),
        ]
        assert [kept[0].person for _, kept in found] == ["bob", "bob"]
        # Numbers go on after those that the step has given.
        more = [OriginRow("b" * 12, "gpu01", "1", "ann", 9.5)]
        records.write(lambda one: reservations.add_origins(one, more)).result()


def test_each_hub_has_an_id_of_its_own(tmp_path):
    ids = []
    for name in "ab":
        with Records(tmp_path / name) as records:
            ids.append(Directory(records).hub_id)
    assert len(set(ids)) == 2
