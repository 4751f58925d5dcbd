"""What nodes are given to keep to themselves: tokens, and the key by which they know a newer agent to be the hub's."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from gpulse.auth.noting import Actor
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades
from gpulse.config.files import is_file_name
from gpulse.errors import AgentError
from gpulse.store import Records
from gpulse.store.sqlite import make_folder

# The agent that is given one refuses a shorter one, too.
SHORTEST_TOKEN = 16
TOKEN, UPGRADE_KEY = "token", "upgrade-key"
PULL_TOKENS = "pull-tokens"


class PushSecrets:
    """A token for each node, bound to its name, and a key for its upgrades; `by` hands them over."""

    def __init__(self, tokens: Tokens, upgrades: Upgrades, by: Actor) -> None:
        self._tokens = tokens
        self._upgrades = upgrades
        self._by = by
        self._live = {one.id: one.nodes for one in tokens.listing() if one.state == "live" and one.kind == "node"}

    def files(self, node: str, token_id: str | None) -> dict[str, str]:
        given = {UPGRADE_KEY: self._upgrades.upgrade_key(node)}
        if self._live.get(token_id or "") != node:
            # Whoever else holds a token of this name is not the node that we are on.
            given[TOKEN] = self._tokens.create_node(node, replace=True, by=self._by)
        return given

    def forget(self, node: str, token_id: str | None) -> None:
        if token_id and self._live.get(token_id) == node:
            self._tokens.revoke([token_id], by=self._by)


class PullSecrets:
    """A token for each node that the hub asks, in a file with its name: none is good at another node."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / PULL_TOKENS
        # As gpulse.toml names them.
        self.token_file = str(self._folder / "{name}")

    def files(self, node: str, _token_id: str | None) -> dict[str, str]:
        if not is_file_name(node):
            raise AgentError(f"{node!r:.100} cannot be the name of a file, so the hub has nowhere to keep its token")
        return {TOKEN: self._token(self._folder / node)}

    def forget(self, _node: str, _token_id: str | None) -> None:
        """It is good at an agent that is gone, and nowhere else."""

    def _token(self, path: Path) -> str:
        try:
            with contextlib.suppress(FileNotFoundError):
                return _checked(path)
            make_folder(path.parent)
            # Nodes must never get one that the hub then does not have: the file comes first, and it stays.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(24) + "\n")
            return _checked(path)
        except (OSError, UnicodeDecodeError) as problem:
            raise AgentError(f"{path} cannot be read or made: {problem}") from problem


def _checked(path: Path) -> str:
    text = path.read_text("ascii")
    if len(text.strip()) < SHORTEST_TOKEN or not text.strip().isprintable():
        raise AgentError(
            f"{path} holds no token of at least {SHORTEST_TOKEN} characters, so its agent would refuse to start;"
            " remove the file and install the agent again"
        )
    return text


class NoSecrets:
    """Who writes files needs none."""

    def files(self, _node: str, _token_id: str | None) -> dict[str, str]:
        return {}

    def forget(self, _node: str, _token_id: str | None) -> None:
        """There is nothing to forget."""


@contextlib.contextmanager
def push_secrets(folder: Path, url: str | None, by: Actor) -> Iterator[PushSecrets]:
    """Those of the hub that keeps its data in this folder, and its records at the URL if there is one."""
    with Records(folder, url) as records:
        yield PushSecrets(Tokens(records), Upgrades(folder), by)
