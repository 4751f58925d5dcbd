"""The probe boots from standard input: on every Python found, through every shell, with nothing on disk."""

import ast
import io
import os
import shutil
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gpulse_probe
import gpulse_probe.schema
from gpulse.transport import bundle as bundle_module
from gpulse.transport.binding import cut
from gpulse.transport.bundle import BOOT, make_bundle
from gpulse.transport.squeeze import squeeze, without_meanings
from gpulse_probe import boot as boot_module
from gpulse_probe.boot import START_MARKER
from gpulse_probe.nvidia.names import NUMBERS, STRUCTURES
from tests.fake_nvml import Process, h100_node
from tests.interpreters import interpreters
from tests.patience import PATIENCE_SECONDS
from tests.probe.running import RunningProbe, only_child

SHELLS = ("sh", "bash", "dash", "tcsh", "fish")


def boot(shell, environment, *arguments, python=sys.executable, directory=None):
    """A probe booted as over SSH: the shell runs the command, the bundle comes on standard input, which stays open."""
    bundle = make_bundle()
    command = [shell, "-c", bundle.command(*arguments, python=python)]
    if directory:
        command = ["env", "-C", str(directory), *command]
    probe = RunningProbe(environment, command=command)
    assert probe.process.stdin
    probe.process.stdin.write(bundle.data)
    probe.process.stdin.flush()
    return probe


def after_marker(probe):
    while probe.line() != START_MARKER.encode():
        pass
    return probe


def test_boot_line_suits_every_shell():
    assert not set("'!\\\n") & set(BOOT)


def test_size():
    assert len(make_bundle().data) <= 92_000


def test_same_sources_make_the_same_bytes():
    code = "import sys; from gpulse.transport.bundle import make_bundle; sys.stdout.buffer.write(make_bundle().data)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert made == make_bundle().data


@pytest.mark.parametrize("version", interpreters())
def test_every_python_found(version, fake, pids, tmp_path):
    fake.describe(h100_node(2, [Process(pids[0], memory="3GiB", sm=40)]))
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**fake.environment(), "HOME": str(empty), "TMPDIR": str(empty), "LC_ALL": "C"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = ("--stream", "--interval", "0.2", "--until-eof", "--node", "n 1")
    with boot("sh", environment, *options, python=interpreters()[version], directory=empty) as probe:
        after_marker(probe)
        snapshot = probe.next()
        assert snapshot["probe"]["python"].startswith(version + ".")
        assert snapshot["node"] == "n 1"
        assert snapshot["reports"] == []
        assert snapshot["gpus"][1]["power_watts"] == 401.5
        assert snapshot["processes"][0]["gpus"][0]["memory_bytes"] == 3 << 30
        assert snapshot["host"]["memory_total_bytes"] > 0
        probe.next()
        assert list(empty.iterdir()) == [], "something was written to the node's disk"


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell(shell, fake):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is missing")
    fake.describe(h100_node(1))
    with boot(
        shell, fake.environment(), "--stream", "--interval", "0.2", "--until-eof", "--node", "it's $HOME"
    ) as probe:
        after_marker(probe)
        snapshot = probe.next()
        assert snapshot["node"] == "it's $HOME"
        assert len(snapshot["gpus"]) == 1


def test_marker_ends_what_login_scripts_print(fake):
    fake.describe(h100_node(1))
    bundle = make_bundle()
    noisy = "printf 'Welcome!\\nno newline at the end'; " + bundle.command("--once")
    ran = subprocess.run(
        ["sh", "-c", noisy], env=fake.environment(), input=bundle.data, capture_output=True, check=True
    )
    lines = ran.stdout.split(b"\n")
    assert lines[lines.index(START_MARKER.encode()) + 1].startswith(b'{"schema":')


def test_nothing_is_imported_from_where_it_runs(fake, tmp_path):
    """People keep files in their homes that are called like modules."""
    fake.describe(h100_node(1))
    for name in ("struct", "json", "zlib", "signal", "select", "mmap", "socket", "pynvml", "gpulse_probe"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody's own ' + __name__)\n")
    with boot("sh", fake.environment(), "--stream", "--interval", "0.2", "--until-eof", directory=tmp_path) as probe:
        after_marker(probe)
        snapshot = probe.next()
        assert snapshot["gpus"][0]["name"] == "NVIDIA H100 80GB HBM3"
        assert snapshot["reports"] == []


