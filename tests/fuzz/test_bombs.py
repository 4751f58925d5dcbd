"""Lines that are small on the wire and huge in memory or time: refused in words, or taken for what they cost."""

import time
import tracemalloc

import msgspec
import pytest

from gpulse.errors import BadLine
from gpulse.fleet.frames import Frames
from gpulse.fleet.gpustat import to_line
from gpulse.fleet.late import Late
from tests.fuzz.looking import Looking

# What a node may send at once.
MIB = 1 << 20
# Other nodes wait for no longer than that; on a busy machine the clock of the process is the fairer one.
LONGEST_SECONDS = 0.1
MOST_MEMORY = 40 * MIB
_HEAD = b'{"schema":1,"node":"x","time":1000.0,"seq":0,'
_UPDATE = b'{"update":0,"seq":1,"time":1001.0,'


def _many(start: bytes, one: bytes, end: bytes = b"]}") -> bytes:
    """As many as fit."""
    count = (MIB - len(start) - len(end) - 10) // (len(one) + 1)
    return start + b",".join([one] * count) + end


def _deep(start: bytes, opening: bytes, closing: bytes = b"") -> bytes:
    return start + opening * 100_000 + closing * 100_000 + b"}"


NAME = _HEAD + b'"gpus":[{"name":"' + b"a" * (MIB - 100) + b'"}]}'
REFUSED = {
    "a million GPUs": _HEAD + b'"gpus":[' + b"{}," * 999_999 + b"{}]}",
    "GPUs": _many(_HEAD + b'"gpus":[', b"{}"),
    "GPUs that are just believed to be records": _HEAD + b'"gpus":[' + b"{}," * 19_000 + b"{}]}",
    "processes": _many(_HEAD + b'"processes":[', b"{}"),
    "uses": _many(_HEAD + b'"processes":[{"gpus":[', b"{}", b"]}]}"),
    "disks": _many(_HEAD + b'"host":{"disks":[', b"{}", b"]}}"),
    "reports": _many(_HEAD + b'"reports":[', b"{}"),
    "reports of an update": _many(_UPDATE + b'"reports":[', b"{}"),
    "lists in lists": b"[" * 100_000,
    "lists in lists, closed": b"[" * 100_000 + b"]" * 100_000,
    "objects in objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "lists below a name nobody knows": _deep(_HEAD + b'"a":', b"[", b"]"),
    "objects below it": _deep(_HEAD + b'"a":', b'{"a":'),
    "lists in an update": _deep(_UPDATE + b'"a":', b"[", b"]"),
    "lists in a column": _deep(_UPDATE + b'"host":{"disks":', b"[", b"]"),
    "lists for GPUs": _deep(_HEAD + b'"gpus":', b"[", b"]"),
    "beyond floats": _HEAD + b'"gpus":[{"power_watts":1e999}]}',
    "a number of a megabyte": _HEAD + b'"gpus":[{"index":' + b"9" * (MIB - 100) + b"}]}",
    "a fraction of a megabyte": _HEAD + b'"gpus":[{"power_watts":0.' + b"9" * (MIB - 100) + b"e999}]}",
    "not a number": _HEAD + b'"gpus":[{"power_watts":NaN}]}',
    "infinity": _HEAD + b'"gpus":[{"power_watts":-Infinity}]}',
    "half a pair": _HEAD + b'"gpus":[{"name":"\\ud800"}]}',
    "half a pair in a column": _UPDATE + b'"processes":{"cgroup":["\\ud800","a"]}}',
    "a zero byte": _HEAD + b'"gpus":[{"name":"\0"}]}',
    "zero bytes": bytes(MIB),
    "no UTF-8": _HEAD + b'"gpus":[{"name":"\xff"}]}',
    "a newer schema": b'{"schema":99,"node":"x","time":1.0,"seq":0}',
    "columns nobody knows": _UPDATE + b'"gpus":{' + b",".join(b'"%d":1' % name for name in range(90_000)) + b"}}",
    "the same column again and again": _many(_UPDATE + b'"gpus":{', b'"fan_ratio":[1,1]', b"}}"),
    "figures of GPUs that are not there": _many(_UPDATE + b'"gpus":{"power_watts":[', b"1.5", b"]}}"),
}
TAKEN = {
    "the same name again and again": _many(_HEAD + b'"gpus":[],', b'"seq":0', b"}"),
    "a text of a megabyte": _HEAD + b'"gpus":[{"serial":"' + b"a" * (MIB - 100) + b'"}]}',
    "a name of a megabyte": NAME,
    "a UUID of a megabyte": NAME.replace(b"name", b"uuid"),
    "a user of a megabyte": _HEAD + b'"processes":[{"pid":1,"user":"' + b"a" * (MIB - 100) + b'","gpus":[{}]}]}',
    "a zero in a text": _HEAD + b'"gpus":[{"name":"\\u0000"}]}',
    "texts": _many(_HEAD + b'"gpus":[{"throttle_reasons":[', b'"a"', b"]}]}"),
    "numbers": _many(_HEAD + b'"processes":[{"children":[', b"9999", b"]}]}"),
    "a column that is too long": _many(_UPDATE + b'"gpus":{"fan_ratio":[', b"0.5", b"]}}"),
    "a column of lists": _many(_UPDATE + b'"processes":{"children":[', b"[]", b"]}}"),
    "columns nobody knows": _UPDATE + b'"gpus":{' + b",".join(b'"%d":1' % name for name in range(19_000)) + b"}}",
    "a column of texts": _many(_UPDATE + b'"processes":{"cgroup":[', b'"a"', b"]}}"),
    "no UTF-8 in a column": _UPDATE + b'"processes":{"cgroup":["\xff","a"]}}',
    "no UTF-8 in a name": _UPDATE + b'"processes":{"\xff":["a","a"]}}',
    "addresses": _many(_UPDATE + b'"host":{"networks":[{"addresses":[', b'"a"', b"]}]}}"),
}


