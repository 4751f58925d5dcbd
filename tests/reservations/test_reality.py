"""Where what runs is not as it was reserved."""

from gpulse.config.reservations import Reservations as Settings
from gpulse.reservations.reality import Memory, Seen, Use, findings, words
from tests.reservations.wanting import DAY, HOUR, NOW, place, places, reservation

SETTINGS = Settings(no_show_minutes=30, blocked_minutes=60)
BEGAN = Memory(began=NOW - 30 * DAY)
DOWN = Use(up=False)


def uses(**people):
    """By the name of a place, a0 for a:0, who is on it: "bob" since an hour before NOW, or so many hours from NOW."""
    found = {}
    for where, seen in people.items():
        at = place(f"{where[0]}:{where[1:].replace('_', '.')}")
        if isinstance(seen, Use):
            found[at] = seen
            continue
        since = dict.fromkeys(seen.split(), -1.0) if isinstance(seen, str) else seen
        found[at] = Use(True, tuple(Seen(name, NOW + hours * HOUR, (7,)) for name, hours in since.items()))
    return found


def found(nearby, now, seen, memory=BEGAN, settings=SETTINGS):
    told, _ = findings(nearby, now, seen, memory, settings)
    return [(one.kind, one.reservation, None if one.place is None else str(one.place), one.other) for one in told]


def test_all_as_it_should_be():
    mine, next_one = reservation("a:0 a:1", 0, 5, "ann", id="r"), reservation("a:0", 5, 9, "bob", id="s")
    assert found([mine, next_one], NOW, uses(a0="ann", a1="")) == []
    # Until the other one's time has come, they are where they should be.
    assert found([mine, next_one], NOW + 4.9 * HOUR, uses(a0="ann", a1="")) == []


def test_squatter_is_told_at_once_with_both():
    mine = reservation("a:0 a:1 a:2", 0, 5, "ann", id="r")
    told, _ = findings([mine], NOW, uses(a0="ann bob", a1={"carl": -3}, a2=DOWN), BEGAN, SETTINGS)
    assert [(one.kind, str(one.place), one.person, one.other, one.since, one.pids) for one in told] == [
        ("squatter", "a:0", "ann", "bob", NOW, (7,)),
        ("squatter", "a:1", "ann", "carl", NOW, (7,)),
    ]
    assert told[0].message == "ann has reserved a:0, and bob is on it"
    later, _ = findings([mine], NOW + HOUR, uses(a0={"ann": 0, "bob": 0.5}), BEGAN, SETTINGS)
    assert [one.since for one in later] == [NOW + 0.5 * HOUR]


def test_no_show_after_some_minutes_without_any_use():
    mine = reservation("a:0 a:1", 0, 5, "ann", id="r")
    nobody, memory = uses(a0="", a1=""), BEGAN
    for minutes, shown in ((0, False), (29, False), (30, True), (31, True)):
        told, memory = findings([mine], NOW + minutes * 60, nobody, memory, SETTINGS)
        assert [(one.kind, one.place, one.since) for one in told] == ([("no_show", None, NOW)] if shown else [])
    # On one of them is enough; then the time runs anew.
    told, memory = findings([mine], NOW + HOUR, uses(a0="", a1="ann"), memory, SETTINGS)
    assert told == []
    told, memory = findings([mine], NOW + 1.4 * HOUR, nobody, memory, SETTINGS)
    assert told == []
    told, memory = findings([mine], NOW + 1.5 * HOUR, nobody, memory, SETTINGS)
    assert [(one.kind, one.since) for one in told] == [("no_show", NOW + HOUR)]
    # Nothing is remembered of what is over.
    assert findings([mine], NOW + 5 * HOUR, nobody, memory, SETTINGS) == ([], Memory(BEGAN.began, {}))


def test_when_a_no_show_is_released():
    def release_at(hours, **settings):
        told = findings(
            [reservation("a:0", 0, hours, "ann")], NOW + 0.5 * HOUR, uses(a0=""), BEGAN, Settings(**settings)
        )
        return [one.release_at for one in told[0]]

    assert release_at(5) == [None]
    assert release_at(5, release_no_shows=True) == [NOW + 0.75 * HOUR]
    assert release_at(5, release_no_shows=True, release_minutes=60) == [NOW + 1.5 * HOUR]
    # There is nothing to release once it is over.
    assert release_at(0.75, release_no_shows=True) == [None]


