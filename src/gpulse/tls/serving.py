"""The hub's TLS as its settings say it: the certificate in use, followed when it is renewed, and what to say of it."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable

from gpulse.config import Config
from gpulse.errors import TlsError
from gpulse.tls.context import RenewableContext
from gpulse.tls.files import Files
from gpulse.tls.own import make_own
from gpulse.tls.pair import Pair, load, now

LOOK_SECONDS = 3.0
HTTPS_PORT = 443


class ServingTls:
    """Made at the start, when mistakes are told as TlsError; follow() runs as long as the hub."""

    def __init__(self, files: Files, refusal: bytes):
        """`refusal`: the answer to who speaks http on this port."""
        self._files = files
        # Seen before they are read: what changes meanwhile is seen at the next look.
        self._seen = files.stamps()
        self._pair = load(files)
        self._context = RenewableContext(self._pair.context, refusal)
        self._trouble = ""

    @property
    def context(self) -> ssl.SSLContext:
        return self._context

    @property
    def pair(self) -> Pair:
        """The one that new connections get."""
        return self._pair

    def notice(self) -> str:
        """What everybody should know of the certificate, "" while all is well."""
        return self._pair.trouble(now())

    def strict(self, port: int) -> bool:
        """Whether browsers may be told to use https alone: it would shut out a hub whose certificate they do not trust.

        Browsers apply it to all ports of a host, and others may serve http there, unless the hub has the usual one.
        """
        return port == HTTPS_PORT and not self._pair.self_signed

    async def follow(self, say: Callable[[str], None]) -> None:
        """Use renewed files as soon as they are good; a pair that is broken is told once, and the old one stays."""
        if warning := await asyncio.to_thread(self._files.exposed):
            say(warning)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if words := await asyncio.to_thread(self.look):
                say(words)

    def look(self) -> str:
        """One look at the files; what is to be said about it, mostly nothing."""
        seen = self._files.stamps()
        if seen == self._seen:
            # Not at once: the two files are replaced one after the other.
            words, self._trouble = self._trouble, ""
            return words
        self._seen = seen
        try:
            pair = load(self._files)
        except TlsError as error:
            self._trouble = f"the renewed certificate is not used: {error}; the one before stays in use"
            return ""
        self._trouble = ""
        self._pair = pair
        self._context.renew(pair.context)
        until = f"{pair.certificate.not_valid_after_utc:%Y-%m-%d}"
        return f"the certificate was renewed: new connections get the one that is valid until {until}"


def serving_tls(config: Config, refusal: bytes) -> ServingTls | None:
    """As the settings say; None where the hub is at http."""
    given = config.tls
    if given.self_signed:
        return ServingTls(make_own(config.hub.data, _names(config)), refusal)
    if given.certificate is not None and given.key is not None:
        return ServingTls(Files(given.certificate, given.key), refusal)
    return None


def _names(config: Config) -> list[str]:
    """By which people and nodes reach the hub, as far as it was told."""
    listening = [] if _is_any(config.hub.host) else [config.hub.host]
    return [socket.gethostname(), *listening, *config.access.hosts]


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
