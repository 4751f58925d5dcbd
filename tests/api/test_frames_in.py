"""Frames of a client: whatever way they are cut, the messages come out; what a client may not send is refused."""

import os
import random
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from gpulse.api.frames_in import (
    BINARY,
    CLOSE,
    CONTINUATION,
    LARGEST_MESSAGE,
    MOST_PIECES,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TEXT,
    TOO_BIG,
    FrameError,
    FramesIn,
    close_frame,
    pong_frame,
    text_frame,
)


def frame(opcode: int, data: bytes, fin: bool = True) -> bytes:
    """As another library writes it for a client."""
    return Frame(Opcode(opcode), data, fin).serialize(mask=True)


class Heard:
    def __init__(self):
        self.all = []
        self.frames = FramesIn(
            lambda data: self.all.append((BINARY, data)),
            lambda data: self.all.append((TEXT, data)),
            lambda opcode, data: self.all.append((opcode, data)),
        )

    def feed(self, data: bytes, *cuts: int) -> "Heard":
        places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
        for start, end in pairwise(places):
            self.frames.feed(data[start:end])
        return self


def refused(data: bytes, *cuts: int) -> FrameError:
    with pytest.raises(FrameError) as caught:
        Heard().feed(data, *cuts)
    return caught.value


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 2000, 65535, 65536, LARGEST_MESSAGE])
def test_sizes(size):
    data = os.urandom(size)
    assert Heard().feed(frame(BINARY, data)).all == [(BINARY, data)]
    assert Heard().feed(frame(TEXT, data), 1, 2, 5, 9, 11, size // 2).all == [(TEXT, data)]


messages = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([BINARY, TEXT]), st.lists(st.binary(max_size=300), min_size=1, max_size=4)),
        st.tuples(st.sampled_from([PING, PONG]), st.lists(st.binary(max_size=125), min_size=1, max_size=1)),
    ),
    max_size=6,
)


@given(messages, st.lists(st.integers(min_value=0, max_value=10_000), max_size=8), st.integers())
def test_messages_come_out_however_they_are_cut(told, cuts, seed):
    chance = random.Random(seed)
    wire, expected = b"", []
    for opcode, pieces in told:
        for place, piece in enumerate(pieces):
            last = place == len(pieces) - 1
            wire += frame(opcode if place == 0 else CONTINUATION, piece, fin=last)
            if not last and chance.random() < 0.3:
                # A control frame may come in the middle of a message.
                wire += frame(PING, b"within")
                expected.append((PING, b"within"))
        expected.append((opcode, b"".join(pieces)))
    assert Heard().feed(wire, *cuts).all == expected


@given(st.binary(max_size=400), st.lists(st.integers(min_value=0, max_value=400), max_size=5))
def test_any_bytes_are_a_frame_or_an_error(data, cuts):
    try:
        Heard().feed(data, *cuts)
    except FrameError as error:
        assert error.code in {PROTOCOL_ERROR, TOO_BIG}
        assert str(error)


def test_byte_by_byte():
    wire = frame(BINARY, b"x" * 3000) + frame(PING, b"p") + frame(TEXT, b"late")
    heard = Heard()
    for place in range(len(wire)):
        heard.frames.feed(wire[place : place + 1])
    assert heard.all == [(BINARY, b"x" * 3000), (PING, b"p"), (TEXT, b"late")]


@pytest.mark.parametrize("bit", [0x40, 0x20, 0x10])
def test_reserved_bits(bit):
    wire = bytearray(frame(BINARY, b"x" * 200))
    wire[0] |= bit
    assert "reserved" in str(refused(bytes(wire)))


def test_unmasked():
    for size in (3, 200, 70_000):
        wire = Frame(Opcode.BINARY, b"x" * size).serialize(mask=False)
        error = refused(wire)
        assert "masked" in str(error)
        assert error.code == PROTOCOL_ERROR


@pytest.mark.parametrize("opcode", [3, 7, 11, 15])
def test_opcodes_that_do_not_exist(opcode):
    assert f"opcode {opcode}" in str(refused(bytes((0x80 | opcode, 0x80)) + b"mask"))


def test_control_frames_are_short_and_whole():
    assert "125" in str(refused(bytes((0x80 | PING, 0xFE)) + b"\x00\xff" + b"mask"))
    assert "pieces" in str(refused(bytes((PING, 0x80)) + b"mask"))
    assert Heard().feed(frame(CLOSE, b"\x03\xe8bye")).all == [(CLOSE, b"\x03\xe8bye")]


def test_lengths_are_told_in_the_shortest_way():
    assert "shortest" in str(refused(b"\x82\xfe\x00\x05maskhello"))
    assert "shortest" in str(refused(b"\x82\xff" + (300).to_bytes(8, "big") + b"mask" + b"x" * 300))
    assert refused(b"\x82\xff" + b"\xff" * 8).code == TOO_BIG


def test_pieces_need_a_beginning():
    assert "beginning" in str(refused(frame(CONTINUATION, b"x")))
    assert "beginning" in str(refused(frame(BINARY, b"x", fin=False) + frame(TEXT, b"y")))


def test_large_messages_are_refused_before_they_come():
    tracemalloc.start()
    error = refused(b"\x82\xff" + (10**10).to_bytes(8, "big") + b"mask")
    assert error.code == TOO_BIG
    half = frame(BINARY, b"x" * (LARGEST_MESSAGE // 2 + 1), fin=False)
    rest = frame(CONTINUATION, b"x" * (LARGEST_MESSAGE // 2 + 1))
    assert refused(half + rest[:14]).code == TOO_BIG
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * LARGEST_MESSAGE


def test_a_message_has_not_endless_pieces():
    wire = frame(TEXT, b"", fin=False) + frame(CONTINUATION, b"", fin=False) * MOST_PIECES
    assert refused(wire).code == TOO_BIG


def test_a_slow_sender_costs_no_more_than_a_fast_one():
    """A byte at a time must not copy what is there already each time."""
    wire = frame(BINARY, b"x" * 200_000)
    heard = Heard()
    heard.frames.feed(wire[:100])
    buffer = heard.frames._buffer
    for place in range(100, 2000):
        heard.frames.feed(wire[place : place + 1])
        assert heard.frames._buffer is buffer
    heard.frames.feed(wire[2000:])
    assert heard.all == [(BINARY, b"x" * 200_000)]


def test_what_the_hub_sends():
    assert text_frame("hello") == Frame(Opcode.TEXT, b"hello").serialize(mask=False)
    assert text_frame("h" * 300) == Frame(Opcode.TEXT, b"h" * 300).serialize(mask=False)
    assert pong_frame(b"p") == Frame(Opcode.PONG, b"p").serialize(mask=False)
    assert close_frame(4401, "no") == Frame(Opcode.CLOSE, b"\x11\x31no").serialize(mask=False)
    long = close_frame(1000, "ü" * 100)
    assert len(long) <= 2 + 125
    long[4:].decode()
