"""gpulse logs, as people run it."""

import json
import signal
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from gpulse.cli.logs import added
from gpulse.fleet.views import LogEntry
from tests.cli.hub import GPULSE, env, gpulse, listing
from tests.patience import PATIENCE_SECONDS

ENTRIES = [
    {"time": 1_700_000_000.0, "message": "connecting to gpu01:22"},
    {"time": 1_700_000_001.5, "message": "up\x07"},
]


def test_the_log_of_a_node(hub):
    hub.answers["/nodes/gpu01/log"] = listing(*ENTRIES[::-1])
    done = gpulse("logs", "gpu01", hub=hub.url, TZ="UTC")
    assert done.stdout.splitlines() == ["2023-11-14 22:13:20  connecting to gpu01:22", "2023-11-14 22:13:21  up\\x07"]
    assert json.loads(gpulse("logs", "gpu01", "--json", hub=hub.url).stdout) == listing(*ENTRIES[::-1])


def test_an_unknown_node_and_those_like_it(hub):
    hub.refuse("/nodes/gpu1/log", 404, "unknown_node", 'there is no node "gpu1"', "did you mean gpu01 or gpu02?")
    hub.refuse("/nodes/tape/log", 404, "unknown_node", 'there is no node "tape"', "`gpulse nodes` lists them")
    done = gpulse("logs", "gpu1", hub=hub.url)
    assert (done.returncode, done.stderr) == (2, 'gpulse: there is no node "gpu1"; did you mean gpu01 or gpu02?\n')
    assert gpulse("logs", "tape", hub=hub.url).stderr == 'gpulse: there is no node "tape"; `gpulse nodes` lists them\n'


def test_follow_goes_on_with_what_comes(hub):
    hub.answers["/nodes/a%2Fb/log"] = listing(*ENTRIES[:1])
    with subprocess.Popen(
        [*GPULSE, "logs", "a/b", "--follow"], stdout=subprocess.PIPE, text=True, encoding="utf-8", env=env(hub.url)
    ) as process:
        assert process.stdout.readline().endswith("connecting to gpu01:22\n")
        hub.answers["/nodes/a%2Fb/log"] = listing(*ENTRIES[::-1])
        assert process.stdout.readline().endswith("up\\x07\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 12), st.lists(st.integers(0, 3), max_size=4))
def test_nothing_new_is_left_out(before, dropped, fresh):
    """Lines may repeat, so that some may be taken for seen; never more than could be."""
    old = [LogEntry(time=number, message=f"line {number}") for number in range(len(before))]
    new = [LogEntry(time=100 + number, message=f"new {value}") for number, value in enumerate(fresh)]
    assert added(old, old[dropped:] + new) == new
