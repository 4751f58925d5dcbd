"""No parser takes more than time in proportion to what it reads: eight times the text, about eight times as long.

Hostile texts are long runs of what parsers are known to stumble over. CPU time of this thread, so that a busy machine
fails nothing.
"""

import gc
import time
from contextlib import suppress

import pytest

from gpulse.config import hosts
from tests.fuzz.parsers import PARSERS, REFUSALS, Parser

# Three times twice as long: eight times as much where time is linear, 64 times where it is quadratic.
DOUBLINGS = 3
MOST_RATIO = 24.0
# Less is the noise of the clock.
LEAST_SECONDS = 0.001
# Nobody waits for longer; what is quadratic would take minutes.
ENOUGH_SECONDS = 3.0
RUNS = 4
# Tried with every parser: every sign that opens, closes, separates, escapes or repeats something.
UNITS = [
    *(bytes([code]) for code in b"a0 \n\r\t,;:.=-+*/\\'\"([{<>}])!&^@#%$?_|~`"),
    *(b"\x00", b"\xff", b"\x80", "é".encode(), "\u2028".encode(), "İ".encode()),
    *(b"a ", b"a,", b"a=", b"1-", b"a.", b'"a"', b"/*", b"//", b"\r\n", b"[]", b"{}", b"()", b'\\"', b'":"', b"\\u00"),
]


def _seconds(parser: Parser, data: bytes) -> float:
    # Collecting the garbage of all tests is no work of the parser.
    gc.disable()
    try:
        began = time.thread_time()
        with suppress(*REFUSALS):
            parser.read(data)
        return time.thread_time() - began
    finally:
        gc.enable()


def _grown(unit: bytes, size: int, before: bytes, behind: bytes) -> bytes:
    return before + unit * max(1, size // len(unit)) + behind


def ratio(parser: Parser, unit: bytes, before: bytes, behind: bytes) -> float:
    """How much longer the longest text takes than the shortest, each the least of some runs."""
    largest = _grown(unit, parser.most_bytes, before, behind)
    smallest = _grown(unit, parser.most_bytes >> DOUBLINGS, before, behind)
    least, most = float("inf"), float("inf")
    for _ in range(RUNS):
        least = min(least, _seconds(parser, smallest))
        # A text that would take for ever is seen by one that is half as long.
        if least > ENOUGH_SECONDS:
            return float("inf")
        most = min(most, _seconds(parser, largest))
        found = max(most, LEAST_SECONDS) / max(least, LEAST_SECONDS)
        if found <= MOST_RATIO:
            break
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PARSERS)
def test_time_grows_with_the_text(name: str, monkeypatch: pytest.MonkeyPatch):
    # Texts that name more are refused early, so that the reading itself is measured.
    monkeypatch.setattr(hosts, "MOST_HOSTS", 500)
    parser = PARSERS[name]
    slow = {}
    for before, behind in parser.around:
        for unit in dict.fromkeys([*UNITS, *parser.units]):
            found = ratio(parser, unit, before, behind)
            if found > MOST_RATIO:
                slow[before[-40:], unit[:40], behind[:40]] = f"{found:.0f} times"
    assert not slow


def test_what_is_quadratic_is_found():
    """The measure itself: a parser that looks through all before each character is seen."""
    quadratic = Parser(lambda data: [data.count(b"x", 0, at) for at in range(0, len(data), 16)])
    linear = Parser(lambda data: [data.count(b"x", at, at + 16) for at in range(0, len(data), 16)])
    assert ratio(quadratic, b"a", b"", b"") > MOST_RATIO
    assert ratio(linear, b"a", b"", b"") <= MOST_RATIO
