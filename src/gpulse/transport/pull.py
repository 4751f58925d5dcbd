"""A node whose agent answers over HTTP: it is asked every interval and tells what is new."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator

import httpx
import msgspec

from gpulse.errors import NodeLost
from gpulse.fleet.updates import UPDATE
from gpulse.transport.feed import Feed
from gpulse.transport.limits import LONGEST_INTERVAL_SECONDS
from gpulse.transport.snapshot_head import read_head
from gpulse.transport.stream import Lines

# The first answer may have to wait until the agent has read its cards.
FIRST_SECONDS = 30.0
# Below the silence that ends the attempt, because its words say more.
ANSWER_SECONDS = 8.0
LARGEST_ANSWER = 4 << 20
# A chunk of its own for every byte would take the hub minutes to read.
MOST_PIECES = 4096
# As many intervals of the agent's own may pass in silence.
_SILENCE_INTERVALS = 5.0
_LINES = "application/x-ndjson"
_START_ONE = "start one there: gpulse agent serve --host ADDRESS --token-file FILE"
_ANOTHER = "see that host and port are those of its gpulse agent"


class PullTarget(msgspec.Struct, frozen=True):
    """A node and where its agent listens."""

    name: str
    host: str
    token: str
    port: int = 7080
    tls: bool = False
    interval_seconds: float = 1.0

    def __repr__(self) -> str:
        """Without the token, which does not belong into logs."""
        return f"PullTarget({self.name!r}, {self.url!r})"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class Pull:
    """Each attempt has a client of its own: one for all would look through all connections at each question."""

    def __init__(self) -> None:
        self._certificates: ssl.SSLContext | None = None

    async def stream(self, target: PullTarget, feed: Feed) -> None:
        """Feed what the agent has, every interval on a fixed grid, until it cannot be asked."""
        feed.connecting(f"asking {target.url}")
        feed.within(FIRST_SECONDS + 1, _late(target, FIRST_SECONDS))
        async with httpx.AsyncClient(
            headers={b"Authorization": b"Bearer " + target.token.encode(), b"Accept-Encoding": b"identity"},
            # Each request has a deadline as a whole, which is more than httpx can set.
            timeout=None,  # noqa: S113 - see above
            trust_env=False,
            # Kept however long it is between two questions: httpx would let go of it after five seconds.
            limits=httpx.Limits(max_connections=1, keepalive_expiry=None),
            verify=self._verify(target),
        ) as client:
            asking = _Asking(client, target, feed)
            clock = asyncio.get_running_loop().time
            due = clock()
            while True:
                await asking.ask()
                now = clock()
                due += target.interval_seconds * max(1, -(-(now - due) // target.interval_seconds))
                await asyncio.sleep(due - now)

    def _verify(self, target: PullTarget) -> ssl.SSLContext | bool:
        if not target.tls:
            # Reading all certificates of the system for nothing takes longer than the first answer.
            return False
        if self._certificates is None:
            self._certificates = ssl.create_default_context()
        return self._certificates


class _Asking:
    """Knows what the agent told last."""

    def __init__(self, client: httpx.AsyncClient, target: PullTarget, feed: Feed) -> None:
        self._client = client
        self._target = target
        self._feed = feed
        self._base = "none"
        self._tag = ""
        self._answered = False

    async def ask(self) -> None:
        seconds = ANSWER_SECONDS if self._answered else FIRST_SECONDS
        try:
            async with asyncio.timeout(seconds):
                try:
                    body = await self._get()
                except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                    if not self._answered:
                        raise
                    # The agent may have been started anew, or has let go of a connection that was long quiet.
                    body = await self._get()
        except TimeoutError:
            raise _late(self._target, seconds) from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise _lost(self._target, problem) from problem
        self._answered = True
        Lines(self._line).feed(body if body.endswith(b"\n") or not body else body + b"\n")

    def _line(self, line: bytes) -> None:
        if not line.startswith(UPDATE):
            self._look_at(line)
        self._feed.line(line)

    async def _get(self) -> bytes:
        """What is new as lines; b"" where nothing is."""
        headers = {"If-None-Match": self._tag} if self._tag else {}
        url = f"{self._target.url}/snapshot?base={self._base}"
        async with self._client.stream("GET", url, headers=headers) as response:
            if response.status_code == 304:
                # Read to its end, which is here: a connection whose answer was left unread is not used again.
                await response.aread()
                return b""
            if response.status_code != 200:
                raise _refused(self._target, response)
            kind = response.headers.get("Content-Type", "")
            base = response.headers.get("X-Gpulse-Base", "")
            encoding = response.headers.get("Content-Encoding", "identity")
            if kind != _LINES or not base.replace("-", "").isalnum() or encoding != "identity":
                raise NodeLost(f"what answers at {self._target.url} is no gpulse agent", _ANOTHER, "port")
            body = bytearray()
            pieces = 0
            async for piece in response.aiter_raw():
                body += piece
                pieces += 1
                if pieces > MOST_PIECES:
                    raise NodeLost(
                        f"its answer comes in more than {MOST_PIECES:,} pieces", "look at its agent", "probe"
                    )
                if len(body) > LARGEST_ANSWER:
                    raise NodeLost(
                        f"its answer is larger than {LARGEST_ANSWER >> 20} MiB", "look at its agent", "probe"
                    )
        self._base = base
        self._tag = response.headers.get("ETag", "")
        return bytes(body)

    def _look_at(self, line: bytes) -> None:
        """A Snapshot tells by which name the agent goes, and how often it has something new."""
        try:
            head = read_head(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # The feed says what is wrong with it.
            return
        if head.node and head.node != self._target.name:
            self._feed.log(f"its agent calls itself {head.node:.100}")
        if head.interval_seconds:
            self._feed.allow_silence(_SILENCE_INTERVALS * min(head.interval_seconds, LONGEST_INTERVAL_SECONDS))


def _late(target: PullTarget, seconds: float) -> NodeLost:
    return NodeLost(
        f"{target.host} port {target.port} did not answer within {seconds:g} s",
        "see that the node is on, its agent runs and no firewall is between",
        "port",
    )


def _refused(target: PullTarget, response: httpx.Response) -> NodeLost:
    status = response.status_code
    if status in (401, 403):
        return NodeLost(
            f"its agent at {target.url} refuses the hub's token ({status})",
            "give the hub the token that the agent was started with (token_file)",
            "login",
        )
    if status == 404:
        return NodeLost(f"what answers at {target.url} is no gpulse agent (404)", _ANOTHER, "port")
    if 300 <= status < 400:
        return NodeLost(f"{target.url} sends the hub elsewhere ({status}), which it does not follow", _ANOTHER, "port")
    return NodeLost(f"its agent at {target.url} answers {status} {response.reason_phrase}".strip(), _ANOTHER, "probe")


def _lost(target: PullTarget, problem: Exception) -> NodeLost:
    where = f"{target.host} port {target.port}"
    if isinstance(problem, httpx.InvalidURL):
        return NodeLost(f"{target.host!r} is no host that can be asked", "check its spelling", "name")
    for cause in _causes(problem):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NodeLost(
                f"the certificate of {target.url} is not trusted: {cause.verify_message}",
                "let this machine trust its issuer, or give the host by the name in the certificate",
                "login",
            )
        if isinstance(cause, ssl.SSLError):
            return NodeLost(f"{where} does not speak TLS", "leave out tls, or put a TLS proxy before its agent", "port")
        if isinstance(cause, socket.gaierror):
            return NodeLost(f"the name {target.host} does not resolve: {cause.strerror}", "check its spelling", "name")
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return NodeLost(f"no agent listens on {where}", _START_ONE, "port")
        if isinstance(cause, OSError) and cause.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
            return NodeLost(f"there is no route to {where}", "see that the node is on", "port")
    if isinstance(problem, httpx.RemoteProtocolError):
        return NodeLost(f"what answers at {target.url} does not speak HTTP, or hung up", _ANOTHER, "port")
    return NodeLost(f"the connection to {where} was lost: {problem or type(problem).__name__}", _ANOTHER, "port")


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """What an exception comes from, as far as it is told."""
    while problem is not None:
        yield problem
        if isinstance(problem, BaseExceptionGroup):
            problem = problem.exceptions[0]
        else:
            problem = problem.__cause__ or problem.__context__
