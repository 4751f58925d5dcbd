"""Our frames against those of the `websockets` package, in both directions, however the bytes are split."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol
from websockets.utils import accept_key

from gpulse_probe import websocket
from gpulse_probe.websocket import Frames, ProtocolError, accepted, closing, frame, new_key

PAYLOADS = st.one_of(
    st.binary(max_size=300), st.integers(120, 70_000).map(lambda size: bytes(i % 251 for i in range(size)))
)
CONTROL = st.tuples(st.sampled_from([Opcode.PING, Opcode.PONG, Opcode.CLOSE]), st.binary(max_size=125))


def fed(data, cuts=(), most=1 << 20):
    """All messages of these bytes, given in pieces."""
    frames = Frames(most)
    found = []
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        found += frames.feed(data[start:end])
    return found


@given(st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.PING, Opcode.PONG]), PAYLOADS)
def test_what_we_send_is_what_a_server_reads(opcode, payload):
    if opcode in (Opcode.PING, Opcode.PONG):
        payload = payload[:125]
    server = ServerProtocol(state=OPEN, max_size=None)
    server.receive_data(frame(int(opcode), payload))
    (event,) = server.events_received()
    assert (event.opcode, bytes(event.data), event.fin) == (opcode, payload, True)


@given(
    st.lists(st.tuples(st.sampled_from([Opcode.TEXT, Opcode.BINARY]), PAYLOADS, st.lists(CONTROL, max_size=2))),
    st.lists(st.integers(0, 1 << 20), max_size=6),
    st.lists(st.integers(0, 1 << 20), max_size=8),
)
def test_what_a_server_sends_is_what_we_read(messages, parts, cuts):
    """Messages in fragments with control frames in between, the bytes split anywhere."""
    sent = b""
    expected = []
    for opcode, payload, controls in messages:
        places = [0, *sorted(part % (len(payload) + 1) for part in parts), len(payload)]
        for number, (start, end) in enumerate(pairwise(places)):
            last = number == len(places) - 2
            kind = Opcode.CONT if number else opcode
            sent += Frame(kind, payload[start:end], fin=last).serialize(mask=False)
            if number == 0 and not last:
                for control, data in controls:
                    sent += Frame(control, data).serialize(mask=False)
                    expected.append((int(control), data))
        expected.append((int(opcode), payload))
    assert fed(sent, cuts, most=1 << 20) == expected


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_any_bytes_are_messages_or_an_error_whatever_the_split(data, cuts):
    def outcome(*cuts):
        try:
            return fed(data, cuts, most=200)
        except ProtocolError as error:
            return str(error)

    whole = outcome()
    split = outcome(*cuts)
    assert isinstance(split, type(whole))
    assert split == whole


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xc2\x00", "unknown kind"),
        (b"\x83\x00", "unknown kind"),
        (b"\x81\x80abcd", "masked"),
        (b"\x09\x00", "in parts"),
        (b"\x89\x7e\x00\x7e", "too long"),
        (b"\x80\x00", "without a beginning"),
        (b"\x01\x01a\x81\x01b", "before the last one ended"),
        (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "more than"),
    ],
)
def test_what_no_server_may_send(data, words):
    with pytest.raises(ProtocolError, match=words):
        fed(data)


def test_fragments_without_end_are_refused():
    frames = Frames(1000)
    assert list(frames.feed(b"\x02\x64" + b"x" * 100)) == []
    with pytest.raises(ProtocolError, match="more than 1000"):
        for _ in range(20):
            list(frames.feed(b"\x00\x64" + b"x" * 100))


def test_empty_fragments_without_end_are_refused():
    with pytest.raises(ProtocolError, match="more than 1000 parts"):
        fed(b"\x02\x00" + b"\x00\x00" * 2000)


def test_handshake_key():
    key = new_key()
    assert len(key) == 24
    assert accepted(key) == accept_key(key)
    assert accepted("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@given(st.one_of(st.just(1012), st.integers(4400, 4499)), st.text(max_size=30))
def test_closing_words(code, words):
    assert closing(Close(code, words).serialize()) == (code, words)


def test_closing_without_words():
    assert closing(b"") == (1005, "")
    assert closing(b"\x03") == (1005, "")


def test_our_closing_frame():
    server = ServerProtocol(state=OPEN)
    server.receive_data(websocket.close_frame(websocket.GOING_AWAY))
    assert server.close_rcvd is not None
    assert server.close_rcvd.code == 1001


def test_masking_is_fast():
    """A whole Snapshot of a big node in well under a millisecond."""
    line = bytes(range(256)) * 200
    best = min(_took(line) for _ in range(20))
    assert best < 0.002


def _took(line):
    began = time.perf_counter()
    frame(websocket.BINARY, line)
    return time.perf_counter() - began
