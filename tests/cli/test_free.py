"""gpulse free, as people and scripts run it."""

import json
import signal
import socket
import subprocess
import time

import pytest

from tests.cli.hub import GPULSE, env, gpu, gpulse
from tests.patience import PATIENCE_SECONDS

FOUND = {
    "found": True,
    "gpus": [gpu("gpu07", 2), gpu("gpu07", 3)],
    "explanation": "2 free on gpu07",
    "export": "CUDA_VISIBLE_DEVICES=2,3",
    "node": "gpu07",
}
MISSING = {"found": False, "gpus": [], "explanation": "1 of 2 free H100: gpu07:3", "export": None, "node": None}


def test_found(hub):
    hub.answers["/free"] = FOUND
    done = gpulse("free", "-n", "2", "--memory", "40GB", "--model", "H100", "--same-node", "group:a", hub=hub.url)
    assert done.stdout.splitlines() == [
        "NODE   GPU  MODEL     MEMORY GiB",
        "gpu07    2  H100 80G        80.0",
        "gpu07    3  H100 80G        80.0",
        "",
        "2 GPUs · 160.0 GiB",
        "on gpu07: CUDA_VISIBLE_DEVICES=2,3",
    ]
    assert (done.returncode, done.stderr) == (0, "")
    query = hub.asked[0][1]
    assert {name: query[name] for name in ("n", "memory", "model", "same_node", "q")} == {
        "n": "2",
        "memory": "40GB",
        "model": "H100",
        "same_node": "true",
        "q": "group:a",
    }


def test_not_found(hub):
    hub.answers["/free"] = MISSING
    done = gpulse("free", "-n", "2", "--model", "H100", hub=hub.url)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "1 of 2 free H100: gpu07:3\n")
    done = gpulse("free", "--json", hub=hub.url)
    assert (done.returncode, json.loads(done.stdout)) == (1, MISSING)


def test_an_error_is_neither(hub):
    hub.refuse("/free", 422, "bad_filter", 'there is no key "x"', "allowed are user:")
    done = gpulse("free", "x:y", hub=hub.url)
    assert (done.returncode, done.stderr) == (2, 'gpulse: there is no key "x"; allowed are user:\n')


def test_export_prefers_this_machine(hub):
    here = socket.gethostname().partition(".")[0]
    hub.answers["/free"] = lambda query: FOUND | {"node": here} if f"node:{here}" in query.get("q", "") else FOUND
    done = gpulse("free", "-n", "2", "--export", hub=hub.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "export CUDA_VISIBLE_DEVICES=2,3\n", "")
    assert hub.asked[0][1]["same_node"] == "true"


def test_export_names_another_node_on_stderr(hub):
    hub.answers["/free"] = lambda query: MISSING if "q" in query else FOUND
    done = gpulse("free", "-n", "2", "--export", hub=hub.url)
    assert (done.returncode, done.stdout) == (0, "export CUDA_VISIBLE_DEVICES=2,3\n")
    assert done.stderr == "gpulse: these GPUs are on gpu07; set it there\n"


def test_export_of_what_has_no_name_fails(hub):
    hub.answers["/free"] = FOUND | {"export": None}
    done = gpulse("free", "--export", hub=hub.url)
    assert (done.returncode, done.stdout) == (2, "")


def test_wait_until_there_is_one(hub):
    answers = iter([MISSING, FOUND])
    hub.answers["/free"] = lambda _query: next(answers)
    done = gpulse("free", "-n", "2", "--model", "H100", "--wait", "--no-hold", hub=hub.url)
    assert done.returncode == 0
    assert done.stderr == "waiting for 2 free GPUs of model H100 (Ctrl-C ends)\n"
    assert "gpu07" in done.stdout


def test_wait_no_longer_than_told(hub):
    times = []
    hub.answers["/free"] = lambda _query: times.append(time.monotonic()) or MISSING
    done = gpulse("free", "--wait", "--no-hold", "--timeout", "0.3s", hub=hub.url)
    assert 0.3 <= times[-1] - times[0] < 5
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("1 of 2 free H100: gpu07:3\n")


def test_ctrl_c_ends_the_wait_with_130(hub):
    hub.answers["/free"] = MISSING
    command = [*GPULSE, "free", "--wait", "--no-hold"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env(hub.url)) as process:
        assert process.stderr.readline() == "waiting for 1 free GPU (Ctrl-C ends)\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--wait", "--timeout", "soon"), "'soon' is not a length of time"),
        (("--memory", "lots"), "'lots' is not an amount of memory; write it like 40GB"),
        (("--timeout", "2h"), "give --wait too"),
        (("--wait", "--hold", "5m", "--no-hold"), "--hold and --no-hold cannot both be"),
        (("-n", "0"), "'-n': "),
    ],
)
def test_options_that_make_no_sense(hub, arguments, words):
    done = gpulse("free", *arguments, hub=hub.url)
    assert done.returncode == 2
    assert words in done.stderr
    assert hub.asked == []
