"""Databases of older versions: what was in them is still there, and works."""

import sqlite3

import pytest
from sqlalchemy import insert

from gpulse.auth import token_text
from gpulse.auth.directory import Directory
from gpulse.auth.tokens import Tokens
from gpulse.store import Records, migrations
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
        "reservations", "reservation_places", "reservation_changes", "feeds", "writes",
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


def test_each_hub_has_an_id_of_its_own(tmp_path):
    ids = []
    for name in "ab":
        with Records(tmp_path / name) as records:
            ids.append(Directory(records).hub_id)
    assert len(set(ids)) == 2
