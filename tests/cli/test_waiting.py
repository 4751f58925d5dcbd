"""gpulse free --wait: what was waited for is held, by whom that is possible."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.reservations.model import Reservation
from tests.cli.booking_site import Running, running
from tests.patience import PATIENCE_SECONDS

MINUTE = 60.0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        yield made


def all_taken(hub: Running) -> str:
    """By the admin, but for the two that alice is on; its id."""
    made = hub.site.made("gpu1:1", "gpu1:2", "gpu1:3", "gpu2:1", "gpu2:2", "gpu2:3", who="admin")
    hub.site.tick()
    return str(made["id"])


def waited(hub: Running, *words: str) -> tuple[str, str]:
    """What somebody is told who waits while all GPUs are taken, and then none."""
    taken = all_taken(hub)
    waiting = hub.start("free", "--wait", "--timeout", "60", *words)
    try:
        assert waiting.stderr is not None
        before = ""
        while not before.endswith("(Ctrl-C ends)\n"):
            line = waiting.stderr.readline()
            assert line, before
            before += line
        assert hub.site.ask(f"reservations/{taken}", "DELETE", who="admin").status_code == 200
        hub.site.tick()
        told, after = waiting.communicate(timeout=PATIENCE_SECONDS)
    finally:
        if waiting.poll() is None:
            waiting.kill()
            waiting.communicate()
    assert waiting.returncode == 0
    return told, before + after


def current(hub: Running) -> list[Reservation]:
    return list(hub.site.table.current(hub.site.clock.now))


@pytest.mark.parametrize(("words", "minutes"), [((), 10), (("--hold", "4m"), 4)])
def test_what_was_waited_for_is_held(hub: Running, words: tuple[str, ...], minutes: int):
    told, said = waited(hub, "-n", "1", *words)
    assert "gpu1" in told
    (one,) = current(hub)
    assert (one.person, " ".join(map(str, one.places)), one.hold) == ("member", "gpu1:1", True)
    assert one.end - one.start == pytest.approx(minutes * MINUTE)
    assert "gpulse: held until " in said
    assert f"gpulse cancel {one.id} lets go of them" in said
    # Nobody else finds it meanwhile.
    hub.site.tick()
    assert hub.run("free", "-n", "3", "node:gpu1", who="admin").returncode == 1


def test_the_hold_is_told_of_as_json(hub: Running):
    told, _ = waited(hub, "--json")
    hold = json.loads(told)["hold"]
    assert (hold["hold"], hold["gpus"]) == (True, [{"node": "gpu1", "index": "1", "id": "GPU-gpu1-1"}])


def test_who_wants_only_to_be_told_holds_nothing(hub: Running):
    _, said = waited(hub, "--no-hold")
    assert (current(hub), "held" in said) == ([], False)


def test_no_longer_than_the_site_allows(tmp_path: Path):
    with running(tmp_path, hold_longest_minutes=3.0) as hub:
        waited(hub)
        (one,) = current(hub)
        assert one.end - one.start == pytest.approx(3 * MINUTE)


@pytest.mark.parametrize(("who", "why"), [("viewer", "needs the role member"), (None, "gpulse login")])
def test_who_may_reserve_nothing_is_told_and_waits(hub: Running, who: str | None, why: str):
    done = hub.run("free", "--wait", "--timeout", "30", who=who)
    assert (done.returncode, "gpu1" in done.stdout) == (0, True)
    (said,) = done.stderr.splitlines()
    assert said.startswith("gpulse: what is found will not be held: ")
    assert why in said
    assert current(hub) == []
    # Who asked for it expressly does not get less in silence.
    assert hub.run("free", "--wait", "--hold", "5m", who=who).returncode == 2


@pytest.mark.parametrize(
    ("words", "why"), [(("--hold", "2h"), "30 minutes at most"), (("-n", "5", "--hold", "5m"), "4 GPUs reserved")]
)
def test_who_may_not_hold_so_much_does_not_wait_for_it(hub: Running, words: tuple[str, ...], why: str):
    all_taken(hub)
    done = hub.run("free", "--wait", *words)
    assert (done.returncode, why in done.stderr) == (2, True)
    assert "waiting for" not in done.stderr


def test_what_is_more_than_one_may_hold_is_found_all_the_same(hub: Running):
    """It was not asked to be held."""
    done = hub.run("free", "--wait", "-n", "5")
    assert (done.returncode, done.stdout.count("gpu2")) == (0, 2)
    first, last = done.stderr.splitlines()
    assert first.startswith("gpulse: as things are, what is found could not be held: one person can have 4 GPUs ")
    assert last.startswith("gpulse: not held: one person can have 4 GPUs ")
    assert current(hub) == []
