"""Who is signed in here, and what they look after themselves: their keys, browsers and password."""

import shlex
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.auth.identity import Identity, Way
from gpulse.auth.noting import actor
from gpulse.auth.roles import Role
from gpulse.auth.views import KeyView, SessionView
from gpulse.errors import RequestError, SignInRefused
from gpulse.fleet.sight import Level

# Of everything that people send about accounts.
SMALL_BODY = 4096
BODY_ERRORS = (400, 406, 408, 413, 415, 503)
Scope = Literal["read", "write", "metrics", "admin"]
_KEY = {"key": "The key's id."}
_SESSION = {"session": "The session's id."}


class MeView(msgspec.Struct, kw_only=True):
    """Who asks, and how they could sign in."""

    # Null: nobody has signed in.
    name: str | None
    display: str
    # Null: may not even read.
    role: Role | None
    way: Way
    may_read: bool
    # What is seen of others.
    sight: Level
    # Whether there is a password to change.
    has_password: bool
    # Whether a new one needs it: not where there is none, nor within 15 minutes after signing in by a link.
    needs_old_password: bool
    # Whether there may be one: not for those who sign in by single sign-on.
    may_have_password: bool
    sign_in: list[Literal["password", "oidc"]]
    # What single sign-on is called here; null: there is none.
    sso: str | None
    # What the page of a new session sends as X-Gpulse; told once, in the answer to the sign-in.
    page_key: str | None = None
    # Why somebody whom a proxy has signed in is nobody here, in words; null: there is no such reason.
    refused: str | None = None


class OwnKeys(msgspec.Struct, kw_only=True):
    """The keys of an account, the newest first."""

    items: list[KeyView]


