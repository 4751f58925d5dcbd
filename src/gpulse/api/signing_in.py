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
from gpulse.auth.noting import actor
from gpulse.auth.oidc import TRIP_SECONDS, External, SingleSignOn
from gpulse.auth.proxy import name_taken
from gpulse.auth.roles import role_of
from gpulse.auth.sessions import Begun
from gpulse.errors import AccountError, RequestError, SignInRefused
from gpulse.store.accounts import Account

# To the page, also below a path that only a proxy knows of.
_PAGE_FROM_BEGIN, _PAGE_FROM_CALLBACK = "../../../", "../../../../"


class Credentials(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A name and its password."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    password: str


class LinkCode(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
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
        account = await access.directory.accounts.check_password(wanted.name, wanted.password, incoming.address)
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
    # Nobody has to wait here for what others did: a code is 192 random bits, and cheap to look at.
    directory = hub.access.directory
    try:
        account = await directory.links.redeem(wanted.code)
    except SignInRefused as refused:
        await directory.refused_links.note(incoming.address, refused.code)
        raise
    return _signed_in(hub, incoming, await _begin(hub, incoming, account, "link"))


async def sign_out(hub: Hub, query: SignOutQuery, path: Mapping[str, str], incoming: Incoming) -> Response:
    del path
    directory, who = hub.access.directory, incoming.who
    if query.everywhere:
        await directory.sessions.end_all(own_account(who), by=actor(who, incoming.address))
    elif who.way == "session":
        await directory.sessions.end(who.credential, by=actor(who, incoming.address))
    after = hub.access.current(who)
    answer = me_view(hub, after if after is not None else hub.access.nobody(incoming.headers))
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
    try:
        # Anybody can open this address: without a trip that is their own it is no attempt, and nothing is written down.
        trip = sso.came_back(access.cookies.read_trip(incoming.headers), query.state)
        account = await _signed_on(hub, sso, trip, query, incoming)
    except SignInRefused as refused:
        response = _told_by_the_page(incoming, refused, _PAGE_FROM_CALLBACK)
    else:
        begun = await _begin(hub, incoming, account, "oidc")
        # Behind the "#" it is in no request; the page takes it off its address at once.
        response = RedirectResponse(f"{_PAGE_FROM_CALLBACK}#/signed-in/{begun.page_key}", 303)
        response.headers.append("set-cookie", access.cookies.set(begun.cookie, incoming.secure))
    response.headers.append("set-cookie", access.cookies.clear_trip(incoming.secure))
    return response


async def _signed_on(hub: Hub, sso: SingleSignOn, trip: str, query: CallbackQuery, incoming: Incoming) -> Account:
    access = hub.access
    access.trips.begin("", incoming.address)
    told = {name: getattr(query, name) for name in query.__struct_fields__ if getattr(query, name)}
    person = None
    try:
        person = await sso.finish(trip, told, access.callback_url(incoming.headers, incoming.secure))
        account = await _account_of(hub, sso, person, incoming.address)
    except SignInRefused as refused:
        # What an admin needs to connect the two, where they are one person.
        told_of = {"subject": person.subject} if person is not None and refused.code == "name_taken" else {}
        await access.directory.audit.note(
            incoming.who, incoming.address, "session.refuse", "", why=refused.code, by="oidc", **told_of
        )
        raise
    access.trips.succeeded("", incoming.address)
    return account


async def _account_of(hub: Hub, sso: SingleSignOn, person: External, address: str) -> Account:
    issuer, accounts = sso.settings.issuer, hub.access.directory.accounts
    known = accounts.by_subject(issuer, person.subject)
    role = sso.role(person, role_of(known.role) if known is not None else None)
    try:
        return await accounts.upsert_external(
            issuer, person.subject, person.name, role, person.display, address=address
        )
    except AccountError as error:
        if error.code != "name_taken":
            raise
        # Whoever may call themselves anything at the provider must not become somebody else here.
        raise name_taken(person.name, issuer, person.subject) from None


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


async def _begin(hub: Hub, incoming: Incoming, account: Account, way: str) -> Begun:
    """A new session; the one that the page had before no longer works."""
    directory = hub.access.directory
    if incoming.who.way == "session":
        await directory.sessions.end(incoming.who.credential, by=actor(incoming.who, incoming.address))
    browser = incoming.headers.get("user-agent", "")
    return await directory.sessions.begin(account.id, incoming.address, browser, way=way)


def _signed_in(hub: Hub, incoming: Incoming, begun: Begun) -> Response:
    who = hub.access.directory.sessions.check(*begun) or hub.access.nobody(incoming.headers)
    headers = {"Set-Cookie": hub.access.cookies.set(begun.cookie, incoming.secure)}
    answer = me_view(hub, who, begun.page_key)
    return Response(msgspec.json.encode(answer), headers=headers, media_type="application/json")


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
        errors=BODY_ERRORS,
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
