"""Nodes that push: real agents in homes of their own, around a real hub with its data."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from gpulse.transport.bundle import make_agent
from tests.hub.running import GPULSE, RunningHub
from tests.patience import PATIENCE_SECONDS

# The pauses of an agent that was refused, or lost its hub long ago, for which no test can wait; the rest of it is as
# nodes have it.
QUICK_RETRY = (
    {"gpulse_probe/uplink.py": (b"REFUSED_PAUSE_SECONDS = 60.0", b"REFUSED_PAUSE_SECONDS = 1.0")},
    {"gpulse_probe/uplink.py": (b"LONGEST_PAUSE_SECONDS = 60.0", b"LONGEST_PAUSE_SECONDS = 5.0")},
)
# A probe that tells so seldom that who posts once stays up.
CALM = {"version": "0.1.0", "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}


def write_agent(path: Path, *changes: Mapping[str, tuple[bytes, bytes]]) -> Path:
    """agent.pyz as a hub hands it out, with some texts in it changed: {entry: (old, new)}."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make_agent().data)) as old, zipfile.ZipFile(packed, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            for change in changes:
                before, after = change.get(entry.filename, (b"", b""))
                assert before in data, f"{before!r} is not in {entry.filename}"
                data = data.replace(before, after) if before else data
            new.writestr(entry, data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed.getvalue())
    return path


