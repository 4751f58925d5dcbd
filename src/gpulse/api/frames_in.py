"""WebSocket frames of a node, parsed by hand: a whole frame with one line in it goes on at once.

The general way (a parser, an event, a queue, a task that wakes up) costs more than everything the hub does with the
line; docs/benchmarks.md has both. What is not a plain whole frame goes a slower way that knows all of RFC 6455 that a
client without extensions may send.
"""

from collections.abc import Callable
from typing import Final

try:
    from websockets.speedups import apply_mask
except ImportError:  # where there was no C compiler
    from websockets.utils import apply_mask

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
LARGEST_MESSAGE = 1 << 20
MOST_PIECES = 1000
PROTOCOL_ERROR = 1002
TOO_BIG = 1009
_LONGEST_CONTROL = 125
_FINAL: Final = 0x80
_MASKED: Final = 0x80


class FrameError(Exception):
    """What came is no frame a client may send; `code` is that of the close frame."""

    def __init__(self, code: int, reason: str):
        super().__init__(reason)
        self.code = code


class FramesIn:
    """Takes bytes as they come; calls `binary` and `text` with whole messages and `control` with control frames.

    Raises FrameError, or what a callback raises; either way it must not be fed any more.
    """

    __slots__ = ("_binary", "_buffer", "_control", "_kind", "_needed", "_parts", "_size", "_text")

    def __init__(
        self,
        binary: Callable[[bytes], None],
        text: Callable[[bytes], None],
        control: Callable[[int, bytes], None],
    ):
        self._binary = binary
        self._text = text
        self._control = control
        self._buffer: bytearray | None = None
        # Fewer bytes than these are not worth a look: the frame in the buffer is not whole.
        self._needed = 0
        # The message whose frames are coming, if it has several.
        self._kind: int | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        if self._buffer is not None:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = bytes(self._buffer)
            self._buffer = None
        elif self._kind is None and len(data) > 8 and data[0] == _FINAL | BINARY and data[1] == _MASKED | 126:
            # Nearly always: one whole frame of some kilobytes, and nothing else.
            size = data[2] << 8 | data[3]
            if len(data) == 8 + size and size > _LONGEST_CONTROL:
                self._binary(apply_mask(data[8:], data[4:8]))
                return
        at = 0
        while (end := self._frame(data, at)) > at:
            at = end
        if at < len(data):
            self._buffer = bytearray(data[at:])

    def ignore_messages(self) -> None:
        """From now on control frames alone matter."""
        self._binary = self._text = _ignore

    def _frame(self, data: bytes, at: int) -> int:
        """Read the frame that begins there; where the next begins, or `at` itself while it is not whole."""
        self._needed = 2
        if len(data) - at < 2:
            return at
        first, second = data[at], data[at + 1]
        opcode, size, final = first & 0x0F, second & 0x7F, bool(first & _FINAL)
        if first & 0x70:
            raise FrameError(PROTOCOL_ERROR, "a reserved bit is set and no extension was agreed on")
        if not second & _MASKED:
            raise FrameError(PROTOCOL_ERROR, "a frame of a client must be masked")
        body = at + 2 + {126: 2, 127: 8}.get(size, 0)
        self._needed = body - at
        if len(data) < body:
            return at
        if size > _LONGEST_CONTROL:
            shortest = 126 if size == 126 else 1 << 16
            size = int.from_bytes(data[at + 2 : body], "big")
            if size < shortest:
                raise FrameError(PROTOCOL_ERROR, "the length of a frame is not told in the shortest way")
        self._check(opcode, size, final)
        end = body + 4 + size
        self._needed = end - at
        if len(data) < end:
            return at
        self._take(opcode, final, apply_mask(data[body + 4 : end], data[body : body + 4]))
        return end

    def _check(self, opcode: int, size: int, final: bool) -> None:
        """What a frame's head tells, before its body is waited for."""
        if opcode in (CLOSE, PING, PONG):
            if size > _LONGEST_CONTROL or not final:
                raise FrameError(PROTOCOL_ERROR, "a control frame is longer than 125 bytes or in pieces")
            return
        if opcode not in (CONTINUATION, TEXT, BINARY):
            raise FrameError(PROTOCOL_ERROR, f"there is no opcode {opcode}")
        if (opcode == CONTINUATION) != (self._kind is not None):
            raise FrameError(PROTOCOL_ERROR, "a piece of a message without its beginning, or a beginning within one")
        if self._size + size > LARGEST_MESSAGE or len(self._parts) >= MOST_PIECES:
            raise FrameError(TOO_BIG, f"a message is larger than {LARGEST_MESSAGE >> 20} MiB or in too many pieces")

    def _take(self, opcode: int, final: bool, payload: bytes) -> None:
        if opcode >= CLOSE:
            self._control(opcode, payload)
            return
        kind = self._kind if opcode == CONTINUATION else opcode
        if not final:
            self._kind = kind
            self._parts.append(payload)
            self._size += len(payload)
            return
        whole = b"".join([*self._parts, payload]) if self._parts else payload
        self._kind, self._parts, self._size = None, [], 0
        (self._text if kind == TEXT else self._binary)(whole)


def _ignore(_message: bytes) -> None:
    return None


def close_frame(code: int, reason: str) -> bytes:
    """A frame that ends the connection; there is room for 123 bytes of words."""
    body = code.to_bytes(2, "big") + reason.encode()[: _LONGEST_CONTROL - 2].decode(errors="ignore").encode()
    return bytes((_FINAL | CLOSE, len(body))) + body


def pong_frame(payload: bytes) -> bytes:
    return bytes((_FINAL | PONG, len(payload))) + payload


def text_frame(text: str) -> bytes:
    """A short message."""
    body = text.encode()
    head = bytes((_FINAL | TEXT, len(body))) if len(body) < 126 else b"\x81\x7e" + len(body).to_bytes(2, "big")
    return head + body
