"""Who may ask, for tests: a hub that everybody may read, and one with people of every role."""

import asyncio
import atexit
import functools
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from argon2 import PasswordHasher

from gpulse.api.access import Access, Vouching
from gpulse.auth.directory import Directory
from gpulse.auth.passwords import Passwords
from gpulse.auth.roles import ROLES
from gpulse.auth.sessions import Begun
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Privacy
from gpulse.store import Records

PASSWORD = "correct horse battery staple"  # noqa: S105 - of accounts that tests make
# Names that tests ask the application by.
HOSTS = ("hub", "h", "testserver")
# As good as any for what is tested here, and a hundred times as fast.
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@functools.cache
def _directory() -> Directory:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    records = Records(Path(folder.name))
    return Directory(records, passwords=Passwords(QUICK))


def open_access() -> Access:
    """Everybody may read, and sees everything of everybody; nobody has an account."""
    settings = Config(access=AccessSettings(hosts=HOSTS), privacy=Privacy(others="full"))
    return Access(settings, _directory(), Vouching(None, None), anonymous=True)


class People(NamedTuple):
    """A hub's accounts: one for each role, named after it, with PASSWORD."""

    records: Records
    directory: Directory
    # By role.
    accounts: dict[str, str]

    def access(self, *, anonymous: bool = False, config: Config | None = None, **options: Any) -> Access:
        settings = config or Config(access=AccessSettings(hosts=HOSTS))
        vouching = Vouching.read(settings.access)
        return Access(settings, self.directory, vouching, anonymous=anonymous, **options)

    def session(self, role: str) -> Begun:
        """A new one."""
        return asyncio.run(self.directory.sessions.begin(self.accounts[role], "192.0.2.1", "a browser"))

    def cookie(self, begun: Begun) -> dict[str, str]:
        """What every port of the hub's machine is sent."""
        return {"Cookie": f"{self.access().cookies.name}={begun.cookie}"}

    def page(self, begun: Begun) -> dict[str, str]:
        """What a page of the hub sends."""
        return {**self.cookie(begun), "X-Gpulse": begun.page_key}

    def key(self, role: str, *scopes: str, expires_at: float | None = None) -> str:
        wanted = scopes or ("read", "write", "admin")
        return asyncio.run(self.directory.keys.create(self.accounts[role], "test", wanted, expires_at))


def make_people(folder: Path, **options: Any) -> People:
    """The records are the caller's to close."""
    records = Records(folder)
    directory = Directory(records, passwords=Passwords(QUICK), **options)
    accounts = {role: asyncio.run(directory.accounts.add(role, role, PASSWORD)).id for role in ROLES}
    return People(records, directory, accounts)
