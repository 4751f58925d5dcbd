"""The accounts: who may sign in, and as what. Asked from memory; changes reach the disk before they are told."""

import time
from collections import Counter
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from gpulse.auth import changing, connecting
from gpulse.auth.account_names import checked, folded
from gpulse.auth.attempts import place
from gpulse.auth.changing import Change
from gpulse.auth.known import Known, Rows
from gpulse.auth.noting import THE_HUB, Actor
from gpulse.auth.passwords import Passwords
from gpulse.auth.proxy import ISSUER
from gpulse.auth.roles import Role, role_of
from gpulse.auth.secret_text import quoted
from gpulse.auth.sessions import Sessions
from gpulse.auth.views import AccountView
from gpulse.errors import AccountError, SignInRefused
from gpulse.fleet.names import natural
from gpulse.store import accounts as table
from gpulse.store.accounts import Account

_LONGEST_SUBJECT = 255
# A proxy signs in with every request: when it last did is kept to the hour.
_SEEN_SECONDS = 3600.0


class Accounts:
    """`account` is an account's id everywhere. A name is found whatever its case."""

    def __init__(
        self, known: Known, sessions: Sessions, passwords: Passwords, clock: Callable[[], float] = time.time
    ) -> None:
        self._known = known
        self._sessions = sessions
        self._passwords = passwords
        self._clock = clock

    def by_id(self, account: str) -> Account | None:
        return self._known.accounts.get(account)

    def by_name(self, name: str) -> Account | None:
        return self._known.accounts.get(self._known.names.get(folded(name), ""))

    def by_subject(self, issuer: str, subject: str) -> Account | None:
        return self._known.accounts.get(self._known.subjects.get((issuer, subject), ""))

    def list(self) -> Sequence[AccountView]:
        """By name, those that are disabled last."""
        now = self._clock()
        sessions = Counter(row.account for row in self._known.sessions.values() if self._sessions.live(row, now))
        keys = Counter(row.account for row in self._known.keys.values() if row.live(now))
        ordered = sorted(self._known.accounts.values(), key=lambda one: (not one.live, natural(one.name)))
        return [_view(one, sessions[one.id], keys[one.id]) for one in ordered]

    def view(self, account: str) -> AccountView:
        """AccountError where there is none."""
        there = self._there(account)
        return next(one for one in self.list() if one.id == there.id)

    async def add(
        self, name: str, role: Role, password: str | None = None, display: str = "", *, by: Actor = THE_HUB
    ) -> Account:
        """AccountError where the name is taken, also by one that differs by case alone, or the password is none."""
        wanted, good = role_of(role), checked(name)
        encoded = None if password is None else await self._passwords.hash(password, good)
        return await self._known.write(
            lambda one: changing.add(one, good, wanted, self._clock(), display=display, password=encoded, by=by)
        )

    async def set_role(self, account: str, role: Role, *, by: Actor = THE_HUB) -> Account:
        wanted = role_of(role)
        return await self._known.write(lambda one: changing.set_role(one, account, wanted, self._clock(), by))

    async def set_display(self, account: str, display: str, *, by: Actor = THE_HUB) -> Account:
        return await self._known.write(lambda one: changing.set_display(one, account, display, self._clock(), by))

    async def change(self, account: str, wanted: Change, *, by: Actor = THE_HUB) -> Account:
        """Change everything that is wanted, or nothing if one part of it can't be."""
        if wanted.password is not None:
            there = self._there(account)
            changing.refuse_external(there)
            wanted = wanted._replace(password=await self._passwords.hash(wanted.password, there.name))
        return await self._known.write(lambda one: changing.change(one, account, wanted, self._clock(), by))

    async def disable(self, account: str, *, by: Actor = THE_HUB) -> Account:
        """Ends its sessions, keys and links at once, for good."""
        return await self._known.write(lambda one: changing.disable(one, account, self._clock(), by))

    async def disable_all(self, accounts: Sequence[str], *, by: Actor = THE_HUB) -> None:
        """All of them, or none where one of them may not be."""
        await self._known.write(lambda one: changing.disable_all(one, accounts, self._clock(), by))

    async def enable(self, account: str, *, by: Actor = THE_HUB) -> Account:
        return await self._known.write(lambda one: changing.enable(one, account, self._clock(), by))

    async def set_password(
        self,
        account: str,
        password: str,
        keep_session: str = "",
        *,
        revoke_keys: bool = False,
        by: Actor = THE_HUB,
    ) -> Account:
        """Ends its links and its sessions, but for one, and its keys if asked: whoever knew the old password is out."""
        there = self._there(account)
        changing.refuse_external(there)
        encoded = await self._passwords.hash(password, there.name)
        return await self._known.write(
            lambda one: changing.set_password(
                one, account, encoded, self._clock(), by, keep_session=keep_session, revoke_keys=revoke_keys
            )
        )

    async def check_password(self, name: str, password: str, address: str = "") -> Account:
        """Return whose they are; refuse in the same time and words whether there is such an account or not."""
        # Another process may have made or disabled it this moment.
        await self._known.look()
        account = self.by_name(name)
        asked = "" if account is None else account.id
        encoded = await self._known.read(lambda one: table.password_hash(one, asked))
        right = await self._passwords.verify(encoded, password, place(address))
        if account is None or not right:
            raise SignInRefused(
                401,
                "wrong_password",
                "the name or the password is wrong",
                "ask an admin of this hub for a sign-in link",
            )
        if not account.live:
            raise changing.disabled(account)
        return account

    async def upsert_external(
        self, issuer: str, subject: str, name: str, role: Role, display: str = "", *, address: str = ""
    ) -> Account:
        """The account of somebody whom another vouches for, made where there is none.

        It keeps the name it was made with: who can change what they are called elsewhere must not become another
        person here. A name that is another account's is refused.
        """
        if not 1 <= len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
            raise AccountError(
                400, "bad_subject", f"{issuer:.100} tells no id of {quoted(name, 100)}", "look at its settings"
            )
        wanted, display = role_of(role), changing.shown(display)
        known = self.by_subject(issuer, subject)
        if known is not None and not known.live:
            raise changing.disabled(known)
        noted = known is not None and self._clock() - (known.signed_in_at or 0.0) < _SEEN_SECONDS
        if known is not None and noted and (known.role, known.display) == (wanted, display):
            return known

        def work(connection: Connection) -> tuple[Account, Rows]:
            now, by = self._clock(), Actor(name, "proxy" if issuer == ISSUER else "oidc", address)
            there = table.by_subject(connection, issuer, subject)
            if there is None:
                external = (issuer, subject)
                there, _ = changing.add(connection, name, wanted, now, display=display, external=external, by=by)
            if not there.live:
                raise changing.disabled(there)
            by = by._replace(name=there.name)
            changing.set_role(connection, there.id, wanted, now, by, told_elsewhere=True)
            changing.set_display(connection, there.id, display, now, by)
            return changing.mark_sign_in(connection, there.id, now)

        return await self._known.write(work)

    async def connect(self, account: str, issuer: str, subject: str, *, by: Actor = THE_HUB) -> Account:
        """It signs in by another from now on, and has no password here any more."""
        return await self._known.write(lambda one: connecting.connect(one, account, issuer, subject, self._clock(), by))

    async def operator(self, name: str, *, by: Actor = THE_HUB) -> Account:
        """The account of the person who runs the hub; where there is none it is made, as an admin."""

        def work(connection: Connection) -> tuple[Account, Rows]:
            there = table.by_folded(connection, folded(checked(name)))
            if there is not None:
                return there, Rows([there])
            return changing.add(connection, name, "admin", self._clock(), by=by)

        return await self._known.write(work)

    def _there(self, account: str) -> Account:
        found = self.by_id(account)
        if found is None:
            raise AccountError(404, "account_unknown", f"there is no account {quoted(account)}", "list those there are")
        return found


def _view(one: Account, sessions: int, keys: int) -> AccountView:
    return AccountView(
        id=one.id,
        name=one.name,
        display=one.display,
        role=role_of(one.role),
        disabled=not one.live,
        has_password=one.has_password,
        issuer=one.issuer,
        created_at=one.created_at,
        signed_in_at=one.signed_in_at,
        sessions=sessions,
        keys=keys,
    )
