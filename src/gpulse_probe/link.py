"""Bytes to and from the hub: a socket that never waits, with TLS where the hub has it."""

import errno
import fcntl
import json
import os
import socket
import struct
import termios
import time

from gpulse_probe.errand import Errand, ErrandFailed
from gpulse_probe.trust import SYSTEM

LOOK_UP_SECONDS = 20.0
CONNECT_SECONDS = 10.0
# What the kernel takes is out of our hands: with little there, a hub that does not read is noticed soon.
_KERNEL_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_MOST_READS = 16
_CLOSED = "the connection was closed"
_NOT_NOW = (errno.EINPROGRESS, errno.EALREADY, errno.EAGAIN, errno.EINTR)


class Lost(Exception):
    """There is no connection, or no more; the message says why."""


class Distrusted(Lost):
    """The other end is not the hub it should be: somebody has to look into it, so there is no point in hurry."""


class Link:
    """queued: all bytes ever given to the socket. ended: whether nothing more will come, with the reason in words."""

    def __init__(self, hub, trust=SYSTEM):
        self.queued = 0
        self.ended = None
        # When open() must go on though nothing happened.
        self.due = None
        self._hub = hub
        self._trust = trust
        self._out = bytearray()
        self._errand = self._socket = self._tls = None
        self._connecting = self._deaf = False
        self._acknowledged = 0

    def open(self):
        """The way to an open link, as a generator: next() whenever something may have happened."""
        yield from self._connect((yield from self._addresses()))
        if self._hub.secure:
            yield from self._secure()

    def wants(self):
        """What to wait for: (readable, writable)."""
        if self._errand is not None:
            return [self._errand], []
        if self._socket is None:
            return [], []
        if self._connecting:
            return [], [self._socket]
        return [self._socket], [self._socket] if self._out and not self._deaf else []

    def write(self, data):
        """Send it, or as much as can be at once; pending tells what waits, so whoever writes keeps that small."""
        try:
            raw = self._tls.encrypt(data) if self._tls else data
        except Lost as failure:
            self.ended = self.ended or str(failure)
            return
        self._queue(raw)

    def _queue(self, raw):
        self._out += raw
        self.queued += len(raw)
        self.flush()

    def flush(self):
        while self._out and not self._deaf:
            try:
                del self._out[: self._socket.send(self._out)]
            except OSError as error:
                # What the hub said last may still be there to read, and so is the end.
                self._deaf = error.errno not in _NOT_NOW
                return

    @property
    def pending(self):
        return len(self._out)

    def read(self):
        """What has come, b"" where there is nothing."""
        raw = self._receive()
        if self._tls is None:
            return raw
        data, answer = self._tls.decrypt(raw)
        self._queue(answer)
        if self._tls.ended:
            self.ended = self.ended or _CLOSED
        return data

    def _receive(self):
        pieces = []
        while len(pieces) < _MOST_READS and self.ended is None:
            try:
                piece = self._socket.recv(_READ_BYTES)
            except OSError as error:
                if error.errno in _NOT_NOW:
                    break
                self.ended = os.strerror(error.errno)
                break
            if not piece:
                self.ended = _CLOSED
            pieces.append(piece)
        return b"".join(pieces)

    def acknowledged(self):
        """How many of the queued bytes have arrived at the other machine; also after the end."""
        if self._socket is not None and not self._connecting:
            waiting = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
            self._acknowledged = max(0, self.queued - len(self._out) - struct.unpack("=i", waiting)[0])
        return self._acknowledged

    def close(self):
        if self._errand is not None:
            self._errand.close()
        if self._socket is not None:
            self.acknowledged()
            self._socket.close()
        self._errand = self._socket = None

    def _addresses(self):
        host, port = self._hub.host, self._hub.port
        try:
            # As bytes, for which no tables of the world's letters are loaded.
            return socket.getaddrinfo(host.encode("ascii"), port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
        except socket.gaierror:
            # A name. Looking it up takes as long as the resolver likes.
            self._errand = Errand(lambda: _look_up(host, port), LOOK_UP_SECONDS)
        self.due = self._errand.due
        while True:
            try:
                answer = self._errand.result()
            except ErrandFailed as failure:
                self._errand = None
                raise Lost("%s: %s" % (host, failure))
            if answer is not None:
                self._errand = self.due = None
                return [(family, 0, 0, "", tuple(place)) for family, place in json.loads(answer.decode("ascii"))]
            yield

    def _connect(self, addresses):
        failure = "no address"
        for family, _type, _protocol, _name, place in addresses:
            try:
                self._socket = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                # A kernel without IPv6.
                failure = error.strerror
                continue
            self._connecting = True
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
            self.due = time.monotonic() + CONNECT_SECONDS
            code = self._socket.connect_ex(place)
            while code in _NOT_NOW:
                yield
                code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0 and not _is_connected(self._socket):
                    code = errno.EINPROGRESS if time.monotonic() < self.due else errno.ETIMEDOUT
            self.due = None
            if code == 0:
                self._connecting = False
                return
            failure = os.strerror(code)
            self._socket.close()
            self._socket = None
        raise Lost(failure)

    def _secure(self):
        # Not every hub is at https.
        from gpulse_probe.tls import Tls

        tls = Tls(self._hub.host, self._trust)
        self._queue(tls.shake(b""))
        while not tls.ready:
            yield
            self.flush()
            self._queue(tls.shake(self._receive()))
            if self.ended and not tls.ready:
                raise Lost(self.ended + " during the TLS handshake")
        self._tls = tls


def _look_up(host, port):
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        # UnicodeError: a label that is empty or too long.
        raise Lost(getattr(error, "strerror", None) or str(error))
    return json.dumps([[family, place] for family, _type, _protocol, _name, place in found]).encode("ascii")


def _is_connected(link):
    try:
        link.getpeername()
    except OSError:
        return False
    return True
