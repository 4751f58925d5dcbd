"""The probe's command line, as people and scripts use it: installed, as a module, with and without NVIDIA's binding."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulse_probe import __version__
from gpulse_probe.options import Options, UsageError
from tests.conform import conforms
from tests.fake_nvml import Process, h100_node
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import RunningProbe

GPULSE = Path(sys.executable).with_name("gpulse")
RECORDED = Path(__file__).resolve().parent.parent / "recorded"
SOURCES = Path(__file__).resolve().parent.parent.parent / "src"


def run(*command, environment=None, **options):
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, **options
    )
    return ran.returncode, ran.stdout, ran.stderr


def without_gpus():
    """An environment in which there is no driver and no nvidia-smi."""
    return {**os.environ, "PATH": "/nonexistent", "LD_LIBRARY_PATH": ""}


def test_interpreters_of_somebody_else_are_left_alone(monkeypatch):
    def refuse(*_arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "glob", refuse)
    assert sys.executable in interpreters.__wrapped__().values()


def test_no_gpu_is_not_an_error():
    code, out, err = run(GPULSE, "probe", "--once", environment=without_gpus())
    assert (code, err) == (0, "")
    snapshot = json.loads(out)
    assert conforms("Snapshot", snapshot) == []
    assert (snapshot["gpus"], snapshot["processes"], snapshot["reports"]) == ([], [], [])
    assert snapshot["host"]["cpu_threads"] == os.cpu_count()


def test_once_is_the_default_and_one_line():
    code, out, _ = run(GPULSE, "probe", environment=without_gpus())
    assert code == 0
    assert out.count("\n") == 1


def test_module_and_command_are_the_same(fake):
    fake.describe(h100_node(2))
    taken = []
    for command in ([GPULSE, "probe"], [sys.executable, "-m", "gpulse_probe"]):
        _, out, _ = run(*command, "--once", "--node", "x", environment=fake.environment())
        taken.append(json.loads(out))
    first, second = taken
    assert first["gpus"][0].keys() == second["gpus"][0].keys()
    assert first["node"] == second["node"] == "x"


@pytest.mark.parametrize("version", interpreters())
def test_without_the_binding_it_falls_back_to_nvidia_smi(version, fake, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nexec /bin/cat '{RECORDED / 'nvidia_smi' / 'h100-mig.xml'}'\n")
    program.chmod(0o755)
    fake.describe(h100_node(1))
    environment = {**fake.environment(), "PATH": str(tmp_path), "PYTHONPATH": str(SOURCES)}
    # -S: without the packages installed beside the interpreter, so without nvidia-ml-py.
    code, out, err = run(interpreters()[version], "-S", "-m", "gpulse_probe", "--once", environment=environment)
    assert (code, err) == (0, "")
    snapshot = json.loads(out)
    assert snapshot["probe"]["gpu_source"] == "nvidia-smi"
    assert snapshot["reports"] == []
    assert len(snapshot["gpus"]) > 1


def test_stream_keeps_its_pace(fake):
    fake.describe(h100_node(2))
    with RunningProbe(fake.environment(), "--interval", "0.25") as probe:
        taken = [probe.next() for _ in range(13)]
        while not (kept := 2.5 < taken[-1]["time"] - taken[-12]["time"] < 3.2) and len(taken) < 60:
            taken.append(probe.next())
    assert [one["seq"] for one in taken] == list(range(len(taken)))
    assert kept, [one["time"] for one in taken]
    assert taken[0]["probe"]["interval_seconds"] == 0.25


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_cleanly(fake, number):
    fake.describe(h100_node(1))
    with RunningProbe(fake.environment(), "--interval", "100") as probe:
        probe.next()
        probe.process.send_signal(number)
        assert probe.process.wait(PATIENCE_SECONDS) == 0
        assert probe.process.stderr
        assert probe.process.stderr.read() == b""


def test_reader_that_goes_away_is_no_error(fake):
    fake.describe(h100_node(1))
    command = f"'{sys.executable}' -m gpulse_probe --stream --interval 0.05 | head -n 2"
    code, out, err = run("bash", "-o", "pipefail", "-c", command, environment=fake.environment())
    assert (code, err) == (0, "")
    assert out.count("\n") == 2


def test_pretty_table_in_a_pipe(fake, pids):
    fake.describe(h100_node(2, [Process(pids[0], gpu=1, memory="5GiB", sm=40)]))
    environment = {**fake.environment(), "PYTHONIOENCODING": "utf-8", "COLUMNS": "160"}
    code, out, err = run(GPULSE, "probe", "--pretty", environment=environment)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert any("NVIDIA H100 80GB HBM3   81%" in line and line.endswith(" 5G") for line in lines)
    assert any(line.split()[:1] == [str(pids[0])] and line.endswith("sleep 300") for line in lines)


def test_pretty_table_survives_an_ascii_terminal(fake):
    fake.describe(h100_node(1))
    environment = {**fake.environment(), "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    code, out, err = run(GPULSE, "probe", "--pretty", environment=environment)
    assert (code, err) == (0, "")
    assert "NVIDIA H100" in out
    assert "####......" in out
    assert "?" not in out


def test_live_table_on_a_terminal(fake):
    """Drawn over the last one, coloured, and ended by Ctrl-C."""
    fake.describe(h100_node(1))
    own, theirs = pty.openpty()
    command = [GPULSE, "probe", "--stream", "--pretty", "--interval", "0.2"]
    process = subprocess.Popen(command, env=fake.environment(), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    end = time.monotonic() + PATIENCE_SECONDS
    while seen.count(b"\x1b[H") < 3:
        assert time.monotonic() < end, seen
        seen += os.read(own, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_SECONDS) == 0
    os.close(own)
    assert b"NVIDIA H100 80GB HBM3" in seen


def test_help_and_version():
    code, out, _ = run(GPULSE, "probe", "--help")
    assert code == 0
    assert out.startswith("usage: gpulse probe [--once | --stream]")
    assert run(GPULSE, "probe", "--version")[1] == f"gpulse-probe {__version__}\n"
    assert run(GPULSE, "--version")[1] == f"gpulse {__version__}\n"
    assert "probe" in run(GPULSE, "--help")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--foo"], "unknown argument --foo"),
        (["once"], "unknown argument once"),
        (["--once", "--stream"], "--once and --stream exclude each other"),
        (["--interval", "2"], "--interval goes with --stream"),
        (["--stream", "--interval"], "--interval needs a value"),
        (["--stream", "--interval", "fast"], "--interval: 'fast' is not a number of seconds from 0.05 to 86400"),
        (["--stream", "--interval", "0"], "--interval: '0' is not a number of seconds from 0.05 to 86400"),
        (["--stream", "--interval", "nan"], "--interval: 'nan' is not a number of seconds from 0.05 to 86400"),
        (["--pretty=yes"], "--pretty takes no value"),
        (["--updates"], "--updates goes with --stream, without --pretty"),
        (["--stream", "--updates", "--pretty"], "--updates goes with --stream, without --pretty"),
    ],
)
def test_wrong_options_are_named(arguments, message):
    with pytest.raises(UsageError) as raised:
        Options(arguments)
    assert str(raised.value) == message
    code, out, err = run(GPULSE, "probe", *arguments)
    assert (code, out) == (2, "")
    assert err == f"gpulse probe: {message}; see gpulse probe --help\n"


def test_options_take_values_both_ways():
    options = Options(["--stream", "--interval=2.5", "--node", "gpu 07", "--until-eof"])
    assert (options.stream, options.interval, options.node, options.until_eof) == (True, 2.5, "gpu 07", True)


def test_probe_does_not_load_the_hub():
    """`gpulse probe` must stay as small as the probe itself."""
    script = (
        "import sys; sys.argv = ['gpulse', 'probe', '--version']\n"
        "from gpulse.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name in ('typer', 'rich', 'argparse', 'subprocess', 'pynvml')))"
    )
    assert run(sys.executable, "-c", script)[1].splitlines()[-1] == "[]"
