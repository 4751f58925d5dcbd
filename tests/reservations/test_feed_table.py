"""The table of calendar feeds."""

import pytest

from gpulse.auth.directory import Directory
from gpulse.store import feeds
from gpulse.store.feeds import FeedRow
from tests.reservations.wanting import NOW


@pytest.fixture
def accounts(records, doing):
    directory = Directory(records)
    return [doing(directory.accounts.add(name, "member")).id for name in ("ann", "bob")]


def test_kept_until_revoked(records, accounts):
    ann, bob = accounts
    first, second = (
        FeedRow(letter * 12, ann, scope, bytes(32), NOW, None) for letter, scope in (("a", "mine"), ("b", "node:a"))
    )
    other = FeedRow("c" * 12, bob, "fleet", b"\x01" * 32, NOW, None)
    for row in (second, first, other):
        records.write(lambda one, row=row: feeds.add(one, row)).result()
    assert records.read(lambda one: feeds.standing(one, ann)).result() == [first, second]
    assert records.read(lambda one: feeds.by_id(one, other.id)).result() == other
    assert records.read(lambda one: feeds.by_id(one, "0" * 12)).result() is None

    def revoke(account, row):
        return records.write(lambda one: feeds.revoke(one, account, row.id, NOW + 1)).result()

    # Only one's own, and once.
    assert [revoke(bob, first), revoke(ann, first), revoke(ann, first)] == [False, True, False]
    assert records.read(lambda one: feeds.standing(one, ann)).result() == [second]
    assert records.read(lambda one: feeds.by_id(one, first.id)).result() == first._replace(revoked_at=NOW + 1)
