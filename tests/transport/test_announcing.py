"""What the person at the terminal is told of nodes: all of it while it is little, how much it was when it is not."""

import pytest

from gpulse.errors import BadLine
from gpulse.transport.announcing import SENTENCES_A_MINUTE, Announcing
from tests.transport.recorder import Recorder


class Terminal:
    """A sink that announces, by a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.told: list[str] = []
        self.recorder = Recorder()
        self.sink = Announcing(self.recorder, self.told.append, lambda: self.now)

    def take(self) -> list[str]:
        told = self.told[:]
        self.told.clear()
        return told


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_lost_and_back(terminal):
    terminal.sink.connecting("a", "dialling")
    terminal.sink.down("a", "it is off")
    terminal.sink.down("a", "it is off")
    terminal.sink.down("a", "its key is wrong")
    with pytest.raises(BadLine):
        terminal.sink.line("a", b"x")
    terminal.sink.line("a", b"{}")
    terminal.sink.line("a", b"{}")
    terminal.sink.log("a", "words")
    assert terminal.take() == ["node a is down: it is off", "node a is down: its key is wrong", "node a is up"]
    assert (len(terminal.recorder.lines["a"]), terminal.recorder.logs["a"]) == (2, ["words"])


def test_it_never_falls_silent_for_good(terminal):
    for minute in range(30):
        for number in range(3 * SENTENCES_A_MINUTE):
            terminal.sink.down(f"n{number}", f"reason {minute}")
        told = terminal.take()
        if minute:
            assert told.pop(0) == f"and {2 * SENTENCES_A_MINUTE} more; the page and `gpulse nodes` show all"
        assert told == [f"node n{number} is down: reason {minute}" for number in range(SENTENCES_A_MINUTE)]
        terminal.now += 60


@pytest.mark.parametrize(
    "happens",
    [
        lambda sink: sink.line("well", b"{}"),
        lambda sink: sink.log("well", "words"),
        lambda sink: sink.connecting("n1", "dialling"),
        lambda sink: sink.down("n1", "off"),
    ],
)
def test_the_rest_is_told_once_when_the_minute_is_over(terminal, happens):
    for number in range(SENTENCES_A_MINUTE + 5):
        terminal.sink.down(f"n{number}", "off")
    assert len(terminal.take()) == SENTENCES_A_MINUTE
    terminal.now += 59
    happens(terminal.sink)
    assert terminal.take() == []
    terminal.now += 1
    happens(terminal.sink)
    happens(terminal.sink)
    assert terminal.take() == ["and 5 more; the page and `gpulse nodes` show all"]
