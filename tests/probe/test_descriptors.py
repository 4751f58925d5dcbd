"""Standard input, output and error that are closed, full or gone: the probe ends as one would want, in few words."""

import json
import os
import pty
import subprocess
import sys

import pytest

from tests.fake_nvml import h100_node
from tests.patience import PATIENCE_SECONDS

PROBE = f"'{sys.executable}' -m gpulse_probe"


@pytest.fixture
def shell(fake):
    """Runs a shell command that uses $PROBE; (exit code, stdout, stderr)."""
    fake.describe(h100_node(1))

    def run(command):
        ran = subprocess.run(
            ["bash", "-c", command.replace("$PROBE", PROBE)],
            env=fake.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return ran.returncode, ran.stdout, ran.stderr

    return run


def test_closed_input(shell):
    code, out, err = shell("$PROBE --once <&-")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["gpus"]) == 1


@pytest.mark.parametrize("mode", ["--once", "--stream", "--stream --pretty", "--help", "--version"])
def test_closed_output(shell, mode):
    assert shell(f"$PROBE {mode} >&-") == (0, "", "")


def test_closed_errors(shell):
    code, out, _ = shell("$PROBE --once 2>&-")
    assert code == 0
    assert json.loads(out)["reports"] == []
    assert shell("$PROBE --bogus 2>&-")[0] == 2


def test_all_closed(shell):
    assert shell("$PROBE --stream --until-eof <&- >&- 2>&-")[0] == 0


@pytest.mark.parametrize("closed", ["<&-", "</dev/null"])
def test_input_that_has_ended_ends_the_stream(shell, closed):
    code, out, err = shell(f"$PROBE --stream --interval 0.1 --until-eof {closed}")
    assert (code, err) == (0, "")
    assert out.count("\n") <= 1


@pytest.mark.parametrize("mode", ["--once", "--stream", "--pretty", "--help"])
def test_full_disk(shell, mode):
    code, out, err = shell(f"$PROBE {mode} > /dev/full")
    assert (code, out) == (1, "")
    assert err == "gpulse-probe: cannot write: No space left on device\n"


def test_terminal_that_goes_away(fake):
    fake.describe(h100_node(1))
    own, theirs = pty.openpty()
    command = [sys.executable, "-m", "gpulse_probe", "--stream", "--pretty", "--interval", "0.1"]
    process = subprocess.Popen(
        command, env=fake.environment(), stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, start_new_session=True
    )
    os.close(theirs)
    assert os.read(own, 100)
    os.close(own)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert process.stderr
    assert process.stderr.read() == b""
