"""The supervisor: back-off, deadlines, bad nodes that delay no other, and nodes that come and go."""

import asyncio
import json
import sys
from itertools import pairwise

import msgspec
import pytest
import uvloop

from gpulse.errors import NodeLost
from gpulse.transport import local
from gpulse.transport.feed import Feed
from gpulse.transport.local import LocalTarget
from gpulse.transport.supervisor import Pace, Supervisor
from tests import undisturbed
from tests.patience import PATIENCE_SECONDS
from tests.transport.recorder import Recorder

PACE = Pace(first_pause_seconds=0.1, longest_pause_seconds=0.4, good_seconds=0.5, silence_seconds=0.5, spread_seconds=0)


LONG_LINE = b"{%b}" % (b" " * (2 << 20))


class Fake(msgspec.Struct, frozen=True):
    name: str
    kind: str = "good"
    interval_seconds: float = 0.05


async def good(target: Fake, feed: Feed) -> None:
    while True:
        feed.line(json.dumps({"node": target.name}).encode())
        await asyncio.sleep(target.interval_seconds)


async def refusing(_target: Fake, _feed: Feed) -> None:
    raise NodeLost("nobody is there", "look")


async def hanging(_target: Fake, feed: Feed) -> None:
    feed.within(0.3, NodeLost("the login hangs"))
    await asyncio.sleep(3600)


async def falling_silent(_target: Fake, feed: Feed) -> None:
    feed.line(b"{}")
    await asyncio.sleep(3600)


async def garbage(_target: Fake, feed: Feed) -> None:
    while True:
        feed.line(b"rubbish")
        await asyncio.sleep(0)


async def flooding(_target: Fake, feed: Feed) -> None:
    while True:
        feed.line(b"{}")


async def stuffing(_target: Fake, feed: Feed) -> None:
    while True:
        feed.line(LONG_LINE)
        await asyncio.sleep(0.01)


async def broken(_target: Fake, _feed: Feed) -> None:
    raise ZeroDivisionError("a mistake of ours")


async def ending(_target: Fake, feed: Feed) -> None:
    feed.line(b"{}")


WAYS = {
    way.__name__: way for way in (good, refusing, hanging, falling_silent, garbage, flooding, stuffing, broken, ending)
}


async def by_kind(target: Fake, feed: Feed) -> None:
    await WAYS[target.kind](target, feed)


def supervise(*targets: Fake, seconds: float, pace: Pace = PACE) -> Recorder:
    async def run() -> Recorder:
        recorder = Recorder(asyncio.get_running_loop().time)
        supervisor = Supervisor(recorder, {Fake: by_kind}, pace)
        supervisor.set_targets(targets)
        await asyncio.sleep(seconds)
        await supervisor.stop()
        assert len(asyncio.all_tasks()) == 1
        return recorder

    return undisturbed.run(run())


def test_failures_are_retried_less_and_less_often():
    seen = supervise(Fake("n", "refusing"), seconds=1.6)
    # After 0.1, 0.2, 0.4 and again 0.4 s, a quarter more or less.
    assert 4 <= len(seen.downs["n"]) <= 7
    assert set(seen.downs["n"]) == {"nobody is there; look"}


def test_the_pause_is_short_again_after_good_data():
    supervisor = Supervisor(Recorder(), {}, PACE)
    pauses = [0.0]
    for _ in range(4):
        pauses.append(supervisor._next_pause(pauses[-1], lasted=0.0))
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.4]
    assert supervisor._next_pause(0.4, lasted=0.49) == 0.4
    assert supervisor._next_pause(0.4, lasted=0.5) == 0.1


def test_every_kind_of_trouble_has_its_words():
    kinds = ["hanging", "falling_silent", "garbage", "flooding", "stuffing", "broken", "ending"]
    seen = supervise(*(Fake(kind, kind) for kind in kinds), seconds=0.9)
    reasons = {kind: seen.downs[kind][0] for kind in kinds}
    assert reasons["hanging"] == "the login hangs"
    assert reasons["falling_silent"].startswith("it has been silent for 0.5 s: the connection is dropped")
    assert reasons["garbage"].startswith("its last 5 lines cannot be read: no JSON")
    assert reasons["flooding"].startswith("it sends more than 65 lines a second")
    assert reasons["stuffing"].startswith("it sends more than 8 MB a second")
    assert reasons["broken"] == "a fault of gpulse: ZeroDivisionError: a mistake of ours"
    assert reasons["ending"] == "its stream ended"


def test_bad_nodes_delay_no_good_one():
    # Each of those that stuff sends 8 MB before it is cut off, which has to be read.
    bad = [
        Fake(f"{kind}{number}", kind)
        for kind in WAYS
        if kind != "good"
        for number in range(4 if kind == "stuffing" else 40)
    ]
    seen = supervise(*bad, *(Fake(f"good{number}") for number in range(5)), seconds=2.0)
    assert all(len(seen.downs[target.name]) > 1 for target in bad)
    for number in range(5):
        times = seen.times[f"good{number}"]
        assert len(times) > 25
        # Their interval is 0.05 s.
        assert max(after - before for before, after in pairwise(times)) < 0.25


