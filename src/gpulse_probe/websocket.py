"""The client's side of a WebSocket (RFC 6455) as bytes in and out: the handshake, and frames."""

import binascii
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, GOING_AWAY = 1000, 1001

_CONTINUATION = 0x0
_FIN = 0x80
_RESERVED = 0x70
_MASKED = 0x80
_KNOWN = (_CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG)
_MOST_CONTROL_BYTES = 125
# The hub says little: a hello, and why it closes.
_MOST_MESSAGE_BYTES = 1 << 16
_MOST_PIECES = 1000
_UNIQUE = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class ProtocolError(Exception):
    """What came is no WebSocket."""


def new_key():
    return binascii.b2a_base64(os.urandom(16)).strip().decode("ascii")


def accepted(key):
    """What a server answers to a key when it really speaks WebSocket."""
    try:
        # hashlib would load all of OpenSSL, 4 MB. This is the same function, and private: where it is missing
        # there is still hashlib.
        from _sha1 import sha1
    except ImportError:
        from hashlib import sha1
    digest = sha1(key.encode("ascii") + _UNIQUE).digest()  # noqa: S324 - the protocol says so, nothing is kept secret by it
    return binascii.b2a_base64(digest).strip().decode("ascii")


def frame(kind, payload):
    """A whole message as one frame, masked as a client must."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", _FIN | kind, _MASKED | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", _FIN | kind, _MASKED | 126, size)
    else:
        head = struct.pack("!BBQ", _FIN | kind, _MASKED | 127, size)
    mask = os.urandom(4)
    return head + mask + _masked(payload, mask)


def close_frame(code):
    return frame(CLOSE, struct.pack("!H", code))


def _masked(payload, mask):
    # As one large number: byte by byte would take a hundred times as long.
    size = len(payload)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(pattern, "little")).to_bytes(size, "little")


def closing(payload):
    """What a closing frame says: (code, words)."""
    if len(payload) < 2:
        return 1005, ""
    return struct.unpack_from("!H", payload)[0], payload[2:].decode("utf-8", "replace")


class Frames:
    """Takes the server's bytes as they come, gives its messages."""

    def __init__(self, most_bytes=_MOST_MESSAGE_BYTES):
        self._most = most_bytes
        self._received = bytearray()
        self._kind = None
        self._parts = bytearray()
        self._pieces = 0

    def feed(self, data):
        """Yield (kind, payload) of each message that is complete now; control frames may come amid another message.

        One at a time: as a list, a megabyte of the smallest frames would take a hundred.
        """
        self._received += data
        while True:
            one = self._frame()
            if one is None:
                return
            message = self._message(*one)
            if message is not None:
                yield message

    def _frame(self):
        """The next frame as (first byte, payload), None while it is not all there."""
        received = self._received
        if len(received) < 2:
            return None
        first, size = received[0], received[1]
        kind = first & 0x0F
        if first & _RESERVED or kind not in _KNOWN:
            raise ProtocolError("a frame of an unknown kind (0x%02x)" % first)
        if size & _MASKED:
            raise ProtocolError("a masked frame")
        if kind >= CLOSE and (size > _MOST_CONTROL_BYTES or not first & _FIN):
            raise ProtocolError("a control frame that is too long or in parts")
        start = 2
        if size > 125:
            start, layout = (4, "!H") if size == 126 else (10, "!Q")
            if len(received) < start:
                return None
            size = struct.unpack_from(layout, received, 2)[0]
        if size + len(self._parts) > self._most:
            raise ProtocolError("a message of more than %d bytes" % self._most)
        if len(received) < start + size:
            return None
        payload = bytes(received[start : start + size])
        del received[: start + size]
        return first, payload

    def _message(self, first, payload):
        kind = first & 0x0F
        if kind >= CLOSE:
            return kind, payload
        if (kind == _CONTINUATION) != (self._kind is not None):
            raise ProtocolError("a message that begins before the last one ended, or goes on without a beginning")
        if kind != _CONTINUATION:
            self._kind = kind
        self._parts += payload
        self._pieces += 1
        if self._pieces > _MOST_PIECES:
            raise ProtocolError("a message in more than %d parts" % _MOST_PIECES)
        if not first & _FIN:
            return None
        self._pieces = 0
        message = (self._kind, bytes(self._parts))
        self._kind = None
        self._parts = bytearray()
        return message
