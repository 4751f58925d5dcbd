"""WebSocket frames as the hub takes them from nodes."""

from typing import Any

from gpulse.api.frames_in import LARGEST_MESSAGE, FrameError, FramesIn
from gpulse_probe import websocket
from tests.fuzz.targets.pieces import pieces

SEEDS = [
    websocket.frame(websocket.BINARY, b'{"update":0,"seq":1,"time":1.0}' * 10),
    websocket.frame(websocket.TEXT, b"late") + websocket.frame(websocket.PING, b"x") + websocket.close_frame(1001),
    b"\x02\x81aaaab\x00\x81aaaab\x80\x81aaaab",
    websocket.frame(websocket.BINARY, bytes(70_000)),
]
WORDS = ["\\x82\\xfe\\x01\\x00", "\\x80\\x80", "\\x89\\x80", "\\x88\\x82", "\\x82\\xff\\x00\\x00\\x00\\x00\\x00\\x01"]


def fuzz(data: bytes) -> None:
    whole = _read(data, max(1, len(data)))
    assert whole == _read(data, 7)
    for _, payload in whole:
        assert len(payload) <= LARGEST_MESSAGE


def _read(data: bytes, size: int) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    frames = FramesIn(
        lambda payload: found.append(("binary", payload)),
        lambda payload: found.append(("text", payload)),
        lambda kind, payload: found.append((kind, payload)),
    )
    for piece in pieces(data, size):
        try:
            frames.feed(piece)
        except FrameError as refused:
            assert str(refused)
            found.append(("refused", str(refused)))
            break
    return found
