"""[store]: which database the records are in."""

import os
from pathlib import Path

import msgspec

from gpulse.config.checks import Tell
from gpulse.config.files import read_bytes, reason
from gpulse.errors import ConfigError

# Wins over the file: a container gets its secrets that way.
VARIABLE = "GPULSE_STORE_URL"
_SCHEMES = ("postgresql://", "postgres://")
_SHAPE = "postgresql://USER@HOST:PORT/DATABASE"


class Store(msgspec.Struct, frozen=True):
    """[store]: a PostgreSQL server for the records, instead of a file in the data folder."""

    url: str | None = None
    url_file: Path | None = None


def check_store(given: Store, tell: Tell) -> None:
    """The URL is never shown: a password may stand in it."""
    if given.url is not None and not given.url.startswith(_SCHEMES):
        tell(("store", "url"), f"is no address of a database; allowed: {_SHAPE}")


def database_url(given: Store) -> str | None:
    """The database to use: of the environment, else of the file with a URL, else of the settings; None is a file."""
    told = os.environ.get(VARIABLE)
    if told:
        return _checked(told.strip(), VARIABLE)
    if given.url_file is None:
        return given.url
    try:
        text = read_bytes(given.url_file).decode("utf-8")
    except OSError as error:
        raise ConfigError([f"store.url_file: {given.url_file} cannot be read: {reason(error)}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"store.url_file: {given.url_file} is not UTF-8 text"]) from error
    return _checked(text.strip(), f"store.url_file: {given.url_file}")


def _checked(url: str, where: str) -> str:
    if not url.startswith(_SCHEMES) or "\n" in url:
        raise ConfigError([f"{where}: is no address of a database; write {_SHAPE}"])
    return url