def test_a_hundred_nodes_flap():
    async def run():
        recorder = Recorder()
        supervisor = Supervisor(recorder, {Fake: by_kind}, PACE)
        steady = Fake("steady")
        for turn in range(20):
            flapping = [Fake(f"n{number}", "good" if (number + turn) % 2 else "ending") for number in range(100)]
            supervisor.set_targets([steady, *flapping])
            await asyncio.sleep(0.05)
        supervisor.set_targets([steady])
        await asyncio.sleep(0.1)
        tasks = len(asyncio.all_tasks())
        await supervisor.stop()
        return recorder, tasks

    seen, tasks = undisturbed.run(run())
    # This one and the steady node's: nothing leaks.
    assert tasks == 2
    assert len(seen.times["steady"]) > 12
    assert seen.downs["steady"] == []


def test_unchanged_targets_keep_their_connection():
    async def run():
        begun = []

        async def counting(target, feed):
            begun.append(target)
            await good(target, feed)

        supervisor = Supervisor(Recorder(), {Fake: counting}, PACE)
        for targets in ([Fake("a")], [Fake("a"), Fake("b")], [Fake("a", interval_seconds=0.1), Fake("b")]):
            supervisor.set_targets(targets)
            await asyncio.sleep(0.05)
        await supervisor.stop()
        return begun

    assert undisturbed.run(run()) == [Fake("a"), Fake("b"), Fake("a", interval_seconds=0.1)]


def test_stop_does_not_wait_for_a_way_that_will_not_end():
    async def stubborn(_target, _feed):
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if released.is_set():
                    raise

    async def run():
        supervisor = Supervisor(Recorder(), {Fake: stubborn}, Pace(stop_seconds=0.2))
        supervisor.set_targets([Fake("a")])
        await asyncio.sleep(0.05)
        began = asyncio.get_running_loop().time()
        await supervisor.stop()
        released.set()
        return asyncio.get_running_loop().time() - began

    released = asyncio.Event()
    assert undisturbed.run(run()) < 1


def test_this_machine(fake, monkeypatch):
    for name, value in fake.environment().items():
        monkeypatch.setenv(name, value)
    fake.describe("gpu\nname NVIDIA H100 80GB HBM3\n")

    async def run():
        recorder = Recorder()
        supervisor = Supervisor(recorder, {LocalTarget: local.stream})
        supervisor.set_targets([LocalTarget("here", 0.2)])
        await recorder.until(lambda: len(recorder.lines["here"]) >= 3)
        await supervisor.stop()
        return recorder

    seen = asyncio.run(run())
    assert [gpu["name"] for gpu in seen.lines["here"][0]["gpus"]] == ["NVIDIA H100 80GB HBM3"]
    assert seen.lines["here"][0]["node"] == "here"
    assert seen.downs == {}


def test_this_machine_is_not_read_by_what_lies_in_the_folder(monkeypatch, tmp_path):
    for name in ("gpulse_probe", "json", "struct"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else was imported')\n")
    monkeypatch.chdir(tmp_path)

    async def run():
        recorder = Recorder()
        supervisor = Supervisor(recorder, {LocalTarget: local.stream})
        supervisor.set_targets([LocalTarget("here", 0.2)])
        await recorder.until(lambda: recorder.lines["here"] or recorder.downs["here"], PATIENCE_SECONDS)
        await supervisor.stop()
        return recorder

    assert asyncio.run(run()).downs["here"] == []


def test_this_machine_with_a_probe_that_cannot_start(monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))

    async def run():
        recorder = Recorder()
        supervisor = Supervisor(recorder, {LocalTarget: local.stream}, PACE)
        supervisor.set_targets([LocalTarget("here", 0.2)])
        await recorder.until(lambda: recorder.downs["here"])
        await supervisor.stop()
        return recorder.downs["here"][0]

    assert asyncio.run(run()) == "its probe ended with code 3: it is broken; run: gpulse probe --pretty"


@pytest.mark.parametrize("stream", ["1", "2"], ids=["stdout", "stderr"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_this_machine_with_a_probe_that_floods(monkeypatch, tmp_path, stream, loop):
    flooding = tmp_path / "python"
    flooding.write_text(f"#!/bin/sh\nexec yes '' >&{stream}\n")
    flooding.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(flooding))

    async def run():
        recorder = Recorder()
        supervisor = Supervisor(recorder, {LocalTarget: local.stream}, PACE)
        supervisor.set_targets([LocalTarget("here", 0.2)])
        # Twice: what floods is ended before it is started again.
        await recorder.until(lambda: len(recorder.downs["here"]) >= 2, PATIENCE_SECONDS)
        await supervisor.stop()
        return recorder.downs["here"][0]

    with asyncio.Runner(loop_factory=loop) as runner:
        told = runner.run(run())
    assert ("floods stderr" if stream == "2" else "cannot be read") in told
