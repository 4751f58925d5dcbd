"""Cutting a remote stream into lines, whatever its pieces are."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import NodeLost
from gpulse.transport import stream
from gpulse.transport.stream import FirstLine, Lines
from gpulse_probe.boot import START_MARKER
from tests.costs import MOST_GROWTH, growth

MARKER = START_MARKER.encode()


def cut(*pieces: bytes) -> tuple[list[bytes], list[str]]:
    lines: list[bytes] = []
    started: list[str] = []
    reader = Lines(lines.append, started.append)
    for piece in pieces:
        reader.feed(piece)
    return lines, started


@given(st.binary(max_size=300), st.lists(st.binary(max_size=50)), st.data())
def test_pieces_do_not_matter(before, lines, data):
    before = before.replace(MARKER, b"")
    lines = [line.replace(b"\n", b"") for line in lines]
    text = before + b"\n" + MARKER + b"\n" + b"".join(line + b"\n" for line in lines) + b"unfinished"
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    assert cut(*pieces) == (lines, [before.decode("utf-8", "replace").strip()])


def test_the_marker_may_come_first():
    assert cut(MARKER + b"\na\n") == ([b"a"], [""])


def test_a_marker_within_a_line_is_none():
    assert cut(b"echo " + MARKER + b"\na\n") == ([], [])


def test_a_long_welcome_is_kept_in_part():
    lines, started = cut(*[b"x" * 1000] * 100, b"\n" + MARKER + b"\nline\n")
    assert lines == [b"line"]
    assert len(started[0]) <= stream.KEPT_PREAMBLE


def test_what_has_no_end_is_given_up():
    with pytest.raises(NodeLost, match="print without end"):
        cut(*[b"x" * 65536] * 17)
    with pytest.raises(NodeLost, match="longer than 4 MiB"):
        cut(b"\n" + MARKER + b"\n", *[b"x" * 65536] * 65)


@given(st.lists(st.binary(max_size=100)))
def test_any_bytes(pieces):
    cut(*pieces)


def fed_at_once(text: bytes) -> int:
    count = 0

    def one(_line: bytes) -> None:
        nonlocal count
        count += 1

    Lines(one).feed(text)
    return count


@pytest.mark.parametrize("line", [b"\n", b"x\n", b"x" * 99 + b"\n"], ids=["empty", "short", "long"])
def test_cutting_takes_linear_time(line: bytes):
    """A node that wrote newlines to stderr at full rate stopped the hub for 24 s."""
    start = 1 << 15
    assert fed_at_once(line * start) == start
    assert growth(lambda count: fed_at_once(line * count), start) < MOST_GROWTH


def test_a_line_in_single_bytes_takes_linear_time():
    def byte_by_byte(size: int) -> None:
        reader = Lines(lambda _line: None)
        for _ in range(size):
            reader.feed(b"x")
        reader.feed(b"\n")

    assert growth(byte_by_byte, 1 << 14) < MOST_GROWTH


def test_a_preamble_in_small_pieces_takes_linear_time():
    def in_pieces(size: int) -> None:
        reader = Lines(lambda _line: None, lambda _preamble: None)
        for _ in range(size):
            reader.feed(b"\n--gpulse-\n")

    assert growth(in_pieces, 1 << 12) < MOST_GROWTH


def test_a_line_in_single_bytes_takes_no_more_memory_than_the_line():
    reader = Lines(lambda _line: None)
    tracemalloc.start()
    try:
        for _ in range(1 << 18):
            reader.feed(b"x")
        assert tracemalloc.get_traced_memory()[0] < 2 * (1 << 18)
    finally:
        tracemalloc.stop()


def test_an_answer_is_its_first_line_and_has_an_end():
    answer = FirstLine()
    answer.take(b"one")
    answer.take(b"two")
    assert answer.line == b"one"
    with pytest.raises(NodeLost, match="more than 100 lines"):
        for _ in range(100):
            answer.take(b"")
