"""An account that is here already, and shall sign in elsewhere from now on."""

from sqlalchemy import Connection

from gpulse.auth import changing
from gpulse.auth.known import Rows
from gpulse.auth.noting import Actor, note
from gpulse.errors import AccountError
from gpulse.store import accounts, links
from gpulse.store.accounts import Account
from gpulse.store.hub import next_revision

_LONGEST = 255


def connect(
    connection: Connection, identity: str, issuer: str, subject: str, now: float, by: Actor
) -> tuple[Account, Rows]:
    """Its password and links end: who signs in elsewhere is kept out there. Sessions and keys stay."""
    if not 1 <= len(subject) <= _LONGEST or not subject.isprintable():
        raise AccountError(400, "bad_subject", "the subject is no id of a person", "copy it from the refusal")
    account = changing.found(connection, identity)
    other = accounts.by_subject(connection, issuer, subject)
    if other is not None and other.id != account.id:
        raise AccountError(
            409, "subject_taken", f"that is {other.name}, who has an account already", "nobody can have two"
        )
    account = accounts.change(
        connection, identity, next_revision(connection), issuer=issuer, subject=subject, password=None
    )
    links.remove_of(connection, identity)
    note(connection, now, by, "account.connect", account.name, issuer=issuer, subject=subject)
    return account, Rows([account])
