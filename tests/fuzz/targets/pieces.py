"""Bytes as a network may bring them: in one piece, byte by byte, or in pieces of some size."""

from collections.abc import Iterator


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
