"""What an agent on a node is told to do: push to a hub, serve to one, or drop files for one. Pure."""

import ipaddress
import json
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from gpulse.errors import AgentError
from gpulse_probe import fingerprint

Way = Literal["push", "serve", "drop"]
# Stands for the agent's folder, which only the node knows.
FOLDER = "{folder}"
CERTIFICATES = "ca.pem"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """How agents are to run, the same for all nodes."""

    way: Way = "push"
    # push: the hub's address.
    hub: str = ""
    # push: certificates to trust, as a file has them; none are the system's.
    certificates: str = ""
    # push: of the hub's key, which then is all that is trusted.
    fingerprint: str = ""
    # serve: where it listens.
    listen: str = ""
    port: int = 7080
    # drop: the folder.
    drop: str = ""
    interval_seconds: float | None = None

    def check(self) -> None:
        """AgentError where something is missing."""
        if self.way == "push":
            _host_of(self.hub)
            if self.fingerprint:
                self._check_fingerprint()
        elif self.way == "serve" and not self.listen:
            raise AgentError(
                "--way serve needs --listen ADDRESS, the node's address that the hub asks; 0.0.0.0 is all of them"
            )
        elif self.way == "drop" and not self.drop.startswith("/"):
            raise AgentError("--way drop needs --drop DIR, a folder by its full path on the nodes")

    def _check_fingerprint(self) -> None:
        if self.certificates or not self.hub.startswith("https:"):
            raise AgentError("--fingerprint goes with --hub https://…, and without --ca")
        try:
            # The probe has no annotations: they would cost every node memory.
            fingerprint.read(self.fingerprint)  # type: ignore[no-untyped-call]
        except ValueError as problem:
            raise AgentError(f"--fingerprint: {problem}; `gpulse up` prints it") from None

    def arguments(self, node: str) -> list[str]:
        """The agent's command line on a node."""
        if self.way == "push":
            trust = ["--ca", f"{FOLDER}/{CERTIFICATES}"] if self.certificates else []
            trust += ["--fingerprint", self.fingerprint] if self.fingerprint else []
            told = ["push", "--hub", self.hub, *trust, "--folder", FOLDER, "--upgrade"]
        elif self.way == "serve":
            told = ["serve", "--host", self.listen, "--port", str(self.port), "--token-file", f"{FOLDER}/token"]
        else:
            told = ["drop", self.drop]
        interval = ["--interval", f"{self.interval_seconds:g}"] if self.interval_seconds else []
        return [*told, "--node", node, *interval]

    def files(self) -> dict[str, str]:
        """What goes into the agent's folder besides its secrets."""
        return {CERTIFICATES: self.certificates} if self.certificates else {}

    def unreachable_from(self, host: str, behind_another: bool) -> bool:
        """Whether the hub's address means the node itself where it is used, and not the hub."""
        return self.way == "push" and is_loopback(_host_of(self.hub)) and (behind_another or not is_loopback(host))

    def in_clear(self) -> bool:
        """Whether others on the network can read the token."""
        return self.way == "push" and self.hub.startswith("http:") and not is_loopback(_host_of(self.hub))

    def table(self, nodes: list[str], token_file: str) -> str:
        """The lines of gpulse.toml that have the hub ask these nodes, or look into the folder."""
        if self.way == "drop":
            return f"[[drop_folders]]\npath = {_toml(self.drop)}"
        port = "" if self.port == 7080 else f"port = {self.port}\n"
        hosts = ", ".join(map(_toml, nodes))
        return f'[[nodes]]\nhosts = [{hosts}]\ntransport = "pull"\n{port}token_file = {_toml(token_file)}'


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _host_of(url: str) -> str:
    if not url:
        raise AgentError(
            "--hub URL is needed: the hub's address as nodes reach it, such as http://hub.example.org:7070"
        )
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment or parts.username:
        raise AgentError(f"--hub {url} is no address of a hub; it looks like http://hub.example.org:7070")
    return host


def _toml(text: str) -> str:
    # TOML writes strings as JSON does.
    return json.dumps(text, ensure_ascii=False)