def test_a_no_show_is_told_for_as_long_before_it_is_released_however_late_that_was():
    """As after the hub stood still, or where nobody had looked."""
    mine, nobody = reservation("a:0", 0, 9, "ann"), uses(a0="")
    settings = Settings(no_show_minutes=30, release_minutes=15, release_no_shows=True)
    (told,), memory = findings([mine], NOW + 3 * HOUR, nobody, BEGAN, settings)
    assert (told.since, told.release_at) == (NOW, NOW + 3.25 * HOUR)
    (told,), memory = findings([mine], NOW + 3.2 * HOUR, nobody, memory, settings)
    assert told.release_at == NOW + 3.25 * HOUR
    # They came and went: it is another time.
    _, memory = findings([mine], NOW + 3.22 * HOUR, uses(a0="ann"), memory, settings)
    (told,), _ = findings([mine], NOW + 5 * HOUR, nobody, memory, settings)
    assert told.release_at == NOW + 5.25 * HOUR


def test_who_has_just_changed_it_means_to_come():
    """Extended shortly before its end, or moved to other GPUs."""
    before, nobody = reservation("a:0", 0, 0.75, "ann", id="r"), uses(a0="")
    told, memory = findings([before], NOW + 0.7 * HOUR, nobody, BEGAN, SETTINGS)
    assert [one.kind for one in told] == ["no_show"]
    after = reservation("a:0", 0, 9, "ann", id="r", changed_at=NOW + 0.74 * HOUR)
    assert found([after], NOW + 0.75 * HOUR, nobody, memory) == []
    assert found([after], NOW + 1.23 * HOUR, nobody, memory) == []
    assert found([after], NOW + 1.24 * HOUR, nobody, memory) == [("no_show", "r", None, None)]


def test_who_cannot_work_on_it_is_no_no_show():
    """A card that is broken; and who computes on it all the same is told of."""
    mine, half = reservation("a:0 a:1", 0, 5, "ann", id="r"), NOW + 0.5 * HOUR
    assert found([mine], half, uses(a0="", a1=Use(True, usable=False))) == []
    bob = Use(True, (Seen("bob", NOW, (7,)),), usable=False)
    assert found([mine], half, uses(a0="", a1=bob)) == [("squatter", "r", "a:1", "bob")]


def test_no_show_only_where_they_could_have_come():
    mine = reservation("a:0 a:1", 0, 5, "ann", id="r")
    half = NOW + 0.5 * HOUR
    assert found([mine], half, uses(a0="", a1="")) == [("no_show", "r", None, None)]
    assert (
        found([mine], half, uses(a0="", a1=DOWN)) == found([mine], half, uses(a0="")) == found([mine], half, {}) == []
    )
    assert found([mine], half, uses(a0="", a1=""), Memory(began=NOW + 1)) == []
    # The node was down meanwhile: they get their time anew.
    _, memory = findings([mine], NOW + HOUR, uses(a0="", a1=DOWN), BEGAN, SETTINGS)
    assert found([mine], NOW + 1.4 * HOUR, uses(a0="", a1=""), memory) == []
    assert len(found([mine], NOW + 1.5 * HOUR, uses(a0="", a1=""), memory)) == 1


def test_somebody_of_whom_nothing_is_known_may_be_who_should_be_there():
    """As where the probe sees no owners: in a container, or with hidepid."""
    mine, half = reservation("a:0 a:1", 0, 5, "ann", id="r"), NOW + 0.5 * HOUR
    assert found([mine], half, uses(a0=Use(True, (), unknown=True), a1="")) == []
    told, memory = findings([mine], half, uses(a0=Use(True, (), unknown=True), a1=""), BEGAN, SETTINGS)
    assert found([mine], half + 0.4 * HOUR, uses(a0="", a1=""), memory) == []
    assert len(found([mine], half + 0.5 * HOUR, uses(a0="", a1=""), memory)) == 1
    assert told == []


def test_a_hold_is_there_to_be_unused():
    hold = reservation("a:0", 0, 5, "ann", id="r", hold=True)
    assert found([hold], NOW + 4 * HOUR, uses(a0="")) == []
    assert found([hold], NOW + 4 * HOUR, uses(a0="bob")) == [("squatter", "r", "a:0", "bob")]


def test_who_started_on_what_was_held_overruns_nothing():
    """That is what it was held for."""
    hold = reservation("a:0", -1, 0, "ann", id="r", hold=True)
    assert found([hold], NOW + HOUR, uses(a0={"ann": -0.5})) == []
    # Where somebody has it next, that is told all the same.
    other = reservation("a:0", 1, 5, "bob", id="s")
    assert found([hold, other], NOW + HOUR, uses(a0={"ann": -0.5})) == [("squatter", "s", "a:0", "ann")]