@pytest.mark.parametrize("version", interpreters())
@pytest.mark.parametrize("path", [":/nowhere", "{folder}", "."], ids=["an empty entry", "its folder", "a dot"])
def test_nothing_is_imported_from_where_it_runs_by_pythonpath(version, path, fake, tmp_path):
    """An empty entry of PYTHONPATH becomes the folder by its full name, and some write the folder itself."""
    fake.describe(h100_node(1))
    for name in ("struct", "json", "select", "socket", "pynvml", "gpulse_probe", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text("import os; os.write(1, b'somebody else was imported'); os._exit(77)\n")
    environment = {**fake.environment(), "PYTHONPATH": path.format(folder=tmp_path)}
    options = ("--stream", "--interval", "0.2", "--until-eof")
    with boot("sh", environment, *options, python=interpreters()[version], directory=tmp_path) as probe:
        after_marker(probe)
        assert probe.next()["reports"] == []


def test_end_of_standard_input_ends_the_probe(fake):
    fake.describe(h100_node(1))
    with boot("sh", fake.environment(), "--stream", "--interval", "30", "--until-eof") as probe:
        after_marker(probe)
        probe.next()
        assert probe.process.stdin
        probe.process.stdin.close()
        probe.process.stdin = None
        assert probe.process.wait(PATIENCE_SECONDS) == 0


def test_end_of_standard_input_ends_a_probe_nobody_reads(fake):
    """The pipe is full and the hub is gone: it must not wait for ever."""
    fake.describe(h100_node(8))
    with boot("sh", fake.environment(), "--stream", "--interval", "0.05", "--until-eof") as probe:
        after_marker(probe)
        time.sleep(2)
        assert probe.process.stdin
        probe.process.stdin.close()
        probe.process.stdin = None
        assert probe.process.wait(PATIENCE_SECONDS) == 0


def test_probe_ends_when_its_reader_goes(fake):
    fake.describe(h100_node(1))
    with boot("sh", fake.environment(), "--stream", "--interval", "0.1", "--until-eof") as probe:
        after_marker(probe)
        probe.next()
        assert probe.process.stdout
        os.dup2(os.open(os.devnull, os.O_RDONLY), probe.process.stdout.fileno())
        assert probe.process.wait(PATIENCE_SECONDS) == 0


def test_cut_connection_while_booting_ends_with_its_own_code():
    command = ["sh", "-c", make_bundle().command("--once", python=sys.executable)]
    assert subprocess.run(command, input=make_bundle().data[:1000], capture_output=True, check=False).returncode == 9


def test_too_old_a_python_says_so():
    """boot.py is run with the version of another interpreter: the real ones here are all new enough."""
    source = Path(boot_module.__file__).read_text("utf-8")
    script = "import sys\nsys.version_info = (3, 5, 2)\nb = bytearray()\n" + source
    ran = subprocess.run([sys.executable, "-c", script, "0"], capture_output=True, text=True, check=False)
    assert ran.returncode == 8
    assert ran.stderr == "gpulse: Python 3.5 is too old, the probe needs 3.6\n"


def test_bundle_runs_as_a_file_too(fake, tmp_path):
    fake.describe(h100_node(1))
    path = tmp_path / "probe.zip"
    path.write_bytes(make_bundle().data)
    command = [sys.executable, "-S", str(path), "--stream", "--interval", "0.2"]
    with RunningProbe(fake.environment(), command=command) as probe:
        assert probe.next()["gpus"][0]["name"] == "NVIDIA H100 80GB HBM3"
        only_child(probe.process.pid)


def test_binding_is_cut_to_what_is_used():
    with zipfile.ZipFile(io.BytesIO(make_bundle().data)) as archive:
        text = archive.read("pynvml.py").decode()
    assert text.startswith("#####\n# Copyright (c)"), "the licence travels along"
    assert len(text) < 40_000
    names: dict[str, object] = {}
    exec(compile(text, "pynvml.py", "exec"), names)  # noqa: S102 - what the node does with it
    assert {*NUMBERS, *STRUCTURES} <= set(names)


def test_cut_keeps_what_the_wanted_needs_and_no_more():
    head = "# head\n\nimport os\n"
    needed = "A = 1\nB = A + 1\ndef f():\n    return B\n@f\ndef g():\n    return C\nC = 3\n"
    source = head + needed + "'text'\nD = 4\n"
    assert cut(source, {"g"}) == head + needed
    assert cut(source, {"D"}) == "# head\n\nimport os\nD = 4\n"


def test_the_table_of_fields_travels_without_its_meanings():
    source = Path(gpulse_probe.__file__).with_name("schema.py").read_text("utf-8")
    cut_down = without_meanings(squeeze(source))
    assert cut_down.count("\n") == source.count("\n")
    made: dict[str, object] = {}
    exec(compile(cut_down, "schema.py", "exec"), made)  # noqa: S102 - a file of our own
    original = gpulse_probe.schema
    assert made["GPU_FACTS"] == original.GPU_FACTS
    for name, fields in original.RECORDS.items():
        assert [field._replace(unit="", meaning="") for field in fields] == list(made["RECORDS"][name])


def test_squeezed_source_is_the_same_program_on_the_same_lines():
    for path in Path(gpulse_probe.__file__).parent.rglob("*.py"):
        source = path.read_text("utf-8")
        squeezed = squeeze(source)
        assert squeezed.count("\n") == source.count("\n"), path
        assert _without_docstrings(squeezed) == _without_docstrings(source), path


def _without_docstrings(source):
    module = ast.parse(source)
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(module, include_attributes=False)


def test_many_who_ask_at_once_get_one_bundle(monkeypatch):
    made = []
    original = bundle_module.squeeze
    bundle_module._made.cache_clear()
    monkeypatch.setattr(bundle_module, "squeeze", lambda source: made.append(source) or original(source))
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: make_bundle(), range(6)))
    assert all(one is found[0] for one in found)
    assert len(made) == len(set(made))
