"""A clock that jumps ends nothing and deletes nothing, unless it stays where it jumped to."""

import pytest

from gpulse.steady_clock import SteadyClock, since_boot

DAY, HOUR = 86400.0, 3600.0


class World:
    """The machine's clock, which anybody may set, and the time since it booted, which nobody can."""

    def __init__(self):
        self.wall, self.boot = 1_800_000_000.0, 5000.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.boot)

    def go(self, seconds, step=0.5):
        """So much time goes by, and the clock is looked at every now and then."""
        for _ in range(round(seconds / step)):
            self.boot += step
            self.wall += step
            self.clock()


@pytest.fixture
def world():
    return World()


def test_it_follows_a_clock_that_goes_right(world):
    for _ in range(10):
        world.go(100, 10)
        assert world.clock() == world.wall
    # Time servers correct it a little, at once or little by little.
    world.wall += 3
    assert world.clock() == world.wall
    for _ in range(100):
        world.wall -= 0.2
        world.go(1)
        assert world.clock() == pytest.approx(world.wall)


@pytest.mark.parametrize("jump", [800 * DAY, -800 * DAY, 2 * HOUR, 10.0])
def test_a_jump_for_some_seconds_is_not_believed(world, jump):
    before = world.clock()
    world.wall += jump
    assert world.clock() - before == pytest.approx(0, abs=1)
    world.go(3)
    assert world.clock() - before == pytest.approx(3, abs=1)
    world.wall -= jump
    world.go(3)
    assert world.clock() - before == pytest.approx(6, abs=1)
    assert world.clock() == world.wall


def test_a_jump_that_stays_is_believed(world):
    world.wall += 800 * DAY
    world.go(59)
    assert world.wall - world.clock() == pytest.approx(800 * DAY, abs=1)
    world.go(2)
    assert world.clock() == world.wall


def test_a_clock_that_jumps_about_is_not_believed(world):
    expected = world.clock()
    for number in range(1, 100):
        world.wall += (-1) ** number * number * DAY
        world.go(10)
        expected += 10
        assert world.clock() == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(("jump", "waits"), [(2 * HOUR, HOUR), (800 * DAY, DAY)])
def test_nothing_is_deleted_until_time_itself_has_confirmed_it(world, jump, waits):
    assert world.clock.for_deleting() is None, "nor at the start"
    world.go(HOUR, 10)
    assert world.clock.for_deleting() == world.wall
    world.wall += jump
    for _ in range(6):
        assert world.clock.for_deleting() is None
        world.go(waits / 6 - 10, 10)
    world.go(120, 10)
    assert world.clock.for_deleting() == world.wall


def test_a_jump_there_and_back_counts_too(world):
    world.go(HOUR, 10)
    for jump in (800 * DAY, -800 * DAY):
        world.wall += jump
        world.go(3)
    assert world.clock.for_deleting() is None
    world.go(HOUR, 10)
    assert world.clock.for_deleting() is None
    world.go(DAY, 60)
    assert world.clock.for_deleting() == world.wall


@pytest.mark.parametrize(("off", "waits"), [(0, HOUR), (20 * DAY, HOUR), (800 * DAY, DAY), (-3 * DAY, DAY)])
def test_at_the_start_what_was_written_last_is_compared_with(world, off, waits):
    world.clock.compare(world.wall - off)
    world.go(waits - 60, 10)
    assert world.clock.for_deleting() is None
    world.go(120, 10)
    assert world.clock.for_deleting() == world.wall


def test_the_real_one():
    clock = SteadyClock()
    assert since_boot() > 0
    assert 0 <= clock() - clock() + 60 < 120
