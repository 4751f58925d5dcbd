"""WebSocket frames as the agent takes them from a hub."""

from typing import Any

from gpulse_probe.websocket import CLOSE, Frames, ProtocolError, closing
from tests.fuzz.targets.pieces import pieces

SEEDS = [
    b'\x81\x10{"gpulse":"0.1"}',
    b"\x89\x01x\x88\x0b\x03\xf4restarts!",
    b"\x01\x01a\x8a\x00\x80\x01b",
    b"\x82\x7e\x00\x80" + bytes(128),
    b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x01" + bytes(100),
]
WORDS = ["\\x81\\x7e", "\\x80\\x00", "\\x88\\x02\\x03\\xe9"]


def fuzz(data: bytes) -> None:
    whole = _read(data, max(1, len(data)))
    assert whole == _read(data, 3)
    for kind, payload in whole or ():
        if kind == CLOSE:
            closing(payload)


def _read(data: bytes, size: int) -> list[tuple[Any, Any]] | None:
    """The messages; None where the connection has to end."""
    frames = Frames()
    found: list[tuple[Any, Any]] = []
    try:
        for piece in pieces(data, size):
            found += frames.feed(piece)
    except ProtocolError as refused:
        assert str(refused)
        return None
    return found
