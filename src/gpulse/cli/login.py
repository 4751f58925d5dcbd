"""gpulse login and gpulse logout: who the commands are for a hub, until they are nobody again."""

import getpass
import socket
import sys
from typing import Annotated

import msgspec
import typer

from gpulse.cli import figures, options, own_keys, terminal
from gpulse.cli.client import Hub
from gpulse.errors import GpulseError, HubError, HubRefused

_KEY = "gpk_"


class _Me(msgspec.Struct):
    name: str | None
    role: str | None


class _MadeKey(msgspec.Struct):
    key: str
    # None: it was given, and only the hub knows.
    expires_at: float | None = None


def login(
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Your account (default: your login name here).")
    ] = None,
) -> None:
    """Sign in to a hub: by name and password, or by a key on standard input."""
    asked = Hub(hub, fingerprint, data)
    asked.warn_in_the_clear()
    if sys.stdin.isatty():
        made = _made(asked, name or _asked_name(), getpass.getpass("Password (or a key): "))
    else:
        text = sys.stdin.readline().strip()
        made = _MadeKey(text) if text.startswith(_KEY) or name is None else _made(asked, name, text)
    if not made.key.startswith(_KEY):
        raise GpulseError("this is no key: one is gpk_ID_SECRET; with --name, standard input is a password")
    me = asked.decode(asked.with_key(made.key).get("/me"), _Me)
    own_keys.keep(asked.url, made.key)
    until = "" if made.expires_at is None else f", until {figures.clock(made.expires_at)}"
    terminal.tell(f"{asked.url}: signed in as {me.name}, {me.role}{until}")


def logout(
    hub: options.HubUrl = options.HUB, fingerprint: options.Fingerprint = None, data: options.HubData = None
) -> None:
    """Sign out of a hub: the key of this machine no longer works."""
    asked = Hub(hub, fingerprint, data)
    key = own_keys.read().get(asked.url)
    if key is None:
        raise GpulseError(f"nobody is signed in at {asked.url} with gpulse login")
    # Here first: whatever the hub says, it is not used any more.
    own_keys.keep(asked.url, None)
    try:
        asked.with_key(key).send("DELETE", f"/me/keys/{key.split('_')[1]}")
    except HubRefused as refused:
        if not refused.code.startswith("key_"):
            raise
    except HubError as trouble:
        raise HubError(f"signed out here, but the key may still work: {trouble}") from None


def _asked_name() -> str:
    usual = getpass.getuser()
    return input(f"Name [{usual}]: ").strip() or usual


def _made(hub: Hub, name: str, secret: str) -> _MadeKey:
    """A key for this machine, got with the password; what is a key already is one."""
    if secret.startswith(_KEY):
        return _MadeKey(secret)
    session = hub.sign_in(name, secret)
    label = f"gpulse login on {socket.gethostname()}"
    try:
        wanted = {"label": label, "scopes": ["read", "write"]}
        return hub.decode(hub.send("POST", "/me/keys", wanted, session), _MadeKey)
    finally:
        # The key is enough.
        hub.send("DELETE", "/session", None, session)