@pytest.fixture
def looking():
    return Looking()


def _cost(what, *arguments):
    """Processor time, undisturbed by others on the machine, and the most memory it took meanwhile."""
    seconds = _seconds(what, *arguments)
    # The machine itself may be slow for a while.
    for _ in range(19):
        if seconds < LONGEST_SECONDS:
            break
        seconds = min(seconds, _seconds(what, *arguments))
    tracemalloc.start()
    what(*arguments)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, memory


def _seconds(what, *arguments):
    started = time.process_time()
    what(*arguments)
    return time.process_time() - started


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_refused(looking, line):
    seconds, memory = _cost(lambda: looking.take(line))
    assert not looking.take(line)
    assert seconds < LONGEST_SECONDS
    assert memory < MOST_MEMORY
    looking.look()
    looking.recover()


@pytest.mark.parametrize("line", TAKEN.values(), ids=TAKEN)
def test_taken(looking, line):
    assert looking.take(line)
    seconds, memory = _cost(lambda: looking.take(line))
    assert seconds < LONGEST_SECONDS
    assert memory < MOST_MEMORY
    # A node at a time is read, and then others have their turn.
    seconds, memory = _cost(lambda: looking.fleet.node("x", detail=True))
    assert seconds < LONGEST_SECONDS
    assert memory < MOST_MEMORY
    looking.look()
    looking.recover()


def test_nobody_is_told_a_name_of_a_megabyte(looking):
    assert looking.take(NAME)
    looking.fleet.tick()
    frames = Frames(looking.fleet)
    frames.step(1000.0)
    assert len(frames.full()) < 10_000
    assert len(msgspec.json.encode(looking.fleet.gpus())) < 10_000
    assert sum(map(len, looking.fleet.models.names)) < 1000


def test_nothing_is_left_of_what_was_refused(looking):
    for line in REFUSED.values():
        looking.take(line)
    tracemalloc.start()
    for _ in range(5):
        for line in REFUSED.values():
            looking.take(line)
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < MIB


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_late_lines(line):
    late = Late("x")

    def take():
        try:
            late.take(line)
        except BadLine as refused:
            assert str(refused)

    seconds, memory = _cost(take)
    assert seconds < LONGEST_SECONDS
    assert memory < MOST_MEMORY


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_gpustat(line):
    def take():
        try:
            to_line(line, "x")
        except BadLine as refused:
            assert str(refused)

    seconds, memory = _cost(take)
    assert seconds < LONGEST_SECONDS
    assert memory < MOST_MEMORY
