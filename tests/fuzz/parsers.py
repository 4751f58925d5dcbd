"""Every parser of what people or nodes send: the fuzzed decoders, and those that are too small to be a target.

A new parser belongs here: test_linear.py shows that none of them takes more than time in proportion to its input.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.datastructures import Headers, QueryParams

from gpulse.api import cross_site, hosts_allowed, page_key
from gpulse.api.cookies import Cookies
from gpulse.api.history import HistoryQuery
from gpulse.api.ingest import _BEARER
from gpulse.api.media import choose
from gpulse.api.queries import read_query
from gpulse.api.security import as_origin
from gpulse.auth import account_names, secret_text
from gpulse.auth.proxy import _words
from gpulse.config.sizes import size
from gpulse.errors import GpulseError, RequestError
from gpulse.fleet.filter import parse as parse_filter
from gpulse.fleet.jobs import job_of
from gpulse.fleet.names import is_model, natural, short_model
from gpulse.fleet.node_sets import NodeSet
from gpulse.fleet.sizes import parse_size
from gpulse.reservations import comments, ical
from gpulse.reservations.comments_text import without_comments
from gpulse.reservations.dates import parse_moment, parse_span, parse_until
from gpulse.reservations.moving_in import plan
from gpulse.transport import explain
from gpulse_probe import masking, proc_pid
from gpulse_probe.collectors import cpu, disks, machine, memory
from gpulse_probe.nvidia_smi import document, failures
from tests.fuzz.targets import TARGETS

_NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
_SSH = explain.Place("gpu1", 22, "me")
_COOKIES = Cookies("0123456789ab", "", 1)
KIB = 1024


class Parser(NamedTuple):
    """Takes any bytes, and refuses what it cannot read."""

    read: Callable[[bytes], object]
    # What stands before and behind the text that is made longer: what it takes to get into the parser.
    around: Sequence[tuple[bytes, bytes]] = ((b"", b""),)
    # What is repeated, beside what is tried with every parser.
    units: Sequence[bytes] = ()
    # The largest input; less where a parser takes no more, or is fed byte by byte.
    most_bytes: int = 128 * KIB


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "surrogateescape"))


def _header(name: str, read: Callable[[Mapping[str, str]], object]) -> Callable[[bytes], object]:
    return lambda data: read(Headers({name: data.decode("latin-1")}))


def _import(data: bytes) -> None:
    entries = comments.read(comments.decode(data))
    plan(entries, {"gpu1": ["0", "1"], "gpu2.a": ["0"]}, (), _NOW, {})


def _banner(text: str) -> None:
    attempt = explain.Attempt(banner=text)
    explain.denied(_SSH, attempt)
    explain.hung_up(_SSH, attempt, text, logged_in=False)


def _stderr(text: str) -> None:
    for status in (1, 3, 127):
        explain.ended(status, None, text, "python3", _SSH)


def _target(name: str) -> Parser:
    module: Any = importlib.import_module(f"tests.fuzz.targets.{name}")
    words = [word.encode() if isinstance(word, str) else word for word in getattr(module, "WORDS", ())]
    seeds = [seed for seed in module.SEEDS if 0 < len(seed) < 2000]
    # Inside of each seed, too: a text that is never closed, a list that does not end.
    around = [(b"", b""), *((seed[: len(seed) // 2], seed[len(seed) // 2 :]) for seed in seeds[:2])]
    return Parser(module.fuzz, around, [*words, *seeds[:3]], _SMALLER.get(name, 128 * KIB))


# These targets also feed single bytes, or do much with what they read.
_SMALLER = {
    "hosts": 32 * KIB,
    "host_file": 32 * KIB,
    "ini_file": 32 * KIB,
    "node_names": 32 * KIB,
    "when": 32 * KIB,
    "dropped": 32 * KIB,
    "request": 32 * KIB,
    "websocket": 32 * KIB,
    "frames_in": 32 * KIB,
    "fleet_lines": 32 * KIB,
    "pushed": 32 * KIB,
}

PARSERS: dict[str, Parser] = {
    # The configuration is its owner's own file, and TOML is read by Python's library.
    **{f"decoder {name}": _target(name) for name in TARGETS if name != "config"},
    # People: filters, sets of nodes, sizes, models, dates, reservations of other monitors.
    "filter": Parser(_text(parse_filter), units=(b"node:a[1-9] ", b'"', b"-x ")),
    "set of nodes": Parser(
        _text(lambda text: NodeSet("nodes=", text)),
        ((b"", b""), (b"a[", b"]"), (b"a[1-", b"]")),
        (b"a,", b"[1]", b"1,", b"a[1-2],", b"!a", b"a1-"),
    ),
    "size in a filter": Parser(_text(parse_size), ((b"1", b"g"),)),
    "size in the configuration": Parser(_text(size), ((b"1", b"g"), (b" ", b" "))),
    "model": Parser(_text(lambda text: (short_model(text), is_model.__wrapped__(text, text, text)))),
    "node name": Parser(_text(natural), units=(b"1a", b"a1", b"00")),
    "moment": Parser(_text(lambda text: parse_moment(text, _NOW)), units=(b"1 ", b"1h ", b"1:", b"jan ", b"next ")),
    "end": Parser(_text(lambda text: parse_until(text, _NOW, _NOW)), units=(b"1 ", b"1h ", b"1d,", b"and ")),
    "span": Parser(_text(parse_span), units=(b"1h ", b"1h,", b"1.", b"a ")),
    "import": Parser(
        _import,
        (
            (b"", b""),
            (b'{"gpu1": {"0": {"name": "', b'"}}}'),
            (b'{"gpu1": [{"name":"a","date":"', b'"}]}'),
            (b"{", b"}"),
        ),
        (
            b"/*",
            b"/* x",
            b"/* */",
            b"//\n",
            b'\\"',
            b'"\\',
            b'"a": {}, ',
            b'"gpu1": [{"name": "a", "date": "2030-01-01"}],',
            b'{"name": 1, "name": 2},',
            b'"0": {"name": "a", "date": "2030-01-01"},',
        ),
    ),
    "comments of a file": Parser(_text(without_comments), units=(b"/*", b"/* ", b"/", b'"', b'\\"', b"/**/", b"//")),
    "calendar text": Parser(_text(ical._plain)),
    # Requests: headers, cookies, queries, secrets.
    "Accept": Parser(_text(lambda text: choose(text, ["text/plain", "application/json"])), units=(b"a/b;q=1,", b";q=")),
    "Cookie": Parser(_header("cookie", _COOKIES.read), units=(b"a=b;", b"gpulse_01234567", b'="')),
    "Host": Parser(_text(hosts_allowed.name_of), units=(b"[", b":", b"a.")),
    "Origin": Parser(_text(as_origin), ((b"", b""), (b"http://", b"")), (b"@", b":", b"[")),
    "cross-site": Parser(_header("origin", cross_site.is_own_site)),
    "page key": Parser(_header("sec-websocket-protocol", page_key.read), units=(b"a,", b", ")),
    "groups of a proxy": Parser(_text(lambda text: _words([text])), units=(b"a,", b"a;", b"a|")),
    "Authorization": Parser(_text(_BEARER.fullmatch), ((b"Bearer ", b""), (b"Bearer a", b" x"))),
    "query": Parser(
        lambda data: read_query(HistoryQuery, QueryParams(data.decode("latin-1"))),
        ((b"", b""), (b"nodes=", b"")),
        (b"a=1&", b"nodes=a&", b"%", b"%5B"),
        32 * KIB,
    ),
    "account name": Parser(_text(account_names.checked)),
    "folded name": Parser(_text(account_names.folded), units=("ﷺ".encode(), "ß".encode(), "é".encode())),
    "secret": Parser(_text(secret_text.read)),
    "text with secrets": Parser(_text(secret_text.without_secrets), units=(b"gpk_", b"gpk_012345678901_")),
    # Nodes: what logins, shells and drivers say.
    "login banner": Parser(_text(_banner), units=(b"\r\n", b"your account has expired ", b"Permission ")),
    "stderr": Parser(_text(_stderr), units=(b"\n", b"Traceback ", b"python3: not found\n", b"command not ")),
    "job": Parser(_text(job_of), units=(b"job_", b"job_1", b"/job")),
    "nvidia-smi's failures": Parser(
        _text(lambda text: (failures.plain(text), failures.failure(text), failures.warnings(text))),
        units=(b"unable to determine the device handle for gpu ", b"nvml library version: ", b"0"),
    ),
    "nvidia-smi's XML": Parser(
        document.read,
        ((b"", b""), (b"<nvidia_smi_log><gpu>", b"</gpu></nvidia_smi_log>")),
        (b"<gpu>", b"<gpu", b"<a>", b"<gpu></gpu>", b"&amp;", b"<!--", b"<![CDATA[", b"</gpu>", b"<process_info>"),
    ),
    # The probe's own: what programs on its machine write.
    "command line": Parser(
        proc_pid.parse_command,
        ((b"", b""), (b"curl\0-u\0", b"\0x"), (b"sh\0-c\0", b"")),
        (b"\0", b"a\0", b"--password\0", b"--token=", b"a=", b'"\\', b"'", b"https://u:p@", b"$(", b"-----BEGIN "),
    ),
    "masked words": Parser(
        _text(lambda text: masking.mask(text.split("\0"))), units=(b"\0", b"=", b"{", b"eyJ", b"sk-")
    ),
    "control group": Parser(proc_pid.parse_cgroup, ((b"", b""), (b"0::/", b"")), (b"0::/a\n", b"/job_1", b":")),
    "stat of a process": Parser(proc_pid.parse_stat, ((b"", b""), (b"1 (", b") S 1")), (b")", b"(", b"1 ")),
    "name of a program": Parser(_text(proc_pid.parse_name)),
    "os-release": Parser(_text(machine.parse_os_release), units=(b'NAME="', b"\\", b"NAME=a\n")),
    "mounts": Parser(disks.parse_mounts, units=(b"a b c d\n", b"\\040", b"\\")),
    "mountinfo": Parser(disks.parse_mountinfo, units=(b"1 2 3:4 / /a rw - ext4 x rw\n", b" - ")),
    "meminfo": Parser(memory.parse_meminfo, units=(b"MemTotal: 1 kB\n",)),
    "cpuinfo": Parser(cpu.parse_cpuinfo, units=(b"processor : 1\n\n", b"physical id : 1\n")),
    "list of CPUs": Parser(_text(cpu.parse_cpu_list), units=(b"1,", b"1-2,")),
}
REFUSALS = (GpulseError, RequestError, ValueError)
