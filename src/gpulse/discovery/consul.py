"""Nodes of a service in Consul: GET /v1/health/service/NAME, held open by Consul until something changes."""

import asyncio
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import msgspec

import gpulse
from gpulse.clean_text import clean
from gpulse.config.files import read_bytes, reason
from gpulse.config.hosts import MOST_HOSTS, is_host
from gpulse.config.sections import ConsulTable
from gpulse.discovery.asking import Answer, Found
from gpulse.errors import DiscoveryError

# So long may an answer take beyond the time that Consul was allowed to hold it.
GRACE_SECONDS = 15.0
# 12,500 nodes with a few checks each, and the words of these, are some 50 MB.
MOST_BYTES = 128 * 1024 * 1024
_MOST_LETTERS = 100


class Consul:
    """What a table asks."""

    def __init__(self, table: ConsulTable) -> None:
        self._table = table
        # Consul's number for the state of the list; with it, an answer comes when there is another.
        self._index = 0
        query: list[tuple[str, str]] = [("tag", tag) for tag in table.tags()]
        if table.passing_only:
            query.append(("passing", "true"))
        if table.datacenter:
            query.append(("dc", table.datacenter))
        if table.namespace:
            query.append(("ns", table.namespace))
        self._query = query

    def __str__(self) -> str:
        return f"consul {self._table.url}: service {self._table.service}"

    async def ask(self, first: bool) -> Answer:
        index = 0 if first else self._index
        self._index = 0
        query = list(self._query)
        # Consul adds a sixteenth to the time, so that not all who wait come at once.
        seconds = GRACE_SECONDS
        if index:
            query += [("index", str(index)), ("wait", f"{self._table.wait_seconds * 1000:.0f}ms")]
            seconds += self._table.wait_seconds * 17 / 16
        try:
            async with asyncio.timeout(seconds):
                headers, body = await self._fetch(query, seconds)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise DiscoveryError("it does not answer in time") from error
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            raise DiscoveryError(_reason(error)) from error
        if headers.get("X-Consul-KnownLeader") == "false":
            raise DiscoveryError("the Consul cluster has no leader, so its list may be old or empty")
        problems: list[str] = []
        found = decode(body, problems)
        if headers.get("X-Consul-Results-Filtered-By-ACLs") == "true":
            hidden = "the token may not see all of its nodes; let its policy read this service and these nodes"
            if not found:
                raise DiscoveryError(hidden)
            problems.append(hidden)
        self._index = _next_index(headers.get("X-Consul-Index"), index)
        return Answer(found, self._table.refresh_seconds, problems)

    async def _fetch(self, query: list[tuple[str, str]], seconds: float) -> tuple[httpx.Headers, bytes]:
        url = f"{self._table.url.rstrip('/')}/v1/health/service/{quote(self._table.service, safe='')}"
        # What the answer unpacks to could not be bounded: so it comes as it is.
        headers = {"User-Agent": f"gpulse/{gpulse.__version__}", "Accept-Encoding": "identity"}
        if self._table.acl_token_file:
            headers["X-Consul-Token"] = _token(self._table.acl_token_file)
        async with (
            httpx.AsyncClient(verify=self._certificates(), trust_env=False, timeout=seconds) as client,
            client.stream("GET", url, params=tuple(query), headers=headers) as response,
        ):
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > MOST_BYTES:
                    raise DiscoveryError(f"its answer is larger than {MOST_BYTES} bytes")
            if response.status_code != 200:
                raise DiscoveryError(self._refusal(response.status_code, bytes(body[:1000])))
            return response.headers, bytes(body)

    def _certificates(self) -> ssl.SSLContext | bool:
        if not self._table.url.startswith("https:"):
            # Reading the system's certificates takes longer than the question.
            return False
        try:
            return ssl.create_default_context(cafile=self._table.ca_file)
        except OSError as error:
            raise DiscoveryError(f"ca_file {self._table.ca_file}: cannot be read: {reason(error)}") from error

    def _refusal(self, status: int, body: bytes) -> str:
        words = " ".join(body.decode("utf-8", "replace").split())
        said = f"it answers {status}" + (f": {_short(words)}" if words else "")
        if status not in (401, 403):
            return said
        file = self._table.acl_token_file
        return said + ("; look at the token in " + str(file) if file else "; it wants a token: set acl_token_file")


class _Node(msgspec.Struct, rename="pascal"):
    node: str
    address: str = ""
    meta: dict[str, str] | None = None


class _Service(msgspec.Struct, rename="pascal"):
    address: str = ""
    port: int = 0
    meta: dict[str, str] | None = None


class _Entry(msgspec.Struct, rename="pascal"):
    node: _Node
    service: _Service


_decoder = msgspec.json.Decoder(list[_Entry])


def decode(body: bytes, problems: list[str]) -> list[Found]:
    """The nodes of an answer, in an order that stays; DiscoveryError where it is no such answer.

    A node whose name or address cannot be one is left out and added to `problems`.
    """
    try:
        entries = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DiscoveryError(f"its answer is no list of a service's nodes: {_short(str(error))}") from error
    if len(entries) > MOST_HOSTS:
        raise DiscoveryError(f"it lists more than {MOST_HOSTS} nodes")
    return sorted(set(_found(entries, problems)), key=_order)


def _found(entries: list[_Entry], problems: list[str]) -> Iterator[Found]:
    for entry in entries:
        node, service = entry.node, entry.service
        host = service.address or node.address
        for text in (node.node, host):
            if not is_host(text):
                problems.append(f'"{_short(node.node)}" is left out: "{_short(text)}" is no host name')
                break
        else:
            port = service.port if 1 <= service.port <= 65535 else None
            yield Found(node.node, host, port, _meta(entry, "group"), _meta(entry, "rack"))


def _order(found: Found) -> tuple[str, str, int, str, str]:
    return found.name, found.host, found.port or 0, found.group or "", found.rack or ""


def _meta(entry: _Entry, key: str) -> str | None:
    """What the service says wins over what its node says."""
    text = (entry.service.meta or {}).get(key) or (entry.node.meta or {}).get(key) or ""
    return text if text.isprintable() and 0 < len(text) <= _MOST_LETTERS else None


def _next_index(given: str | None, asked: int) -> int:
    """0 where Consul has begun to count anew, or does not count: then it is asked for the list as it is."""
    if given is None or not (given.isascii() and given.isdigit()) or len(given) > 20:
        return 0
    index = int(given)
    return index if index >= asked else 0


def _token(path: Path) -> str:
    """Read for each question: tokens are exchanged while gpulse runs."""
    try:
        token = read_bytes(path).decode("ascii", "replace").strip()
    except OSError as error:
        raise DiscoveryError(f"acl_token_file {path}: cannot be read: {reason(error)}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise DiscoveryError(f"acl_token_file {path}: holds no token")
    return token


def _reason(error: Exception) -> str:
    """What went wrong, as the system says it: the library's own words hide it."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}; set ca_file"
        if isinstance(cause, OSError) and cause.strerror:
            # asyncio puts an address into the place of the words; TLS and name servers number their errors otherwise.
            number = 0 if isinstance(cause, ssl.SSLError) else cause.errno or 0
            return f"cannot be reached: {os.strerror(number) if number > 0 else cause.strerror}"
    words = _short(str(error)) or type(error).__name__
    return f"its answer broke off: {words}" if isinstance(error, httpx.RemoteProtocolError) else words


def _short(text: str) -> str:
    """On one line, and not for ever: an answer may hold anything."""
    shown = clean(text)
    return shown if len(shown) <= _MOST_LETTERS else shown[: _MOST_LETTERS - 1] + "…"