def test_who_finds_somebody_else_there_is_no_no_show():
    mine = reservation("a:0 a:1", 0, 5, "ann", id="r")
    told, memory = findings([mine], NOW + HOUR, uses(a0="bob", a1=""), BEGAN, SETTINGS)
    assert [one.kind for one in told] == ["squatter"]
    # Once it can be had it is as if it had begun then.
    assert found([mine], NOW + 1.4 * HOUR, uses(a0="", a1=""), memory) == []
    assert [kind for kind, *_ in found([mine], NOW + 1.5 * HOUR, uses(a0="", a1=""), memory)] == ["no_show"]


def test_overrun_until_a_day_later():
    mine = reservation("a:0 a:1", -5, 0, "ann", id="r")
    seen = uses(a0="ann", a1="bob")
    told, _ = findings([mine], NOW + 60, seen, BEGAN, SETTINGS)
    assert [(one.kind, str(one.place), one.person, one.other, one.since, one.pids) for one in told] == [
        ("overrun", "a:0", "ann", None, NOW, (7,))
    ]
    assert found([mine], NOW + DAY - 1, seen) == [("overrun", "r", "a:0", None)]
    assert found([mine], NOW + DAY, seen) == []
    # What began after the end is nobody's reservation's business.
    assert found([mine], NOW + HOUR, uses(a0={"ann": 0.5})) == []
    assert found([mine], NOW + HOUR, uses(a0=DOWN)) == []


def test_overrun_and_in_another_ones_way():
    mine, other = reservation("a:0", -5, 0, "ann", id="r"), reservation("a:0", 0, 5, "bob", id="s")
    assert found([mine, other], NOW + 60, uses(a0="ann")) == [
        ("squatter", "s", "a:0", "ann"),
        ("overrun", "r", "a:0", None),
    ]


def test_who_has_it_again_overruns_nothing():
    mine, again = reservation("a:0", -5, 0, "ann", id="r"), reservation("a:0", 0, 5, "ann", id="s")
    assert found([mine, again], NOW + 60, uses(a0="ann")) == []
    # A card again, of which it had been an instance.
    part = reservation("a:0.1", -5, 0, "ann", id="r")
    assert found([part, again], NOW + 60, uses(a0="ann", a0_1="ann")) == []
    # And an instance of what had been hers as a card.
    part_again = reservation("a:0.1", 0, 5, "ann", id="s")
    assert found([mine, part_again], NOW + 60, uses(a0="ann", a0_1="ann")) == []


def test_who_has_an_instance_does_not_block_the_card():
    card, part = reservation("a:0", 1, 5, "ann", id="r"), reservation("a:0.1", 0, 1, "bob", id="s")
    seen = uses(a0="bob", a0_1="bob")
    assert found([card, part], NOW + 0.5 * HOUR, seen) == []
    # Another instance than the one that is reserved is not theirs.
    other = reservation("a:0.2", 1, 5, "ann", id="r")
    assert found([other, part], NOW + 0.5 * HOUR, uses(a0_1="bob", a0_2="bob")) == [("blocked", "r", "a:0.2", "bob")]


def test_of_several_that_are_over_the_last_is_overrun():
    first, second = reservation("a:0", -5, -3, "ann", id="r"), reservation("a:0", -3, -1, "ann", id="s")
    assert found([second, first], NOW, uses(a0={"ann": -4})) == [("overrun", "s", "a:0", None)]


def test_ended_early_is_overrun_and_cancelled_is_not():
    ended = reservation("a:0", -5, 9, "ann", id="r", ended_at=NOW, ending="ended")
    cancelled = reservation("a:0", 1, 9, "ann", id="s", ended_at=NOW, ending="cancelled")
    assert found([ended, cancelled], NOW + 60, uses(a0="ann")) == [("overrun", "r", "a:0", None)]
    assert found([cancelled], NOW + 60, uses(a0="bob ann")) == []


def test_blocked_an_hour_before():
    mine = reservation("a:0 a:1", 5, 9, "ann", id="r")
    seen = uses(a0="ann bob", a1="")
    assert found([mine], NOW + 4 * HOUR - 1, seen) == []
    told, _ = findings([mine], NOW + 4 * HOUR, seen, BEGAN, SETTINGS)
    assert [(one.kind, str(one.place), one.person, one.other, one.since) for one in told] == [
        ("blocked", "a:0", "ann", "bob", NOW - HOUR)
    ]
    assert found([mine], NOW + 4 * HOUR, uses(a0=DOWN)) == []
    # Once it has begun it is a squatter.
    assert [kind for kind, *_ in found([mine], NOW + 5 * HOUR, seen)] == ["squatter"]


def test_words_for_those_who_may_not_know_names():
    for kind in ("squatter", "blocked", "overrun", "no_show"):
        told = words(kind, "somebody", "somebody", place("a:0"))
        assert "somebody" in told
        assert "None" not in words(kind, "ann", None if kind in ("overrun", "no_show") else "bob", places("a:0")[0])
