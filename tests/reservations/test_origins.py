"""Entries of files that reservations were imported from, in the database."""

from gpulse.reservations.model import Changes, Origin
from tests.reservations.wanting import DAY, HOUR, NOW, ROOT, places, wanted

# Hosts are as the file has them, and that may be anything.
ORIGINS = (Origin("a", "0", "Ann", NOW + 5 * HOUR), Origin(f"a.{'x' * 9000}", "01", "ann", NOW + 5 * HOUR + 30))


def test_they_stay_whatever_becomes_of_the_reservation(table, others, clock, doing):
    asked = [wanted("a:0 a:1", 0, 5, imported=True, origins=ORIGINS), wanted("b:0", 0, 5, imported=True)]
    assert doing(table.make_many(asked, ROOT, dry_run=True))
    assert doing(table.imported(NOW)) == []
    made, _ = doing(table.make_many(asked, ROOT))
    assert doing(others.imported(NOW)) == [(origin, made) for origin in ORIGINS]
    changes = Changes(places=places("c:0"), person="bob", end=NOW + HOUR)
    changed = doing(table.change(made.id, changes, ROOT))
    assert doing(others.imported(NOW)) == [(origin, changed) for origin in ORIGINS]
    ended = doing(table.end(made.id, ROOT))
    clock.now += 60 * DAY
    doing(table.refresh())
    assert table.by_id(made.id) is None
    assert doing(table.imported(NOW)) == [(origin, ended) for origin in ORIGINS]


def test_those_that_are_over_in_their_files_are_left_out(table, doing):
    (made,) = doing(table.make_many([wanted("a:0 a:1", 0, 5, imported=True, origins=ORIGINS)], ROOT))
    assert doing(table.imported(NOW + 5 * HOUR)) == [(ORIGINS[1], made)]
    assert doing(table.imported(NOW + 6 * HOUR)) == []


def test_what_was_refused_has_none(table, doing):
    doing(table.make(wanted("a:1", 0, 5, "bob"), ROOT))
    doing(table.make_many([wanted("a:0 a:1", 0, 5, imported=True, origins=ORIGINS)], ROOT))
    assert doing(table.imported(NOW)) == []
