"""A small HTTP/1.1 server without threads: a select loop in which everybody has a deadline and a bound."""

import errno
import json
import select
import socket
import time
from collections import namedtuple

from gpulse_probe.request_parser import BadRequest, RequestParser

MOST_CONNECTIONS = 32
# A request must be there as a whole so soon after its first byte, and a new connection must ask something.
REQUEST_SECONDS = 10.0
ANSWER_SECONDS = 30.0
# Longer than hubs mostly wait between two questions.
IDLE_SECONDS = 120.0
# A client that sent more than we read would lose our answer if we closed at once.
LINGER_SECONDS = 2.0
_PIECE = 16 << 10
# No connection can be taken now, for want of descriptors or memory: waiting helps, trying at once does not.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_EXHAUSTED_SECONDS = 1.0

REASONS = {
    200: "OK",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    505: "HTTP Version Not Supported",
}

# headers: a list of names and values. trusted: whoever asked has shown that they may.
Response = namedtuple("Response", "status body headers trusted")


def failure(status, code, message, detail="", headers=()):
    """An error in the form that the hub's have, too."""
    error = {"error": {"code": code, "message": message, "detail": detail}}
    body = json.dumps(error).encode("ascii")
    return Response(status, body, [("Content-Type", "application/json"), *headers], False)


class Server:
    def __init__(self, listener, answer, clock=time.monotonic):
        """answer(Request) gives a Response, at once."""
        self._listener = listener
        self._answer = answer
        self._clock = clock
        self._connections = []
        self._accept_at = 0.0
        listener.setblocking(False)

    def turn(self, seconds):
        """Wait so long at most, or for ever (None), until something comes or goes, and deal with it."""
        now = self._clock()
        ends = [connection.deadline for connection in self._connections]
        if now < self._accept_at:
            ends.append(self._accept_at)
        if seconds is not None:
            ends.append(now + seconds)
        readers = [connection for connection in self._connections if not connection.output]
        writers = [connection for connection in self._connections if connection.output]
        listeners = [self._listener] if now >= self._accept_at else []
        left = max(0.0, min(ends) - now) if ends else None
        readable, writable, _ = select.select(listeners + readers, writers, [], left)
        for ready in readable:
            if ready is self._listener:
                self._accept()
            elif ready in self._connections:
                # Otherwise it had to give way just now.
                self._receive(ready)
        for ready in writable:
            self._send(ready)
            self._go_on(ready)
        now = self._clock()
        for connection in [one for one in self._connections if one.deadline <= now]:
            self._close(connection)

    def close(self):
        self._listener.close()
        for connection in list(self._connections):
            self._close(connection)

    def _accept(self):
        try:
            accepted = self._listener.accept()[0]
        except OSError as error:
            # Otherwise the client has gone before it was taken.
            if error.errno in _EXHAUSTED:
                self._accept_at = self._clock() + _EXHAUSTED_SECONDS
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self._connections) >= MOST_CONNECTIONS:
            # Strangers who only hold a place give way first, so that they cannot keep the hub out.
            self._close(min(self._connections, key=lambda one: (one.trusted, one.since)))
        self._connections.append(Connection(accepted, self._clock()))

    def _receive(self, connection):
        try:
            data = connection.socket.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
        elif not connection.ended:
            if not connection.parser.begun:
                # Never later than it was: nobody holds a place by sending a little now and then.
                connection.deadline = min(connection.deadline, self._clock() + REQUEST_SECONDS)
            connection.parser.feed(data)
            self._go_on(connection)

    def _go_on(self, connection):
        """Answer what has been asked, one question after the other; the next once an answer is sent."""
        while not connection.output and not connection.ended:
            try:
                request = connection.parser.next()
            except BadRequest as bad:
                self._respond(connection, failure(bad.status, bad.code, bad.message), False, True)
                continue
            if request is None:
                return
            response = self._answer(request)
            connection.trusted = connection.trusted or response.trusted
            self._respond(connection, response, request.keep_alive, request.method != "HEAD")

    def _respond(self, connection, response, keep_alive, with_body):
        head = ["HTTP/1.1 %d %s" % (response.status, REASONS[response.status])]
        head += ["%s: %s" % pair for pair in response.headers]
        if response.status != 304:
            head.append("Content-Length: %d" % len(response.body))
        head.append("Connection: %s\r\n\r\n" % ("keep-alive" if keep_alive else "close"))
        data = "\r\n".join(head).encode("latin-1")
        connection.output = memoryview(data + response.body if with_body else data)
        connection.last = not keep_alive
        connection.deadline = self._clock() + ANSWER_SECONDS
        self._send(connection)

    def _send(self, connection):
        try:
            sent = connection.socket.send(connection.output)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(connection)
            return
        connection.output = connection.output[sent:]
        if connection.output:
            return
        now = connection.since = self._clock()
        if connection.last:
            self._linger(connection, now)
        else:
            # A request that came together with the last one has begun.
            connection.deadline = now + (REQUEST_SECONDS if connection.parser.begun else IDLE_SECONDS)

    def _linger(self, connection, now):
        connection.ended = True
        connection.deadline = now + LINGER_SECONDS
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)

    def _close(self, connection):
        connection.ended = True
        connection.output = memoryview(b"")
        connection.socket.close()
        if connection in self._connections:
            self._connections.remove(connection)


class Connection:
    """One client. It is read from, or written to where there is output; `ended`: nothing is answered any more."""

    def __init__(self, accepted, now):
        self.socket = accepted
        self.parser = RequestParser()
        self.output = memoryview(b"")
        self.last = False
        self.ended = False
        self.trusted = False
        self.since = now
        self.deadline = now + REQUEST_SECONDS

    def fileno(self):
        return self.socket.fileno()
