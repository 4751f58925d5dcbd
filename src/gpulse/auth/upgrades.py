"""What an agent trusts a newer agent by: a key for each node, made of one that never leaves the hub."""

import hmac
import os
import secrets
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection

from gpulse.errors import StoreError
from gpulse.store import Records, audit, tokens
from gpulse.store.sqlite import make_folder

FILE = "agent.key"
_LENGTH = 32


class Upgrades:
    """The hub's key is made where there is none yet."""

    def __init__(self, folder: Path) -> None:
        self._key = _key(folder / FILE)

    def upgrade_key(self, node: str) -> str:
        """What `gpulse agent install` leaves on the node."""
        return hmac.new(self._key, b"upgrade:" + node.encode("utf-8"), sha256).hexdigest()

    def sign(self, node: str, data: bytes) -> str:
        """Tells the node that its own hub sent this."""
        return hmac.new(self.upgrade_key(node).encode("ascii"), data, sha256).hexdigest()


def lost_records(records: Records, folder: Path) -> str:
    """Say that the records may have been lost: the hub has run on this folder before, and they are empty."""
    path = folder / FILE
    if not path.exists() or not records.read(_is_empty).result():
        return ""
    made = datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d")
    return (
        f"{records.name} is empty, but {path} is there since {made}: if accounts, tokens and reservations were lost,"
        " stop the hub now and restore a backup (gpulse restore FILE)"
    )


def _is_empty(connection: Connection) -> bool:
    return audit.last_at(connection) is None and not tokens.any_there(connection)


def _key(path: Path) -> bytes:
    make_folder(path.parent)
    try:
        if not path.exists():
            _make(path)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read or made: {error.strerror}; agents trust this hub by it") from error
    if len(key) != _LENGTH:
        raise StoreError(
            f"{path} is damaged: it has {len(key)} bytes, not {_LENGTH}; put a copy of it in its place, or remove it"
            " and run `gpulse agent install` again for all nodes"
        )
    return key


def _make(path: Path) -> None:
    """Whole or not at all; of several who do so at once, the first wins."""
    new = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_LENGTH))
            file.flush()
            os.fsync(descriptor)
        try:
            os.link(new, path)
        except FileExistsError:
            return
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Nodes are told a key of it next: after a power cut it must still be there.
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        new.unlink(missing_ok=True)
