"""Snapshots over HTTP for a hub that asks: only to those who know the token, and only while somebody asks."""

import binascii
import json
import os
import socket
import time

from gpulse_probe.get_status import get_status
from gpulse_probe.http_server import Response, Server, failure
from gpulse_probe.log import Log
from gpulse_probe.merging import merged
from gpulse_probe.options import UsageError

try:
    # What hmac.compare_digest is; hmac itself loads OpenSSL, which is 4 MB on every node.
    from _operator import _compare_digest as same
except ImportError:
    from hmac import compare_digest as same

HOST, PORT = "127.0.0.1", 7080
# So long after the last question the node is still read, as the next one is likely to come.
ASKED_SECONDS = 60.0
SHORTEST_TOKEN = 16
_LONGEST_TOKEN_FILE = 4096
_MAKE_ONE = (
    "make one with: (umask 077; head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \\n' > FILE), for --token-file FILE"
)
_UPDATE = b'{"update":'
_JSON = ("Content-Type", "application/json")
_LINES = ("Content-Type", "application/x-ndjson")
_NOT_KEPT = ("Cache-Control", "no-store")


class Newest:
    """The node's lines, taken every interval while somebody asks.

    A line is known by the name of this process and its number, such as 9f86d081884c7d65-17.
    """

    def __init__(self, next_line, interval, clock=time.monotonic):
        self._next_line = next_line
        self._interval = interval
        self._clock = clock
        self._instance = binascii.hexlify(os.urandom(8)).decode("ascii")
        self._number = -1
        self._due = None
        self._asked_at = None
        self.whole = None
        self.update = None
        # The names of the whole Snapshot and of the newest line.
        self.whole_name = self.name = ""

    def wait(self):
        """Seconds until the next line is due; None where nobody asks."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at > ASKED_SECONDS:
            self._due = None
            return None
        return max(0.0, self._due - now)

    def look(self):
        """Take the next line where it is due."""
        if self.wait() == 0.0:
            self._take()

    def asked(self):
        """Somebody asks: after a pause they get a line taken just now."""
        paused = self.wait() is None
        self._asked_at = self._clock()
        if paused:
            self._take()

    def _take(self):
        line = self._next_line()
        self._number += 1
        self.name = "%s-%d" % (self._instance, self._number)
        if line.startswith(_UPDATE):
            self.update = line
        else:
            self.whole, self.update, self.whole_name = line, None, self.name
        now = self._clock()
        due = now if self._due is None else self._due
        self._due = due + self._interval * max(1, -(-(now - due) // self._interval))


class Answers:
    """What is asked for, by path. An instance is called with a Request."""

    def __init__(self, newest, token):
        self._newest = newest
        self._token = token
        self._paths = {
            "/snapshot": ("GET", self._snapshot),
            "/get-status": ("POST", self._get_status),
            "/healthz": ("GET", self._health),
        }

    def __call__(self, request):
        if request.path not in self._paths:
            return failure(404, "not_found", "there is no %s here" % request.path[:100])
        method, answer = self._paths[request.path]
        if request.method != method:
            words = "%s takes %s only" % (request.path, method)
            return failure(405, "bad_method", words, headers=[("Allow", method)])
        return answer(request)

    def _health(self, _request):
        return Response(200, b'{"status": "ok"}\n', [_JSON, _NOT_KEPT], False)

    def _snapshot(self, request):
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        # Headers are bytes that were read as Latin-1.
        if kind.lower() != "bearer" or not same(token.strip().encode("latin-1"), self._token):
            words = "the token is not that of this agent" if token else "a token is needed"
            fix = "send the one the agent was started with, as Authorization: Bearer TOKEN"
            return failure(401, "no_token", words, fix, [("WWW-Authenticate", "Bearer")])
        newest = self._newest
        newest.asked()
        tag = '"%s"' % newest.name
        headers = [("ETag", tag), ("X-Gpulse-Base", newest.whole_name), _NOT_KEPT]
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", headers, True)
        base = request.query.get("base")
        if base is None:
            return Response(200, _encoded(merged(newest.whole, newest.update)), [_JSON, *headers], True)
        lines = [newest.whole, newest.update] if newest.update else [newest.whole]
        # Whoever has the whole Snapshot needs the update only.
        told = lines[-1:] if base == newest.whole_name else lines
        return Response(200, b"".join(line + b"\n" for line in told), [_LINES, *headers], True)

    def _get_status(self, request):
        try:
            given = json.loads(request.body.decode("utf-8"))["passwd"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return failure(400, "bad_body", 'the body is not {"passwd": "…"}')
        # JSON can have halves of characters, which no token has.
        if not isinstance(given, str) or not same(given.encode("utf-8", "replace"), self._token):
            return failure(403, "wrong_password", "the password is not this agent's token")
        self._newest.asked()
        status = get_status(merged(self._newest.whole, self._newest.update))
        return Response(200, _encoded(status), [_JSON, _NOT_KEPT], True)


def run(options, make_sampler):
    """Until KeyboardInterrupt; 1 where it cannot listen."""
    token = read_token(options.token_file)
    log = Log()
    host, port = options.host or HOST, PORT if options.port is None else options.port
    try:
        listener = _listener(host, port)
    except OSError as error:
        log.say("cannot listen on %s port %d: %s; see --host and --port" % (host, port, error.strerror or error))
        return 1
    newest = Newest(make_sampler(updates=True).line, options.interval)
    server = Server(listener, Answers(newest, token))
    address = listener.getsockname()
    log.say("listening on http://%s:%d" % ("[%s]" % address[0] if ":" in address[0] else address[0], address[1]))
    try:
        while True:
            server.turn(newest.wait())
            newest.look()
    finally:
        server.close()


def read_token(path):
    """The token of a file, else of GPULSE_TOKEN, as bytes; UsageError where there is none, or it is no good."""
    from gpulse_probe.agent import TOKEN_VARIABLE

    if path is None:
        where, token = TOKEN_VARIABLE, os.fsencode(os.environ.get(TOKEN_VARIABLE, "")).strip()
    else:
        where = path
        try:
            with open(path, "rb") as file:
                token = file.read(_LONGEST_TOKEN_FILE).strip()
        except OSError as error:
            raise UsageError("the token cannot be read from %s: %s; %s" % (path, error.strerror, _MAKE_ONE))
    if not token:
        raise UsageError("a token is needed in %s, so that not everybody can ask; %s" % (where, _MAKE_ONE))
    if len(token) < SHORTEST_TOKEN or len(token.split()) > 1:
        words = "the token in %s is not one word of %d characters or more" % (where, SHORTEST_TOKEN)
        raise UsageError("%s; %s" % (words, _MAKE_ONE))
    return token


def _listener(host, port):
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def _encoded(record):
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
