"""A real name server on loopback: dnsmasq, with the records a test gives it."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

_PROGRAM = shutil.which("dnsmasq", path=os.environ.get("PATH", "") + ":/usr/sbin")


class NameServer:
    """It knows the zone .test; other names it refuses to look up."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._hosts = folder / "hosts"
        self._hosts.write_text("")
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *lines: str) -> None:
        """`lines` are of dnsmasq's own configuration."""
        settings = self._folder / "dnsmasq.conf"
        settings.write_text("\n".join(["local=/test/", f"addn-hosts={self._hosts}", *lines]) + "\n")
        assert _PROGRAM is not None
        own = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--bind-interfaces", "--pid-file="]
        # It would change to a user who may not read the folder of a test.
        user = ["--user=root"] if os.geteuid() == 0 else []
        place = ["--listen-address=127.0.0.1", f"--port={self.port}", f"--conf-file={settings}"]
        self._process = subprocess.Popen([_PROGRAM, *own, *user, *place], stderr=subprocess.DEVNULL)
        question = dns.message.make_query("version.bind", "TXT", "CH")
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            assert self._process.poll() is None, "dnsmasq has ended"
            try:
                dns.query.tcp(question, "127.0.0.1", 1, self.port)
            except (OSError, dns.exception.DNSException):
                assert time.monotonic() < end, "dnsmasq does not answer"
                time.sleep(0.01)
            else:
                return

    def hosts(self, *lines: str) -> None:
        """Addresses and names, as in /etc/hosts."""
        self._hosts.write_text("".join(line + "\n" for line in lines))
        if self._process:
            self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def name_server(tmp_path: Path) -> Iterator[NameServer]:
    if _PROGRAM is None:
        pytest.skip("dnsmasq is missing")
    server = NameServer(tmp_path)
    try:
        yield server
    finally:
        server.stop()
