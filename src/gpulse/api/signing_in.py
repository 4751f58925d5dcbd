"""Signing in, by password, link or single sign-on, and out again. Every sign-in is a new session."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import RedirectResponse, Response

from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.me import BODY_ERRORS, SMALL_BODY, MeView, me_view, own_account
from gpulse.api.queries import Lenient
from gpulse.auth.oidc import TRIP_SECONDS, SingleSignOn
from gpulse.auth.roles import role_of
from gpulse.errors import AccountError, RequestError, SignInRefused
from gpulse.store.accounts import Account

# To the page, also below a path that only a proxy knows of.
_PAGE_FROM_BEGIN, _PAGE_FROM_CALLBACK = "../../../", "../../../../"


class Credentials(msgspec.Struct, kw_only=True):
    """A name and its password."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    password: str


class LinkCode(msgspec.Struct, kw_only=True):
    """The code of a sign-in link."""

    code: Annotated[str, Meta(min_length=1, max_length=200)]


class SignOutQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How far."""

    everywhere: Annotated[bool, Meta(description="In all browsers of the account.")] = False


class CallbackQuery(Lenient, frozen=True, kw_only=True):
    """What the provider says; what it adds beside is left out."""

    code: Annotated[str, Meta(max_length=4096, description="What the hub gets the person's name for.")] = ""
    state: Annotated[str, Meta(max_length=200, description="As the hub sent it.")] = ""
    iss: Annotated[str, Meta(max_length=1000, description="Who answers.")] = ""
    error: Annotated[str, Meta(max_length=200, description="Why nobody signed in.")] = ""


async def sign_in(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Response:
    del query, path
    wanted = decode(incoming.body, Credentials)
    access = hub.access
    access.attempts.begin(wanted.name, incoming.address)
    try:
        account = await access.directory.accounts.check_password(wanted.name, wanted.password)
    except SignInRefused as refused:
        # People type passwords where names belong: only names of accounts are written down.
        known = access.directory.accounts.by_name(wanted.name)
        target = known.name if known is not None else ""
        await access.directory.audit.note(incoming.who, incoming.address, "session.refuse", target, why=refused.code)
        raise
    access.attempts.succeeded(wanted.name, incoming.address)
    return _signed_in(hub, incoming, await _begin(hub, incoming, account, "password"))


async def sign_in_by_link(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Response:
    del query, path
    wanted = decode(incoming.body, LinkCode)
    access = hub.access
    access.attempts.begin("", incoming.address)
    account = await access.directory.links.redeem(wanted.code)
    access.attempts.succeeded("", incoming.address)
    return _signed_in(hub, incoming, await _begin(hub, incoming, account, "link"))


async def sign_out(hub: Hub, query: SignOutQuery, path: Mapping[str, str], incoming: Incoming) -> Response:
    del path
    directory, who = hub.access.directory, incoming.who
    if query.everywhere:
        count = await directory.sessions.end_all(own_account(who))
        await directory.audit.note(who, incoming.address, "session.end_all", who.name or "", sessions=count)
    elif who.way == "session":
        await directory.sessions.end(who.credential)
        await directory.audit.note(who, incoming.address, "session.end", who.credential)
    after = hub.access.current(who)
    answer = me_view(hub, after if after is not None else hub.access.anonymous)
    cookie = hub.access.cookies.clear(incoming.secure)
    return Response(msgspec.json.encode(answer), headers={"Set-Cookie": cookie}, media_type="application/json")


async def begin_sso(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Response:
    del query, path
    try:
        address, trip = await _sso(hub).begin(hub.access.callback_url(incoming.headers, incoming.secure))
    except SignInRefused as refused:
        return _told_by_the_page(incoming, refused, _PAGE_FROM_BEGIN)
    cookie = hub.access.cookies.set_trip(trip, TRIP_SECONDS, incoming.secure)
    return RedirectResponse(address, 303, {"Set-Cookie": cookie})


async def finish_sso(hub: Hub, query: CallbackQuery, path: Mapping[str, str], incoming: Incoming) -> Response:
    del path
    access, sso = hub.access, _sso(hub)
    access.attempts.begin("", incoming.address)
    try:
        account = await _signed_on(hub, sso, query, incoming)
    except SignInRefused as refused:
        await access.directory.audit.note(
            incoming.who, incoming.address, "session.refuse", "", why=refused.code, by="oidc"
        )
        response = _told_by_the_page(incoming, refused, _PAGE_FROM_CALLBACK)
    else:
        access.attempts.succeeded("", incoming.address)
        response = RedirectResponse(_PAGE_FROM_CALLBACK, 303)
        cookie = await _begin(hub, incoming, account, "oidc")
        response.headers.append("set-cookie", access.cookies.set(cookie, incoming.secure))
    response.headers.append("set-cookie", access.cookies.clear_trip(incoming.secure))
    return response


async def _signed_on(hub: Hub, sso: SingleSignOn, query: CallbackQuery, incoming: Incoming) -> Account:
    access = hub.access
    told = {name: getattr(query, name) for name in query.__struct_fields__ if getattr(query, name)}
    trip = access.cookies.read_trip(incoming.headers)
    person = await sso.finish(trip, told, access.callback_url(incoming.headers, incoming.secure))
    issuer, accounts = sso.settings.issuer, access.directory.accounts
    known = accounts.by_subject(issuer, person.subject)
    role = sso.role(person, role_of(known.role) if known is not None else None)
    try:
        return await accounts.upsert_external(issuer, person.subject, person.name, role, person.display)
    except AccountError as error:
        if error.code != "name_taken":
            raise
        # Whoever may call themselves anything at the provider must not become somebody else here.
        raise SignInRefused(
            403, "name_taken", f"{person.name:.100} is an account of this hub that signs in another way", error.detail
        ) from None


def _told_by_the_page(incoming: Incoming, refused: SignInRefused, page: str) -> Response:
    """A person who comes back from the provider looks at a browser; programs get the refusal itself."""
    if "text/html" not in incoming.headers.get("accept", ""):
        raise refused
    # Only the word for programs: what stands in an address may have been put there by anybody.
    return RedirectResponse(f"{page}#/sign-in?refused={refused.code}", 303)


def _sso(hub: Hub) -> SingleSignOn:
    if hub.access.sso is None:
        raise RequestError(404, "no_sso", "this hub has no single sign-on", "an admin sets it up: docs/access.md")
    return hub.access.sso


async def _begin(hub: Hub, incoming: Incoming, account: Account, way: str) -> str:
    """The cookie of a new session; what the browser had before no longer works."""
    directory = hub.access.directory
    if incoming.who.way == "session":
        await directory.sessions.end(incoming.who.credential)
    cookie = await directory.sessions.begin(account.id, incoming.address, incoming.headers.get("user-agent", ""))
    who = directory.sessions.check(cookie) or incoming.who
    await directory.audit.note(who, incoming.address, "session.begin", account.name, by=way)
    return cookie


def _signed_in(hub: Hub, incoming: Incoming, cookie: str) -> Response:
    who = hub.access.directory.sessions.check(cookie) or hub.access.anonymous
    headers = {"Set-Cookie": hub.access.cookies.set(cookie, incoming.secure)}
    return Response(msgspec.json.encode(me_view(hub, who)), headers=headers, media_type="application/json")


ENDPOINTS = (
    Endpoint(
        path="/api/v1/session",
        name="signIn",
        summary="Signs a browser in by name and password.",
        answer=MeView,
        handle=sign_in,
        may="anyone",
        method="POST",
        body=Credentials,
        most_bytes=SMALL_BODY,
        errors=(*BODY_ERRORS, 429),
    ),
    Endpoint(
        path="/api/v1/session/link",
        name="signInByLink",
        summary="Signs a browser in by the code of a link, which works once.",
        answer=MeView,
        handle=sign_in_by_link,
        may="anyone",
        method="POST",
        body=LinkCode,
        most_bytes=SMALL_BODY,
        errors=(*BODY_ERRORS, 429),
    ),
    Endpoint(
        path="/api/v1/session",
        name="signOut",
        summary="Signs out: this browser, or all browsers of the account.",
        answer=MeView,
        handle=sign_out,
        may="self",
        method="DELETE",
        query=SignOutQuery,
        errors=(400, 406, 503),
    ),
    Endpoint(
        path="/api/v1/session/sso",
        name="beginSso",
        summary="Sends a browser to the provider of single sign-on.",
        answer=str,
        handle=begin_sso,
        may="anyone",
        personal=True,
        media="text/plain",
        status=303,
        errors=(400, 404, 406, 502),
    ),
    Endpoint(
        path="/api/v1/session/sso/callback",
        name="finishSso",
        summary="Where the provider of single sign-on sends the browser back to.",
        answer=str,
        handle=finish_sso,
        may="anyone",
        personal=True,
        query=CallbackQuery,
        media="text/plain",
        status=303,
        errors=(400, 404, 406, 409, 429, 502, 503),
    ),
)
