"""Keys, `gpk_ID_SECRET`: what people's programs show, so that they need no password."""

import hmac
import secrets
import time
from collections.abc import Callable, Collection, Sequence

from sqlalchemy import Connection

from gpulse.auth import changing, secret_text
from gpulse.auth.identity import ALL_SCOPES, SCOPES, Identity
from gpulse.auth.known import Known, Rows
from gpulse.auth.noting import THE_HUB, Actor, note
from gpulse.auth.pace import Pace
from gpulse.auth.roles import role_of
from gpulse.auth.views import KeyState, KeyView
from gpulse.errors import AccountError, SignInRefused
from gpulse.store import feeds
from gpulse.store import keys as table
from gpulse.store.accounts import Account
from gpulse.store.hub import next_revision
from gpulse.store.keys import KeyRow

PREFIX = "gpk"
_DAY = 86400.0
# How long a key lasts where nobody says, and at most.
USUAL_SECONDS, LONGEST_SECONDS = 90 * _DAY, 400 * _DAY
# Keys and calendars of people who sign in elsewhere rest when they have not done so for this long.
REST_SECONDS = 90 * _DAY
# When one was last used is kept to the minute.
_USED_SECONDS = 60.0
_MOST = 100
_LONGEST_LABEL = 100


class Keys:
    """A key may do what its scopes say, and no more than its owner's role at the moment it is used.

    `used` has those whose last use is not in the database yet.
    """

    def __init__(self, known: Known, clock: Callable[[], float] = time.time, pace: Pace | None = None) -> None:
        self._known = known
        self._clock = clock
        self._pace = pace or Pace()
        self.used: dict[str, float] = {}
        # Proofs for ids that no key has look like any other.
        self._decoy = secrets.token_bytes(32)

    async def create(
        self,
        account: str,
        label: str,
        scopes: Collection[str],
        expires_at: float | None = None,
        *,
        by: Actor = THE_HUB,
    ) -> str:
        """The key's text, which is nowhere else; AccountError where it cannot be. Every key ends."""
        name, wanted = _label(label), _scopes(scopes)
        ends = self._end(expires_at)
        self._pace.take(account)
        text, parts = secret_text.make(PREFIX)

        def work(connection: Connection) -> tuple[None, Rows]:
            changing.live(connection, account)
            now = self._clock()
            if sum(row.live(now) for row in table.standing(connection, account)) >= _MOST:
                raise AccountError(409, "too_many_keys", f"there are {_MOST} keys already", "revoke one first")
            row = _row(parts, account, name, wanted, now, ends, next_revision(connection))
            table.add(connection, row)
            note(connection, now, by, "key.make", row.id, label=name, scopes=wanted.split(","), expires_at=ends)
            return None, Rows(keys=[row])

        await self._known.write(work)
        return text

    def check(self, text: str) -> Identity:
        """Whose key it is; SignInRefused where it is none, or no longer one. The refusal never repeats the text."""
        parts = secret_text.read(text)
        if parts is None or parts.prefix != PREFIX:
            raise SignInRefused(401, "key_malformed", "this is no key: one is gpk_ID_SECRET", "was all of it copied?")
        row = self._known.keys.get(parts.id)
        same = hmac.compare_digest(secret_text.NO_DIGEST if row is None else row.digest, parts.digest)
        if row is None or not same:
            # Also where only the secret is wrong: who has no key learns nothing of those there are.
            raise SignInRefused(
                401, "key_unknown", "this hub does not know this key", "make one on your account's page"
            )
        refused = self._against(row)
        if refused is not None:
            raise refused
        self._note(row)
        return self._identity(row)

    def current(self, key: str) -> Identity | None:
        """Who it is now, of a key that was checked once; None where it has come to its end."""
        row = self._known.keys.get(key)
        return None if row is None or self._against(row) is not None else self._identity(row)

    def proof(self, key: str, nonce: str, up_milliseconds: int) -> str:
        """Return what only this hub and the holder of the key can compute, so that the holder knows the hub.

        It tells nothing about the key, nor whether there is one with this id.
        """
        row = self._known.keys.get(key)
        decoy = hmac.digest(self._decoy, key.encode("utf-8", "surrogatepass"), "sha256")
        return secret_text.proof(decoy if row is None else row.digest, nonce, up_milliseconds)

    async def revoke(self, key: str, account: str | None = None, *, by: Actor = THE_HUB) -> KeyView:
        """AccountError where there is no such live key, of that account where one is given."""

        def work(connection: Connection) -> tuple[KeyRow, Rows]:
            row = table.by_id(connection, key)
            if row is None or row.ended_at is not None or account not in (None, row.account):
                raise AccountError(
                    404, "key_unknown", f"there is no key {secret_text.quoted(key)}", "list those there are"
                )
            now = self._clock()
            note(connection, now, by, "key.revoke", row.id, label=row.label)
            rows = table.end(connection, [row], now, next_revision(connection))
            return rows[0], Rows(keys=rows)

        return _view(await self._known.write(work), self._clock())

    async def revoke_all(self, account: str, *, by: Actor = THE_HUB) -> int:
        """How many of the account were live; the addresses of its calendars end with them."""

        def work(connection: Connection) -> tuple[int, Rows]:
            name, now = changing.found(connection, account).name, self._clock()
            rows = table.standing(connection, account)
            count = sum(row.live(now) for row in rows)
            calendars = feeds.revoke_all(connection, account, now)
            note(connection, now, by, "key.revoke_all", name, keys=count, calendars=calendars)
            return count, Rows(keys=table.end(connection, rows, now, next_revision(connection)))

        return await self._known.write(work)

    def list(self, account: str) -> Sequence[KeyView]:
        """The newest first, with those that have come to their end lately."""
        rows = [row for row in self._known.keys.values() if row.account == account]
        return [_view(row, self._clock()) for row in sorted(rows, key=lambda row: -row.created_at)]

    def _end(self, wanted: float | None) -> float:
        now = self._clock()
        if wanted is None:
            return now + USUAL_SECONDS
        if not now < wanted < float("inf"):
            raise AccountError(400, "bad_expiry", "the key would be at its end already", "give a time that is to come")
        # People choose "400 days from now" a moment before it is checked, by another clock.
        if wanted > now + LONGEST_SECONDS + _DAY:
            raise AccountError(
                400,
                "bad_expiry",
                f"a key lasts {LONGEST_SECONDS / _DAY:.0f} days at most",
                "make another one before it ends",
            )
        return wanted

    def _against(self, row: KeyRow) -> SignInRefused | None:
        if row.expired(self._clock()):
            return SignInRefused(401, "key_expired", f"the key {row.id} is at its end", "make another one")
        if row.ended_at is not None:
            return SignInRefused(401, "key_revoked", f"the key {row.id} was revoked", "make another one")
        account = self._known.live(row.account)
        if account is None:
            return SignInRefused(
                401, "account_disabled", f"the account of the key {row.id} is disabled", "ask an admin of this hub"
            )
        if rests(account, row.created_at, self._clock()):
            return SignInRefused(
                401,
                "key_rests",
                f"the key {row.id} rests: {account.name} has not signed in for {REST_SECONDS / _DAY:.0f} days",
                f"it works again once {account.name} has signed in",
            )
        return None

    def _identity(self, row: KeyRow) -> Identity:
        account = self._known.accounts[row.account]
        scopes = frozenset(row.scopes.split(",")) & ALL_SCOPES
        return Identity(account.name, role_of(account.role), account.id, "key", scopes, row.id)

    def _note(self, row: KeyRow) -> None:
        now = self._clock()
        if row.id in self._known.keys and (row.used_at is None or now - row.used_at >= _USED_SECONDS):
            self._known.keys[row.id] = row._replace(used_at=now)
            self.used[row.id] = now


