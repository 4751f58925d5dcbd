"""Accounts, for admins: who may sign in, and as what."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpulse.api.bodies import Incoming, decode
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.me import BODY_ERRORS, SMALL_BODY, refuse_keys
from gpulse.auth.changing import Change
from gpulse.auth.identity import Identity
from gpulse.auth.noting import actor
from gpulse.auth.roles import Role
from gpulse.auth.views import AccountView
from gpulse.errors import RequestError

_ACCOUNT = {"account": "The account's id."}
Display = Annotated[str, Meta(max_length=200, description="What the person is called.")]


class AccountPage(msgspec.Struct, kw_only=True):
    """All accounts by name, those that are disabled last."""

    items: list[AccountView]


class NewAccount(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Somebody who shall be able to sign in."""

    name: Annotated[str, Meta(min_length=1, max_length=200, description="The person's login name on the nodes.")]
    role: Role
    display: Display = ""
    password: Annotated[str | None, Meta(description="Null: a link signs in for the first time.")] = None


class AccountChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be another way; what is left out stays."""

    role: Role | UnsetType = UNSET
    display: Display | UnsetType = UNSET
    password: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class Ended(msgspec.Struct, kw_only=True):
    """How many sessions or keys there were."""

    ended: int


class MadeLink(msgspec.Struct, kw_only=True):
    """The code of a link that signs in once; it is told only here."""

    code: str


async def list_accounts(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> AccountPage:
    del query, path, incoming
    return AccountPage(items=list(hub.access.directory.accounts.list()))


async def add_account(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> AccountView:
    del query, path
    wanted = decode(incoming.body, NewAccount)
    if wanted.password is not None or wanted.role == "admin":
        refuse_keys(incoming.who)
    directory = hub.access.directory
    account = await directory.accounts.add(
        wanted.name, wanted.role, wanted.password, wanted.display, by=actor(incoming.who, incoming.address)
    )
    return directory.accounts.view(account.id)


async def change_account(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> AccountView:
    del query
    wanted, identity = decode(incoming.body, AccountChange), path["account"]
    if not isinstance(wanted.password, UnsetType):
        refuse_keys(incoming.who)
        _refuse_own_password(incoming.who, identity)
    if wanted.role == "admin":
        refuse_keys(incoming.who)
    accounts, by = hub.access.directory.accounts, actor(incoming.who, incoming.address)
    given = {name: value for name in Change._fields if (value := getattr(wanted, name)) is not UNSET}
    await accounts.change(identity, Change(**given), by=by)
    return accounts.view(identity)


async def end_sessions(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Ended:
    del query
    directory = hub.access.directory
    account = directory.accounts.view(path["account"])
    return Ended(ended=await directory.sessions.end_all(account.id, by=actor(incoming.who, incoming.address)))


async def revoke_keys(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> Ended:
    del query
    directory = hub.access.directory
    account = directory.accounts.view(path["account"])
    return Ended(ended=await directory.keys.revoke_all(account.id, by=actor(incoming.who, incoming.address)))


async def make_link(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> MadeLink:
    del query
    refuse_keys(incoming.who)
    directory = hub.access.directory
    account = directory.accounts.view(path["account"])
    return MadeLink(code=await directory.links.make(account.id, by=actor(incoming.who, incoming.address)))


def _refuse_own_password(who: Identity, account: str) -> None:
    """Who sits down at another's browser must not lock them out, admin or not."""
    if who.account == account:
        raise RequestError(
            409, "own_password", "this is your own account", "change your password at /api/v1/me/password"
        )


ENDPOINTS = (
    Endpoint(
        path="/api/v1/accounts",
        name="listAccounts",
        summary="All accounts; never their passwords.",
        answer=AccountPage,
        handle=list_accounts,
        may="admin",
        errors=(400, 406),
    ),
    Endpoint(
        path="/api/v1/accounts",
        name="addAccount",
        summary="Makes an account.",
        answer=AccountView,
        handle=add_account,
        may="admin",
        method="POST",
        body=NewAccount,
        most_bytes=SMALL_BODY,
        status=201,
        errors=(*BODY_ERRORS, 409),
    ),
    Endpoint(
        path="/api/v1/accounts/{account}",
        name="changeAccount",
        summary="Another role, password or name to show for an account; or it is disabled, or enabled again.",
        answer=AccountView,
        handle=change_account,
        may="admin",
        method="PATCH",
        path_parameters=_ACCOUNT,
        body=AccountChange,
        most_bytes=SMALL_BODY,
        errors=(*BODY_ERRORS, 404, 409),
    ),
    Endpoint(
        path="/api/v1/accounts/{account}/sessions",
        name="endSessions",
        summary="Signs an account out everywhere.",
        answer=Ended,
        handle=end_sessions,
        may="admin",
        method="DELETE",
        path_parameters=_ACCOUNT,
        errors=(400, 404, 406, 503),
    ),
    Endpoint(
        path="/api/v1/accounts/{account}/keys",
        name="revokeKeys",
        summary="Revokes all keys of an account.",
        answer=Ended,
        handle=revoke_keys,
        may="admin",
        method="DELETE",
        path_parameters=_ACCOUNT,
        errors=(400, 404, 406, 503),
    ),
    Endpoint(
        path="/api/v1/accounts/{account}/link",
        name="makeLink",
        summary="Makes a link that signs somebody in once, within an hour: #/sign-in/CODE of the page.",
        answer=MadeLink,
        handle=make_link,
        may="admin",
        method="POST",
        path_parameters=_ACCOUNT,
        most_bytes=SMALL_BODY,
        status=201,
        errors=(*BODY_ERRORS, 404, 429),
    ),
)