class NewKey(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A key that is to be made."""

    label: Annotated[str, Meta(min_length=1, max_length=200, description="What it is for.")]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=4, description="What it may do at most.")]
    expires_at: (
        Annotated[float, Meta(description="When it ends: seconds since 1970, 400 days ahead at most; else in 90 days.")]
        | UnsetType
    ) = UNSET


class MadeKey(msgspec.Struct, kw_only=True):
    """A new key; it is told only here."""

    key: str
    # When it ends.
    expires_at: float | None


class OwnSessions(msgspec.Struct, kw_only=True):
    """The browsers an account is signed in with, the last seen first."""

    items: list[SessionView]
    # Which of them asks; null: none.
    this: str | None


class NewPassword(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The password that was, empty where there was none, and the one that shall be."""

    old: str
    new: str
    revoke_keys: Annotated[bool, Meta(description="Also revoke the keys of the account.")] = False


class Done(msgspec.Struct, kw_only=True):
    """It is as it was asked for."""

    done: Literal[True] = True


DONE = Done(done=True)


def me_view(hub: Hub, who: Identity, page_key: str | None = None) -> MeView:
    access = hub.access
    account = access.directory.accounts.by_id(who.account) if who.account is not None else None
    ways: list[Literal["password", "oidc"]] = ["password", "oidc"] if access.sso is not None else ["password"]
    return MeView(
        name=who.name,
        display=account.display if account is not None else "",
        role=who.role,
        way=who.way,
        may_read=who.role is not None,
        sight=access.sight(who).level,
        has_password=account is not None and account.has_password,
        needs_old_password=access.directory.needs_old_password(who),
        may_have_password=account is not None and account.issuer is None,
        sign_in=ways,
        sso=access.sso.settings.label if access.sso is not None else None,
        page_key=page_key,
    )


def _wrong_old(name: str) -> SignInRefused:
    return SignInRefused(
        401,
        "wrong_password",
        "the old password is wrong",
        "for 15 minutes after signing in by a link it is not asked for:"
        f" gpulse user link {shlex.quote(name)} makes one",
    )


def own_account(who: Identity) -> str:
    """The id of the account of somebody who is signed in."""
    if who.account is None:
        raise RequestError(401, "sign_in", "sign in first")
    return who.account


def refuse_keys(who: Identity) -> None:
    """What a key must not do, whatever its scopes: make itself more, or last longer, than it was made for."""
    if who.way == "key":
        raise RequestError(403, "not_by_key", "a key cannot do this", "sign in in a browser")


async def get_me(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> MeView:
    del query, path
    told, refused = me_view(hub, incoming.who), incoming.refused
    if refused is not None:
        told.refused = f"{refused.message}; {refused.detail}"
    return told


async def list_keys(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> OwnKeys:
    del query, path
    return OwnKeys(items=list(hub.access.directory.keys.list(own_account(incoming.who))))


async def make_key(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> MadeKey:
    del query, path
    refuse_keys(incoming.who)
    wanted = decode(incoming.body, NewKey)
    directory, account = hub.access.directory, own_account(incoming.who)
    expires_at = None if isinstance(wanted.expires_at, UnsetType) else wanted.expires_at
    made = await directory.keys.create(
        account, wanted.label, wanted.scopes, expires_at, by=actor(incoming.who, incoming.address)
    )
    until = next((one.expires_at for one in directory.keys.list(account) if one.id == made.split("_")[1]), None)
    return MadeKey(key=made, expires_at=until)


async def revoke_key(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Done:
    del query
    keys, by = hub.access.directory.keys, actor(incoming.who, incoming.address)
    await keys.revoke(path["key"], own_account(incoming.who), by=by)
    return DONE


async def list_sessions(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> OwnSessions:
    del query, path
    items = list(hub.access.directory.sessions.list(own_account(incoming.who)))
    return OwnSessions(items=items, this=incoming.who.credential if incoming.who.way == "session" else None)


async def end_session(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Done:
    del query
    sessions, by = hub.access.directory.sessions, actor(incoming.who, incoming.address)
    if not await sessions.end(path["session"], own_account(incoming.who), by=by):
        raise RequestError(
            404, "unknown_session", f"there is no session {path['session']!r:.40}", "list those there are"
        )
    return DONE


async def set_password(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Done:
    del query, path
    refuse_keys(incoming.who)
    wanted = decode(incoming.body, NewPassword)
    access, account = hub.access, own_account(incoming.who)
    known = access.directory.accounts.by_id(account)
    if known is not None and access.directory.needs_old_password(incoming.who):
        # Who sits down at another's browser must not lock them out.
        access.attempts.begin(known.name, incoming.address)
        try:
            await access.directory.accounts.check_password(known.name, wanted.old, incoming.address)
        except SignInRefused as refused:
            raise _wrong_old(known.name) if refused.code == "wrong_password" else refused from None
        access.attempts.succeeded(known.name, incoming.address)
    kept = incoming.who.credential if incoming.who.way == "session" else ""
    by = actor(incoming.who, incoming.address)
    await access.directory.accounts.set_password(
        account, wanted.new, keep_session=kept, revoke_keys=wanted.revoke_keys, by=by
    )
    return DONE


ENDPOINTS = (
    Endpoint(
        path="/api/v1/me",
        name="getMe",
        summary="Who is signed in, what they may do, and how one can sign in.",
        answer=MeView,
        handle=get_me,
        may="anyone",
        personal=True,
        errors=(400, 406),
    ),
    Endpoint(
        path="/api/v1/me/keys",
        name="listMyKeys",
        summary="My keys; never their secrets.",
        answer=OwnKeys,
        handle=list_keys,
        may="self",
        errors=(400, 406),
    ),
    Endpoint(
        path="/api/v1/me/keys",
        name="makeMyKey",
        summary="Makes a key for my programs; it is told once.",
        answer=MadeKey,
        handle=make_key,
        may="self",
        method="POST",
        body=NewKey,
        most_bytes=SMALL_BODY,
        status=201,
        errors=(*BODY_ERRORS, 409, 429),
    ),
    Endpoint(
        path="/api/v1/me/keys/{key}",
        name="revokeMyKey",
        summary="Ends one of my keys.",
        answer=Done,
        handle=revoke_key,
        may="self",
        method="DELETE",
        path_parameters=_KEY,
        errors=(400, 404, 406, 503),
    ),
    Endpoint(
        path="/api/v1/me/sessions",
        name="listMySessions",
        summary="The browsers I am signed in with.",
        answer=OwnSessions,
        handle=list_sessions,
        may="self",
        errors=(400, 406),
    ),
    Endpoint(
        path="/api/v1/me/sessions/{session}",
        name="endMySession",
        summary="Signs me out in one of my browsers.",
        answer=Done,
        handle=end_session,
        may="self",
        method="DELETE",
        path_parameters=_SESSION,
        errors=(400, 404, 406, 503),
    ),
    Endpoint(
        path="/api/v1/me/password",
        name="setMyPassword",
        summary="Another password for me; all my other browsers are signed out.",
        answer=Done,
        handle=set_password,
        may="self",
        method="POST",
        body=NewPassword,
        most_bytes=SMALL_BODY,
        errors=(*BODY_ERRORS, 409, 429),
    ),
)
