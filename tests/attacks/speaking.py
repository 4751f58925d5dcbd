"""Speaks to a hub byte by byte, as no honest client would."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.patience import PATIENCE_SECONDS


def connected(url: str, seconds: float = PATIENCE_SECONDS) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname
    return socket.create_connection((parts.hostname, parts.port or 80), seconds)


def exchange(url: str, request: bytes, seconds: float = PATIENCE_SECONDS) -> bytes:
    """Send these bytes, and read until the hub ends the connection."""
    with connected(url, seconds) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def asked(url: str, target: str, *headers: str, method: str = "GET") -> bytes:
    """The raw answer to a request whose target and headers nobody has tidied up."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    return exchange(url, "\r\n".join(lines).encode("utf-8", "surrogateescape"))


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def head_of(answer: bytes) -> list[tuple[str, str]]:
    """Names in small letters, and values."""
    lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel does not tell")
