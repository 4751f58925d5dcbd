"""The accounts of a data folder, for commands: who may write there may change them, whether a hub runs or not."""

import asyncio
import getpass
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gpulse.config import Config, database_url
from gpulse.errors import AccountError

if TYPE_CHECKING:
    from gpulse.auth.directory import Directory
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


def local_person() -> str:
    """Who works in the data folder, for the audit log."""
    return f"local: {getpass.getuser()}"