class Agent:
    """`python3 agent.pyz push` on a node: with a home of its own, its words in a file."""

    def __init__(
        self,
        home: Path,
        hub: str,
        node: str,
        *options: str,
        program: list[str | Path],
        token: str | None = None,
        environment: Mapping[str, str] | None = None,
    ):
        self.node = node
        self.folder = home / ".local" / "share" / "gpulse-agent" / node
        home.mkdir(parents=True, exist_ok=True)
        self._log = home / "log"
        full = {name: value for name, value in os.environ.items() if name not in ("GPULSE_TOKEN", "PYTHONPATH")}
        full |= {**(environment or {}), "HOME": str(home)}
        if token is not None:
            full["GPULSE_TOKEN"] = token
        command = [*program, "push", "--hub", hub, "--node", node, *options]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, env=full, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def words(self) -> str:
        return self._log.read_text("utf-8")

    def says(self, words: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until it has said so; all it has said."""
        return until(lambda: words in self.words and self.words, seconds, lambda: f"{words!r} is not in: {self.words}")

    def anonymous_bytes(self) -> int:
        """Memory of its own, without what it shares with its child or the disk."""
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) << 10
        raise AssertionError("the kernel does not tell")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Site:
    """A hub, its data and the agents of its nodes; all is ended with the block."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None):
        """`environment` is that of the nodes: where they find their driver."""
        self.folder = folder
        self.data = folder / "data"
        self._nodes = dict(environment or {})
        self._agents: list[Agent] = []
        self.agent_file = write_agent(folder / "agent.pyz")
        self.quick_agent_file = write_agent(folder / "quick.pyz", *QUICK_RETRY)
        self.hub = self._start(0)
        self.url = self.hub.url

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_error: object) -> None:
        for agent in self._agents:
            agent.kill()
        self.hub.__exit__()

    # The hub.

    def _start(self, port: int) -> RunningHub:
        environment = {**os.environ, "HOME": str(self.folder)}
        arguments = ("up", "--no-local", "--data", str(self.data))
        return RunningHub(*arguments, environment=environment, directory=self.folder, port=port)

    def stop_hub(self, number: int = signal.SIGTERM) -> None:
        self.hub.end(number)
        self.hub.__exit__()

    def start_hub(self) -> None:
        """The same again, where nodes look for it."""
        self.hub = self._start(int(self.url.rpartition(":")[2].strip("/")))

    def hub_bytes(self) -> int:
        for line in Path(f"/proc/{self.hub.process.pid}/status").read_text("ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
        raise AssertionError("the kernel does not tell")

    def metric(self, name: str) -> float:
        """The sum over all labels; 0 where there is none."""
        lines = httpx.get(f"{self.url}metrics", params={"only": "hub"}, timeout=PATIENCE_SECONDS).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    # Tokens, as people make them.

    def token_command(self, *words: str) -> str:
        ran = subprocess.run(
            [GPULSE, "token", *words, "--data", self.data],
            env={**os.environ, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def tokens(self, names: str, *options: str) -> dict[str, str]:
        """By node, a token for each of a set."""
        return dict(line.split() for line in self.token_command("create", names, *options).splitlines())

    def token(self, node: str, *options: str) -> str:
        return self.tokens(node, *options)[node]

    # Nodes.

    def agent(
        self,
        node: str,
        *options: str,
        token: str | None = None,
        home: str = "",
        quick: bool = False,
        python: str = sys.executable,
        program: list[str | Path] | None = None,
    ) -> Agent:
        """Start one; five lines a second. `quick`: with short pauses after a refusal or a loss."""
        if "--interval" not in options:
            options = ("--interval", "0.2", *options)
        file = self.quick_agent_file if quick else self.agent_file
        found = Agent(
            self.folder / (home or node),
            self.url,
            node,
            *options,
            program=program or [python, "-S", file],
            token=token,
            environment=self._nodes,
        )
        self._agents.append(found)
        return found

    def state(self, node: str) -> str:
        answer = httpx.get(f"{self.url}api/v1/nodes/{node}", timeout=PATIENCE_SECONDS)
        return answer.json()["state"] if answer.status_code == 200 else f"{answer.status_code}"

    def until_up(self, node: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """The node as the API tells of it, once it is up."""
        return self.hub.until(lambda: (one := self.hub.node(node))["state"] == "up" and one, seconds)

    def until_state(self, node: str, state: str, seconds: float = PATIENCE_SECONDS) -> None:
        self.hub.until(lambda: self.state(node) == state, seconds)

    def log(self, node: str) -> list[dict[str, Any]]:
        """What the hub has noted of a node, the newest last."""
        return self.hub.get(f"api/v1/nodes/{node}/log", limit=1000)["items"][::-1]

    def log_text(self, node: str) -> str:
        return "\n".join(entry["message"] for entry in self.log(node))

    # Whoever speaks for a node by hand.

    def headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    def socket(self, token: str | None, instance: str = "instance=0123456789abcdef") -> ClientConnection:
        return connect(
            f"{self.url.replace('http', 'ws', 1)}api/v1/ingest?{instance}",
            additional_headers=self.headers(token) if token is not None else {},
            compression=None,
            max_size=1 << 20,
        )

    def post(self, token: str | None, body: bytes, path: str = "", **headers: str) -> httpx.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= self.headers(token) if token is not None else {}
        return httpx.post(f"{self.url}api/v1/ingest{path}", content=body, headers=given, timeout=PATIENCE_SECONDS)

    def tell(self, node: str, body: bytes) -> None:
        """A snapshot of a node that has no token yet, taken."""
        answer = self.post(self.token(node), body)
        assert answer.status_code == 200, answer.text


class Dripping(threading.Thread):
    """Many who begin to post something and send a byte of it now and then for so long; they wait for an answer.

    What is sent to a hub that has answered and gone would lose its answer.
    """

    def __init__(self, site: Site, token: str, count: int, seconds: float):
        super().__init__(daemon=True)
        host, _, port = site.url.removeprefix("http://").strip("/").partition(":")
        head = (
            "POST /api/v1/ingest HTTP/1.1\r\nHost: hub\r\nContent-Length: 100000\r\n"
            f"Authorization: Bearer {token}\r\n\r\n{{"
        )
        self.sockets = [socket.create_connection((host, int(port)), 10) for _ in range(count)]
        for one in self.sockets:
            one.sendall(head.encode())
        self.began = time.monotonic()
        self.answers: list[bytes] = []
        self._seconds = seconds
        self._done = threading.Event()

    def run(self) -> None:
        waiting = list(self.sockets)
        while waiting and not self._done.is_set():
            for one in tuple(waiting):
                try:
                    if time.monotonic() - self.began < self._seconds:
                        one.sendall(b" ")
                    one.settimeout(0.001)
                    self.answers.append(one.recv(4096))
                    waiting.remove(one)
                except TimeoutError:
                    continue
                except OSError:
                    waiting.remove(one)
            self._done.wait(0.5)

    def end(self) -> None:
        self._done.set()
        self.join(20)
        for one in self.sockets:
            one.close()


def snapshot(node: str, **changes: Any) -> bytes:
    """A small Snapshot, as a node may post it."""
    gpu = {"index": 0, "uuid": f"GPU-{node}", "name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 80 << 30}
    record = {"schema": 1, "node": node, "time": time.time(), "seq": 0, "gpus": [gpu], **changes}
    return json.dumps(record, separators=(",", ":")).encode()


def until(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS, complaint: Callable[[], str] = str) -> Any:
    """Wait for a condition; what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, complaint()
        time.sleep(0.02)
