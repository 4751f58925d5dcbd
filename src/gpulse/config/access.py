"""[access] and [privacy]: who may read and change what, how people sign in, and what they see of each other."""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpulse.config.checks import Tell
from gpulse.config.kinds import Word

Role = Literal["viewer", "member", "admin"]
RoleOrNone = Literal["viewer", "member", "admin", "none"]
Days = Annotated[float, Meta(ge=0.01, le=3650, description="days, 0.01 to 3650")]
HeaderName = Annotated[
    str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}\Z", description='the name of a header such as "X-Remote-User"')
]
HostName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,252})\Z", description='a host name such as "gpus.example.org"')
]
Issuer = Annotated[
    str,
    Meta(
        # In the clear only where nobody is in between.
        pattern=r"^(https://([\w.-]+|\[[0-9a-fA-F:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))"
        r"(:[0-9]{1,5})?(/[\w.~%-]+)*/?\Z",
        description='an https:// address such as "https://login.example.org/realms/lab"',
    ),
]
Authority = Annotated[
    str,
    Meta(pattern=r"^[\w.-]+(:[0-9]{1,5})?\Z", description="a host, with its port where it is not the usual one"),
]
Address = Annotated[str, Meta(min_length=1, description='an address or a network such as "10.0.0.7" or "10.1.0.0/16"')]

_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Roles(msgspec.Struct, frozen=True):
    """Which groups have which role; who is in several has the highest."""

    admin: tuple[Word, ...] = ()
    member: tuple[Word, ...] = ()
    viewer: tuple[Word, ...] = ()

    def of(self, groups: frozenset[str]) -> Role | None:
        """The role of somebody who is in these groups; None where none of them has one."""
        named: tuple[tuple[Role, tuple[str, ...]], ...] = (
            ("admin", self.admin),
            ("member", self.member),
            ("viewer", self.viewer),
        )
        return next((role for role, wanted in named if not groups.isdisjoint(wanted)), None)

    def any(self) -> bool:
        return bool(self.admin or self.member or self.viewer)


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """[access.proxy]: a reverse proxy that has signed people in already."""

    header: HeaderName
    addresses: tuple[Address, ...]
    secret_file: Path | None = None
    groups_header: HeaderName | None = None
    roles: Roles = Roles()
    default_role: RoleOrNone = "viewer"

    def networks(self) -> list[Network]:
        return [ipaddress.ip_network(address, strict=False) for address in self.addresses]


class Oidc(msgspec.Struct, frozen=True, kw_only=True):
    """[access.oidc]: single sign-on by OpenID Connect."""

    issuer: Issuer
    client_id: Word
    client_secret_file: Path | None = None
    scopes: tuple[Word, ...] = ("openid", "profile", "email")
    name_claim: Word = "preferred_username"
    role_claim: Word = "groups"
    roles: Roles = Roles()
    default_role: RoleOrNone = "none"
    label: Word = "Single sign-on"
    hosts: tuple[Authority, ...] = ()
    redirect_url: (
        Annotated[
            str,
            Meta(
                pattern=r"^https?://[^\s?#]+/api/v1/session/sso/callback\Z",
                description="the whole address of /api/v1/session/sso/callback as browsers reach it",
            ),
        ]
        | None
    ) = None


class Access(msgspec.Struct, frozen=True):
    """[access]: who may read without signing in, and how people sign in."""

    anonymous: Literal["read", "none"] | None = None
    hosts: tuple[HostName, ...] = ()
    session_idle_days: Days = 14.0
    session_days: Days = 90.0
    proxy: Proxy | None = None
    oidc: Oidc | None = None

    @property
    def for_others(self) -> bool:
        """Whether people from elsewhere come, also where the hub listens on loopback alone: a proxy brings them."""
        return bool(self.hosts) or self.proxy is not None or self.oidc is not None


class Privacy(msgspec.Struct, frozen=True):
    """[privacy]: what people see of each other."""

    others: Literal["full", "names", "anonymous"] = "names"


def check_access(access: Access, tell: Tell) -> None:
    """What only several keys together say, or no pattern can."""
    if access.session_days < access.session_idle_days:
        tell(("access", "session_days"), "cannot be less than session_idle_days")
    proxy = access.proxy
    if proxy is None:
        return
    for place, address in enumerate(proxy.addresses):
        where = ("access", "proxy", "addresses", place)
        try:
            network = ipaddress.ip_network(address, strict=False)
        except ValueError:
            tell(where, f'cannot be "{address:.80}"; allowed: an address or a network such as "10.1.0.0/16"')
            continue
        # Whoever has a login on this machine could send the header from there.
        if proxy.secret_file is None and any(
            network.version == own.version and network.overlaps(own) for own in _LOOPBACK
        ):
            tell(
                where,
                f"{address} is this machine itself, where everybody could send the header; set"
                " access.proxy.secret_file, and let the proxy send the secret",
            )
    if not proxy.addresses:
        tell(("access", "proxy", "addresses"), "cannot be empty; name the addresses that the proxy comes from")
    if proxy.groups_header is None and proxy.roles.any():
        tell(("access", "proxy", "roles"), "means nothing without groups_header, which names a person's groups")
