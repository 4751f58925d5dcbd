"""The file of a backup: a zip with a head, a file of JSON lines for each table, and digests that show damage.

It has no database's own format, so that it can be restored into another one.
"""

import errno
import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from gpulse.errors import StoreError

FORMAT = 1
_HEAD, _DIGESTS = "head.json", "digests.json"
_LINES = ".jsonl"
# What a damaged zip, or what is none, is told by: the library believes the numbers in it.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    msgspec.MsgspecError,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)

Kind = Literal["text", "whole", "number", "truth", "bytes"]
_TYPES: dict[Kind, Any] = {"text": str, "whole": int, "number": float, "truth": bool, "bytes": bytes}


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind


class TableHead(msgspec.Struct, frozen=True):
    name: str
    fields: tuple[Field, ...]


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the file. Tables stand after those that they refer to."""

    gpulse_backup: int = FORMAT
    # The last step of the migration that the tables are of.
    schema: str
    made_by: str
    made_at: float
    tables: tuple[TableHead, ...]


class Digest(msgspec.Struct, frozen=True):
    rows: int
    sha256: str


class Digests(msgspec.Struct, frozen=True):
    head: str
    tables: dict[str, Digest]


class BackupWriter:
    """Writes the head at once, then the tables in the order they come, and the digests at the end."""

    def __init__(self, path: Path, head: Head) -> None:
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False)
        text = msgspec.json.encode(head)
        self._archive.writestr(_HEAD, text)
        self._head = hashlib.sha256(text).hexdigest()
        self._digests: dict[str, Digest] = {}

    def table(self, name: str, rows: Iterable[Sequence[object]]) -> None:
        digest, count = hashlib.sha256(), 0
        encoder = msgspec.json.Encoder()
        with self._archive.open(name + _LINES, "w", force_zip64=True) as member:
            for row in rows:
                line = encoder.encode(tuple(row)) + b"\n"
                member.write(line)
                digest.update(line)
                count += 1
        self._digests[name] = Digest(count, digest.hexdigest())

    def finish(self) -> None:
        self._archive.writestr(_DIGESTS, msgspec.json.encode(Digests(self._head, self._digests)))
        self._archive.close()

    def abandon(self) -> None:
        self._archive.close()


class BackupFile:
    """A backup that is read; StoreError where it is none, or damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except (OSError, *_DAMAGE) as error:
            raise self._unreadable(error) from error
        try:
            text = self._archive.read(_HEAD)
            self.head = msgspec.json.decode(text, type=Head)
            self._digests = msgspec.json.decode(self._archive.read(_DIGESTS), type=Digests)
            whole = hashlib.sha256(text).hexdigest() == self._digests.head
        except (OSError, *_DAMAGE) as error:
            self._archive.close()
            raise self._unreadable(error) from error
        if not whole or [table.name for table in self.head.tables] != list(self._digests.tables):
            self._archive.close()
            raise self._damaged()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    @property
    def count(self) -> int:
        """The rows of all tables."""
        return sum(digest.rows for digest in self._digests.tables.values())

    def check(self) -> None:
        """Reads all of it once, before anything is changed because of it."""
        for table in self.head.tables:
            digest, count = hashlib.sha256(), 0
            for line in self._lines(table.name):
                digest.update(line)
                count += 1
            if Digest(count, digest.hexdigest()) != self._digests.tables[table.name]:
                raise self._damaged()

    def rows(self, table: TableHead) -> Iterator[tuple[Any, ...]]:
        decoder = msgspec.json.Decoder(tuple[tuple(_TYPES[field.kind] | None for field in table.fields)])  # type: ignore[misc] # made of the file's own words
        for line in self._lines(table.name):
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise self._damaged() from error

    def _lines(self, name: str) -> Iterator[bytes]:
        try:
            with self._archive.open(name + _LINES) as member:
                yield from member
        except (OSError, *_DAMAGE) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: BaseException) -> StoreError:
        # A place before the file's beginning is no fault of the disk.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            return StoreError(f"{self._path} cannot be read: {error.strerror or error}")
        return self._damaged()

    def _damaged(self) -> StoreError:
        return StoreError(f"{self._path} is no backup of gpulse, or is damaged; take another one")