def rests(account: Account, made_at: float, now: float) -> bool:
    """Whether the owner, who signs in elsewhere, has not done so for long: nobody tells the hub who has left.

    Then what opens something without a sign-in, and was made at `made_at`, must not go on.
    """
    return account.issuer is not None and now - (account.signed_in_at or made_at) > REST_SECONDS


def _row(
    parts: secret_text.Parts,
    account: str,
    label: str,
    scopes: str,
    now: float,
    expires_at: float | None,
    revision: int,
) -> KeyRow:
    return KeyRow(
        id=parts.id,
        account=account,
        digest=parts.digest,
        label=label,
        scopes=scopes,
        created_at=now,
        expires_at=expires_at,
        used_at=None,
        ended_at=None,
        revision=revision,
    )


def _label(label: str) -> str:
    told = "".join(one for one in label if one.isprintable()).strip()
    # Who pastes a key where its name belongs must not find it in a list.
    told = secret_text.without_secrets(told)[:_LONGEST_LABEL]
    if not told:
        raise AccountError(400, "bad_label", "a key needs a name", 'say what it is for, such as "backup script"')
    return told


def _scopes(scopes: Collection[str]) -> str:
    unknown = sorted(set(scopes) - ALL_SCOPES)
    if unknown or not scopes:
        what = f"{secret_text.quoted(unknown[0])} is no scope" if unknown else "a key needs a scope"
        raise AccountError(400, "bad_scope", what, f"there are {', '.join(SCOPES)}")
    return ",".join(one for one in SCOPES if one in scopes)


def _view(row: KeyRow, now: float) -> KeyView:
    state: KeyState = "live" if row.live(now) else "expired" if row.expired(now) else "revoked"
    return KeyView(
        id=row.id,
        label=row.label,
        scopes=row.scopes.split(","),
        state=state,
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        ended_at=row.ended_at,
    )
