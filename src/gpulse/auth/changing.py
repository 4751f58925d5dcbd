"""Accounts made and changed: what happens in the database, in one transaction each, with its entry in the audit log."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from gpulse.auth.account_names import checked, folded
from gpulse.auth.known import Rows
from gpulse.auth.noting import THE_HUB, Actor, Detail, note
from gpulse.auth.roles import Role
from gpulse.auth.secret_text import quoted
from gpulse.errors import AccountError, SignInRefused
from gpulse.store import accounts, feeds, keys, links, sessions
from gpulse.store.accounts import Account
from gpulse.store.hub import next_revision

_LONGEST_DISPLAY = 100


class Change(NamedTuple):
    """The changes an admin makes to an account; None leaves a value as it is."""

    role: Role | None = None
    display: str | None = None
    # Its hash, once it is written.
    password: str | None = None
    disabled: bool | None = None


def add(
    connection: Connection,
    name: str,
    role: Role,
    now: float,
    *,
    display: str = "",
    password: str | None = None,
    external: tuple[str, str] | None = None,
    by: Actor = THE_HUB,
) -> tuple[Account, Rows]:
    """`password` is its hash, `external` an issuer and what the account is called there."""
    name = checked(name)
    taken = accounts.by_folded(connection, folded(name))
    if taken is not None:
        how = "is" if taken.name == name else f"differs only by case from {taken.name}, which is"
        raise AccountError(
            409, "name_taken", f"{name} {how} an account already", "take another name, or change that one"
        )
    issuer, subject = external or (None, None)
    account = Account(
        id=secrets.token_hex(6),
        name=name,
        folded=folded(name),
        display=shown(display),
        role=role,
        has_password=password is not None,
        issuer=issuer,
        subject=subject,
        created_at=now,
        signed_in_at=None,
        disabled_at=None,
        revision=next_revision(connection),
    )
    accounts.add(connection, account, password)
    told = {} if issuer is None else {"issuer": issuer}
    note(connection, now, by, "account.add", name, role=role, **told)
    return account, Rows([account])


def set_role(
    connection: Connection, identity: str, role: Role, now: float, by: Actor, *, told_elsewhere: bool = False
) -> tuple[Account, Rows]:
    """`told_elsewhere`: by whom the account signs in with, whose word counts also for the last admin."""
    account = found(connection, identity)
    if account.role == role:
        return account, Rows()
    if not told_elsewhere:
        _keep_an_admin(connection, account)
    note(connection, now, by, "account.role", account.name, role_before=account.role, role=role)
    account = accounts.change(connection, identity, next_revision(connection), role=role)
    return account, Rows([account])


def set_display(connection: Connection, identity: str, display: str, now: float, by: Actor) -> tuple[Account, Rows]:
    account = found(connection, identity)
    if account.display == shown(display):
        return account, Rows()
    note(connection, now, by, "account.display", account.name, display=shown(display))
    account = accounts.change(connection, identity, next_revision(connection), display=shown(display))
    return account, Rows([account])


def mark_sign_in(connection: Connection, identity: str, now: float) -> tuple[Account, Rows]:
    """Of who signs in elsewhere, and has no session here that would tell."""
    account = accounts.change(connection, identity, next_revision(connection), signed_in_at=now)
    return account, Rows([account])


def set_password(
    connection: Connection, identity: str, password: str, now: float, by: Actor, *, keep_session: str, revoke_keys: bool
) -> tuple[Account, Rows]:
    """Whoever was signed in with the old one is no longer, but for one session; keys stay unless they are to go too."""
    account = found(connection, identity)
    refuse_external(account)
    revision = next_revision(connection)
    account = accounts.change(connection, identity, revision, password=password)
    others = [row for row in sessions.standing(connection, identity) if row.id != keep_session]
    links.remove_of(connection, identity)
    gone = keys.standing(connection, identity) if revoke_keys else []
    told: dict[str, Detail] = {}
    if revoke_keys:
        told = {"keys": sum(row.live(now) for row in gone), "calendars": feeds.revoke_all(connection, identity, now)}
    note(connection, now, by, "account.password", account.name, **told)
    return account, Rows(
        [account],
        sessions.end(connection, others, now, revision),
        keys.end(connection, gone, now, revision),
    )


def change(connection: Connection, identity: str, wanted: Change, now: float, by: Actor) -> tuple[Account, Rows]:
    """Change all of it; what can't be raises, and the transaction takes the rest back."""
    done = [(found(connection, identity), Rows())]
    if wanted.display is not None:
        done.append(set_display(connection, identity, wanted.display, now, by))
    if wanted.role is not None:
        done.append(set_role(connection, identity, wanted.role, now, by))
    if wanted.password is not None:
        done.append(set_password(connection, identity, wanted.password, now, by, keep_session="", revoke_keys=False))
    if wanted.disabled is not None:
        done.append((disable if wanted.disabled else enable)(connection, identity, now, by))
    return done[-1][0], _together([rows for _, rows in done])


