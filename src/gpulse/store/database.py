"""What the records need of a database, whichever it is."""

from collections.abc import Mapping
from typing import Literal, Protocol

from sqlalchemy import Connection

from gpulse.errors import StoreError

# What a transaction is for: one statement, which needs none; to see one state; to be the only one that writes; or to
# change the tables themselves.
Kind = Literal["ask", "read", "write", "migrate"]


class Database(Protocol):
    """Used by one thread. `connect` raises StoreErrors."""

    # What errors call it, and what else a person could use: a whole clause. Nothing secret is in either.
    name: str
    elsewhere: str

    @property
    def begins(self) -> Mapping[Kind, tuple[str, ...]]:
        """The statements that a transaction of each kind begins with."""

    def connect(self) -> Connection:
        """A connection on which transactions begin by a statement; others can see that the database is in use."""

    def check(self) -> None:
        """Raise StoreError if what is connected to is no longer what others find; called before each transaction."""

    def release(self) -> None:
        """It is no longer in use."""

    def written(self) -> None:
        """A transaction that wrote is done, and was ours."""

    def version(self, connection: Connection) -> int:
        """Another number after others have written, by one statement."""

    def explained(self, error: BaseException) -> StoreError | None:
        """What the driver reports, in words that say what to do; None where it is a mistake of ours."""
