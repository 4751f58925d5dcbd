"""How many files the hub may open: raised as far as it goes, told when too few, and survived when they are gone."""

import gc
import os
import re
import resource
import shlex
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from gpulse import descriptors
from tests.hub import running
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS


def limited(soft: int, hard: int, program: str) -> str:
    """What a Python prints that may open so many files."""
    ran = subprocess.run(
        [sys.executable, "-c", f"from gpulse import descriptors\n{program}"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return ran.stdout.strip()


def test_the_limit_is_raised_as_far_as_it_goes():
    program = (
        "print(descriptors.allowed(), descriptors.raise_limit(), descriptors.allowed(), descriptors.raise_limit())"
    )
    assert limited(100, 300, program) == "100 300 300 300"


def test_what_is_open_is_counted():
    # What earlier tests left open and lost would be closed meanwhile.
    gc.collect()
    before = descriptors.open_now()
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(Path("/dev/null").open())
        assert descriptors.open_now() == before + 10
    assert descriptors.open_now() == before


def test_a_large_fleet_needs_more_than_one_for_each_node():
    assert descriptors.needed(0) > 50
    assert descriptors.needed(12_500) > 12_500 + 500


def test_too_few_are_told_with_what_to_do():
    needs = descriptors.needed(12_500)
    told = limited(256, 4096, "descriptors.raise_limit(); print(descriptors.shortage(12_500))")
    assert told.startswith(f"The hub may open 4,096 files and connections, and 12,500 nodes can take {needs:,}; ")
    assert f"ulimit -n {needs}" in told
    assert f"LimitNOFILE={needs}" in told
    assert limited(256, 4096, "descriptors.raise_limit(); print(descriptors.shortage(1000))") == "None"


@pytest.fixture
def few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hubs are started with no more than 64 files."""
    program = tmp_path / "gpulse"
    program.write_text(f'#!/bin/sh\nset -e\nulimit -n 64\nexec {shlex.quote(str(running.GPULSE))} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(running, "GPULSE", program)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.usefixtures("few_files")
def test_a_hub_without_files_left_goes_on_serving(tmp_path: Path):
    with RunningHub("demo", "--nodes", "5", directory=tmp_path) as hub:
        hub.until(lambda: hub.get("api/v1/summary")["nodes_up"] >= 1)
        address = ("127.0.0.1", int(re.search(r":(\d+)/", hub.url)[1]))
        with ExitStack() as stack, httpx.Client(base_url=hub.url, timeout=PATIENCE_SECONDS) as reader:
            generation = reader.get("readyz").json()["generation"]
            connections = [stack.enter_context(socket.create_connection(address, 5)) for _ in range(100)]
            hub.until(lambda: len(list(Path(f"/proc/{hub.process.pid}/fd").iterdir())) >= 64 - 8)
            before, began = cpu_seconds(hub.process.pid), time.monotonic()
            # Who is connected is served, and the fleet ticks.
            hub.until(lambda: reader.get("readyz").json()["generation"] >= generation + 3)
            metrics = reader.get("metrics?only=hub")
            assert metrics.status_code == 200
            assert "process_max_fds 64.0" in metrics.text
            connections[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connections[0].recv(100).startswith(b"HTTP/1.1 200")
            # Whatever a kept connection asks for: modules are loaded when they are first needed, and need files.
            paths = ("", "api/v1/nodes", "api/v1/nodes/nowhere", "nowhere", "api/v1/openapi.json", "free")
            assert [path for path in paths if reader.get(path).status_code not in (200, 404)] == []
            assert "Traceback" not in hub.said()
            # It does not ask in a circle whether it can accept by now.
            assert cpu_seconds(hub.process.pid) - before < 0.5 * (time.monotonic() - began)
            # Nobody waits for ever: who is one too many is told so by the end of the connection.
            connections[-1].settimeout(5)
            with pytest.raises(ConnectionResetError):
                connections[-1].sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
                while connections[-1].recv(100):
                    pass
                raise ConnectionResetError
        hub.until(lambda: hub.get("healthz")["status"] == "ok")
        assert hub.end() == 0


@pytest.mark.usefixtures("few_files")
def test_a_hub_with_too_few_says_so(tmp_path: Path):
    (tmp_path / "gpulse.toml").write_text('[hub]\nlocal = false\n[[nodes]]\nhosts = "n[1-50].invalid"\n')
    with RunningHub("up", directory=tmp_path) as hub:
        hub.until(lambda: "The hub may open 64 files and connections, and 50 nodes can take" in hub.said())
        assert any("LimitNOFILE=" in notice for notice in hub.get("api/v1/hub")["notices"])