def disable(connection: Connection, identity: str, now: float, by: Actor) -> tuple[Account, Rows]:
    """With all that signs it in; nothing of that comes back when it is enabled again."""
    account = found(connection, identity)
    if not account.live:
        return account, Rows()
    _keep_an_admin(connection, account)
    revision = next_revision(connection)
    account = accounts.change(connection, identity, revision, disabled_at=now)
    note(connection, now, by, "account.disable", account.name)
    links.remove_of(connection, identity)
    feeds.revoke_all(connection, identity, now)
    return account, Rows(
        [account],
        sessions.end(connection, sessions.standing(connection, identity), now, revision),
        keys.end(connection, keys.standing(connection, identity), now, revision),
    )


def disable_all(connection: Connection, identities: Sequence[str], now: float, by: Actor) -> tuple[None, Rows]:
    """All of them, or none where one of them may not be."""
    rows = [disable(connection, identity, now, by)[1] for identity in identities]
    return None, _together(rows)


def _together(rows: Sequence[Rows]) -> Rows:
    """Return them as one, in the order in which they were written."""
    return Rows(
        [account for one in rows for account in one.accounts],
        [session for one in rows for session in one.sessions],
        [key for one in rows for key in one.keys],
    )


def enable(connection: Connection, identity: str, now: float, by: Actor) -> tuple[Account, Rows]:
    account = found(connection, identity)
    if account.live:
        return account, Rows()
    account = accounts.change(connection, identity, next_revision(connection), disabled_at=None)
    note(connection, now, by, "account.enable", account.name)
    return account, Rows([account])


def found(connection: Connection, identity: str) -> Account:
    account = accounts.by_id(connection, identity)
    if account is None:
        raise AccountError(404, "account_unknown", f"there is no account {quoted(identity)}", "list those there are")
    return account


def live(connection: Connection, identity: str) -> Account:
    """As it is now: it may have been disabled since it was last read."""
    account = found(connection, identity)
    if not account.live:
        raise disabled(account)
    return account


def disabled(account: Account) -> SignInRefused:
    return SignInRefused(403, "account_disabled", f"the account {account.name} is disabled", "ask an admin of this hub")


def refuse_external(account: Account) -> None:
    if account.issuer is not None:
        raise AccountError(
            409,
            "signs_in_elsewhere",
            f"{account.name} signs in by {account.issuer:.100}",
            "it has no password here; set its role and password there",
        )


def shown(display: str) -> str:
    return "".join(one for one in display if one.isprintable()).strip()[:_LONGEST_DISPLAY]


def _keep_an_admin(connection: Connection, account: Account) -> None:
    if account.role == "admin" and account.live and accounts.live_admins(connection) == 1:
        raise AccountError(
            409, "last_admin", f"{account.name} is the last admin", "make another account an admin first"
        )
