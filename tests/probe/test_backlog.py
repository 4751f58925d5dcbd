"""What is kept for a hub that is away: bounded, over the whole time, each line with what it builds on."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.backlog import Backlog, Line


def whole(taken, size=1000):
    text = b"w" * size
    return Line(float(taken), text, text)


def update(taken, of, size=100):
    return Line(float(taken), b"u%d" % taken + b" " * size, of.whole)


def all_of(backlog, now=0.0):
    taken = []
    while backlog.first(now) is not None:
        taken.append(backlog.take())
    return taken


def test_lines_come_back_in_their_order():
    backlog = Backlog()
    first = whole(0)
    lines = [first, update(1, first), update(2, first), whole(3)]
    for line in lines:
        backlog.add(line)
    assert len(backlog) == 4
    assert all_of(backlog) == lines
    assert backlog.first(5.0) is None


def test_a_whole_snapshot_counts_once():
    backlog = Backlog()
    first = whole(0, size=5000)
    for number in range(1, 4):
        backlog.add(update(number, first, size=98))
    assert backlog.size == 5000 + 3 * 100


def test_full_it_is_thinned_out_evenly():
    backlog = Backlog(most_bytes=20_000, most_seconds=1e9)
    first = whole(0)
    backlog.add(first)
    for number in range(1, 5000):
        backlog.add(update(number, first))
        assert backlog.size <= 20_000
    moments = [line.taken for line in all_of(backlog)]
    assert len(moments) > 60
    assert moments[0] < 200
    assert moments[-1] > 4800
    steps = [later - earlier for earlier, later in pairwise(moments)]
    assert max(steps) <= 2 * min(steps), "as dense at its beginning as at its end"


def test_empty_again_it_keeps_every_line_again():
    backlog = Backlog(most_bytes=5_000)
    first = whole(0)
    for number in range(500):
        backlog.add(update(number, first))
    all_of(backlog)
    for number in range(500, 510):
        backlog.add(update(number, first))
    assert len(backlog) == 10


def test_old_lines_are_forgotten():
    backlog = Backlog(most_seconds=10.0)
    first = whole(0)
    for number in range(30):
        backlog.add(update(number, first))
    assert [line.taken for line in all_of(backlog, now=35.0)] == [25.0, 26.0, 27.0, 28.0, 29.0]


def test_a_line_that_is_too_long_is_not_kept():
    backlog = Backlog(most_bytes=500)
    backlog.add(whole(0, size=501))
    assert len(backlog) == 0


def test_what_did_not_arrive_goes_back_to_its_place():
    backlog = Backlog()
    first = whole(0)
    lines = [update(number, first) for number in range(6)]
    for line in lines[2:5]:
        backlog.add(line)
    backlog.put_back([lines[5], lines[0], lines[1]])
    assert all_of(backlog) == lines


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4000)), max_size=200), st.integers(1, 20_000))
def test_never_more_than_it_may_hold(sizes, most):
    backlog = Backlog(most_bytes=most)
    base = whole(0)
    for number, (is_whole, size) in enumerate(sizes):
        line = whole(number, size) if is_whole else update(number, base, size)
        base = line if is_whole else base
        backlog.add(line)
        assert backlog.size <= most
    taken = [line.taken for line in all_of(backlog)]
    assert taken == sorted(set(taken))
