"""The word of a reverse proxy on who asks: taken from the addresses that an admin listed, and from nowhere else."""

import hmac
import ipaddress
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from gpulse.auth.roles import Role
from gpulse.config import Proxy
from gpulse.config.files import read_secret
from gpulse.errors import ConfigError, SignInRefused

# What the proxy sends so that a login on its machine is not enough to be everybody.
SECRET_HEADER = "X-Gpulse-Proxy-Secret"  # noqa: S105 - the name of a header
ISSUER = "proxy"
_SHORTEST_SECRET = 16

# As they come: names in small letters, a pair for each time a header was sent.
Headers = Sequence[tuple[bytes, bytes]]


class Vouched(NamedTuple):
    """Whom the proxy has signed in, and the groups it says they are in."""

    name: str
    groups: frozenset[str]


class TrustedProxy:
    """`settings` are [access.proxy]; ConfigError where its secret cannot be read."""

    def __init__(self, settings: Proxy):
        self._settings = settings
        self._networks = settings.networks()
        self._secret = _secret(settings)

    def trusts(self, headers: Headers, peer: str) -> bool:
        """Whether it is the proxy that sent this."""
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            # On a socket for both, IPv4 looks like this.
            address = address.ipv4_mapped
        if not any(address in network for network in self._networks):
            return False
        if self._secret is None:
            return True
        told = _values(headers, SECRET_HEADER)
        return len(told) == 1 and hmac.compare_digest(told[0].encode("latin-1"), self._secret)

    def person(self, headers: Headers, peer: str) -> Vouched | None:
        """Whom it vouches for; None where it says nothing, or somebody else says it."""
        told = _values(headers, self._settings.header)
        if not any(told) or not self.trusts(headers, peer):
            return None
        if len(told) > 1:
            raise SignInRefused(
                400,
                "proxy_header_twice",
                f"the header {self._settings.header} came twice",
                "let the proxy replace what the browser sends, and not add to it",
            )
        name = _text(told[0])
        groups = _values(headers, self._settings.groups_header) if self._settings.groups_header else []
        return Vouched(name, frozenset(_words(groups)))

    def role(self, person: Vouched, had: Role | None) -> Role:
        """By the person's groups where they decide, else what the account has; SignInRefused where they may nothing."""
        settings = self._settings
        role = settings.roles.of(person.groups) if settings.roles.any() else had
        if role is not None:
            return role
        if settings.default_role == "none":
            raise no_role(person.name)
        return settings.default_role

    def address(self, headers: Headers, peer: str) -> str:
        """Where somebody asks from who came through it: its own word is the last one."""
        told = _values(headers, "X-Forwarded-For")
        last = told[-1].rpartition(",")[2].strip() if told else ""
        try:
            return str(ipaddress.ip_address(last))
        except ValueError:
            return peer

    def https(self, headers: Headers) -> bool:
        return _values(headers, "X-Forwarded-Proto") == ["https"]


def no_role(name: str) -> SignInRefused:
    return SignInRefused(
        403,
        "no_role",
        f"{name:.100} has no role here",
        "ask an admin: the groups that have one are in the hub's settings",
    )


def name_taken(name: str, issuer: str, subject: str) -> SignInRefused:
    """Of somebody who is called like an account that is not theirs, as far as anybody here knows."""
    ways = ["--proxy"] if issuer == ISSUER else ["--issuer", shlex.quote(issuer), "--subject", shlex.quote(subject)]
    return SignInRefused(
        403,
        "name_taken",
        f"{name:.100} is an account of this hub that signs in another way",
        "if it is the same person, let an admin run on the hub's machine: "
        + " ".join(["gpulse user connect", shlex.quote(name), *ways]),
    )


def _values(headers: Headers, name: str) -> list[str]:
    wanted = name.lower().encode("ascii")
    return [value.decode("latin-1").strip() for key, value in headers if key == wanted]


def _words(values: list[str]) -> list[str]:
    return [word.strip() for value in values for word in _text(value).replace(";", ",").split(",") if word.strip()]


def _text(value: str) -> str:
    """Proxies send UTF-8, which HTTP does not know of."""
    return value.encode("latin-1").decode("utf-8", "replace")


def _secret(settings: Proxy) -> bytes | None:
    file = settings.secret_file
    if file is None:
        return None
    secret = read_secret(file, "access.proxy.secret_file")
    if len(secret) < _SHORTEST_SECRET or any(not 0x21 <= letter <= 0x7E for letter in secret):
        raise ConfigError(
            [
                f"access.proxy.secret_file: {file} has no secret of at least {_SHORTEST_SECRET} letters in one line;"
                " make one with: openssl rand -hex 24"
            ]
        )
    return secret
