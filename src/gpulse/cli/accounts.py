"""The accounts of a data folder, for commands: who may write there may change them, whether a hub runs or not."""

import asyncio
import getpass
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gpulse.config import Config, database_url
from gpulse.errors import AccountError

if TYPE_CHECKING:
    from gpulse.auth.directory import Directory
    from gpulse.auth.noting import Actor
    from gpulse.store.accounts import Account

T = TypeVar("T")


def with_directory(settings: Config, data: Path | None, work: "Callable[[Directory], Coroutine[Any, Any, T]]") -> T:
    # Loaded here: other commands need no database.
    from gpulse.auth.directory import Directory
    from gpulse.store import Records

    with Records(data or settings.hub.data, database_url(settings.store)) as records:
        return asyncio.run(work(Directory(records)))


def named(directory: "Directory", name: str) -> "Account":
    account = directory.accounts.by_name(name)
    if account is None:
        raise AccountError(
            404, "account_unknown", f"there is no account {name!r:.100}", "gpulse user list shows those there are"
        )
    return account


def by_local_person() -> "Actor":
    """Who works in the data folder, for the audit log."""
    from gpulse.auth.noting import actor

    return actor(f"local: {login_name()}")


def login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container nobody may have given this user a name.
        return f"uid{os.getuid()}"
