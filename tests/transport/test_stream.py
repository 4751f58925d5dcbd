"""Cutting a remote stream into lines, whatever its pieces are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import NodeLost
from gpulse.transport import stream
from gpulse.transport.stream import Lines
from gpulse_probe.boot import START_MARKER

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
