"""What the tests with real SSH servers share: a person's home, and servers that end with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.transport.ssh import SshSettings, SshTarget
from tests.system.sshd import Client, Sshd


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """This process's own home, for the time of the test."""
    person = Client(tmp_path / "person")
    monkeypatch.setenv("HOME", str(person.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return person


@pytest.fixture
def serve(tmp_path: Path, client: Client) -> Iterator[Callable[..., Sshd]]:
    """Start a server; unless `known=False` the person knows its host key."""
    servers: list[Sshd] = []

    def start(known: bool = True, **options: Any) -> Sshd:
        server = Sshd(tmp_path / f"node{len(servers)}", client, **options)
        servers.append(server)
        if known:
            client.know(server)
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def settings(client: Client, tmp_path: Path) -> SshSettings:
    return SshSettings(config_files=(str(client.config),), system_known_hosts=(str(tmp_path / "system_known_hosts"),))


def target(server: Sshd, name: str = "n0", **options: Any) -> SshTarget:
    return SshTarget(name=name, host="127.0.0.1", port=server.port, **{"interval_seconds": 0.5, **options})
