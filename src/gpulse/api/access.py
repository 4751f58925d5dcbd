"""Who asks, and what they may see of others. Nothing here is ever told by an address alone."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import UnsetType
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from gpulse.api import page_key
from gpulse.api.cookies import Cookies
from gpulse.api.cross_site import check_own_site, is_own_site
from gpulse.api.hosts_allowed import HostsAllowed
from gpulse.auth.attempts import Attempts
from gpulse.auth.directory import Directory
from gpulse.auth.identity import ALL_SCOPES, Identity
from gpulse.auth.oidc import SingleSignOn
from gpulse.auth.proxy import ISSUER, TrustedProxy, name_taken
from gpulse.auth.roles import role_of
from gpulse.config import Access as AccessSettings
from gpulse.config import Config
from gpulse.errors import AccountError, SignInRefused
from gpulse.fleet.sight import FULL, Level, Sight

NOBODY = Identity(None, None, None, "anonymous", frozenset())
NOTHING = Sight("anonymous")
# In the state of a request that came over the local socket, from the hub's own user or from root.
LOCAL = "gpulse.local"
# What a proxy adds, whether it is one that is listed or not.
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")


def bearer(headers: Mapping[str, str]) -> str | None:
    """What was sent as a key or token; None where nothing was. Other schemes are a proxy's own affair."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else None


class Caller(NamedTuple):
    """Who asks, what they see of others, and from where."""

    who: Identity
    sight: Sight
    address: str = ""
    # Whether nobody between the browser and us can read along: then the cookie is for such ways alone.
    secure: bool = False
    # Whether a cookie came with it that signs nobody in any more.
    stale: bool = False
    # Why the proxy's word on who asks did not count.
    refused: SignInRefused | None = None

    def lowered(self, wanted: Level | UnsetType) -> "Caller":
        return self if isinstance(wanted, UnsetType) else self._replace(sight=self.sight.lowered(wanted))


class Vouching(NamedTuple):
    """Who signs people in beside the hub itself."""

    proxy: TrustedProxy | None
    sso: SingleSignOn | None

    @classmethod
    def read(cls, settings: AccessSettings) -> "Vouching":
        """With the files that the settings name; ConfigError where one cannot be read."""
        proxy = TrustedProxy(settings.proxy) if settings.proxy is not None else None
        return cls(proxy, SingleSignOn(settings.oidc) if settings.oidc is not None else None)


class Access:
    """`anonymous`: everybody may read, but by a proxy only where the settings say so themselves.

    `origins` are other sites whose pages may read, as browsers write them.
    """

    def __init__(
        self,
        config: Config,
        directory: Directory,
        vouching: Vouching,
        *,
        anonymous: bool,
        origins: frozenset[str] = frozenset(),
    ):
        self.directory = directory
        # By then the hub listens: no connection of its own is older.
        self.began = time.monotonic()
        # The account of the person who runs the hub: the one that requests over the local socket have.
        self.operator = ""
        # Passwords, and ends of trips to single sign-on: who fails at one keeps nobody from the other.
        self.attempts, self.trips = Attempts(), Attempts()
        self.cookies = Cookies(directory.hub_id, config.web.base_path, config.access.session_days)
        self.hosts = HostsAllowed(config.access.hosts)
        self._proxy, self.sso = vouching
        self.anonymous = NOBODY._replace(role="viewer", scopes=frozenset({"read"})) if anonymous else NOBODY
        self._by_proxy = self.anonymous if config.access.anonymous == "read" else NOBODY
        self._others: Level = config.privacy.others
        self._origins = origins
        self._base_path = config.web.base_path

    async def caller(self, request: HTTPConnection, changes: bool = False, anyone: bool = False) -> Caller:
        """Who asks; RequestError where a key is none, or where another site's page asks for a change.

        Also where the proxy's word is refused and nobody may read, but not where `anyone` may ask.
        """
        headers, peer = request.headers, request.client.host if request.client is not None else ""
        if changes and bearer(headers) is None:
            check_own_site(headers, self._origins)
        local = request.scope.get("state", {}).get(LOCAL) is True
        who, refused = await self.identify(headers, peer, local=local)
        if refused is not None and who.role is None and not anyone:
            raise refused
        address, secure = peer, request.url.scheme in ("https", "wss")
        if self._proxy is not None and self._proxy.trusts(headers.raw, peer):
            address = self._proxy.address(headers.raw, peer)
            secure = secure or self._proxy.https(headers.raw)
        # It was just compared with Host, so it is what the browser has in its address.
        secure = secure or (changes and headers.get("origin", "").startswith("https://"))
        # So is where single sign-on comes back to.
        secure = secure or (self.sso is not None and (self.sso.settings.redirect_url or "").startswith("https://"))
        cookie = self.cookies.read(headers) if who.way == "anonymous" and is_own_site(headers) else None
        # One that only lacks its page key may belong to the page in the next tab.
        stale = cookie is not None and not self.directory.sessions.goes_on(cookie)
        return Caller(who, self.sight(who), address, secure, stale, refused)

    def nobody(self, headers: Mapping[str, str]) -> Identity:
        """Who has not signed in, and what they may: a proxy on this machine lets in people who are not on it."""
        return self._by_proxy if self._forwarded(headers) else self.anonymous

    @staticmethod
    def _forwarded(headers: Mapping[str, str]) -> bool:
        return any(name in headers for name in _FORWARDED)

    async def identify(
        self, headers: Headers, peer: str, *, local: bool = False
    ) -> tuple[Identity, SignInRefused | None]:
        """By a key, else by the local socket, else by the proxy's word, else by the cookie and its page key.

        A key that is none never makes somebody nobody. Whom the proxy vouches for in vain may have signed in here;
        else they are nobody, with the reason.
        """
        key = bearer(headers)
        if key is not None:
            return self.directory.keys.check(key), None
        if not is_own_site(headers):
            # What a browser sends by itself does not count for the page of another site.
            return self.nobody(headers), None
        if local and not self._forwarded(headers):
            operator = self.directory.identity_of(self.operator, "local")
            return (self.nobody(headers) if operator is None else operator), None
        refused = None
        try:
            vouched = await self._vouched(headers, peer)
        except SignInRefused as refusal:
            if refusal.status != 403:
                raise
            vouched, refused = None, refusal
        if vouched is not None:
            return vouched, None
        cookie, key = self.cookies.read(headers), page_key.read(headers)
        known = self.directory.sessions.check(cookie, key) if cookie is not None and key is not None else None
        return (self.nobody(headers), refused) if known is None else (known, None)

    def sight(self, who: Identity) -> Sight:
        if who.role == "admin" or self._others == "full":
            return FULL
        return Sight(self._others, frozenset() if who.name is None else frozenset({who.name}))

    def callback_url(self, headers: Mapping[str, str], secure: bool) -> str:
        """Where the provider of single sign-on is to send a browser back to that asks us like this."""
        settings = self.sso.settings if self.sso is not None else None
        if settings is not None and settings.redirect_url is not None:
            return settings.redirect_url
        scheme = "https" if secure else "http"
        return f"{scheme}://{headers.get('host', '')}{self._base_path}/api/v1/session/sso/callback"

    async def with_key(self, caller: Caller, key: str) -> Caller:
        """The same with a key that came in another place; what does not look like one says nothing."""
        if not key.startswith("gpk_"):
            return caller
        who = self.directory.keys.check(key)
        return caller._replace(who=who, sight=self.sight(who))

    def current(self, who: Identity) -> Identity | None:
        """Who they are now, for what stays open; None where they are signed out."""
        return self.directory.current(who)

    def mark(self, response: Response, caller: Caller | None) -> None:
        """On every answer: that it is for who asked, and that a cookie that signs nobody in may go."""
        response.headers.add_vary_header("Authorization, Cookie, X-Gpulse")
        if caller is not None and caller.stale and "set-cookie" not in response.headers:
            response.headers.append("set-cookie", self.cookies.clear(caller.secure))

    async def _vouched(self, headers: Headers, peer: str) -> Identity | None:
        person = self._proxy.person(headers.raw, peer) if self._proxy is not None else None
        if person is None or self._proxy is None:
            return None
        accounts = self.directory.accounts
        known = accounts.by_subject(ISSUER, person.name)
        role = self._proxy.role(person, role_of(known.role) if known is not None else None)
        address = self._proxy.address(headers.raw, peer)
        try:
            account = await accounts.upsert_external(ISSUER, person.name, person.name, role, address=address)
        except AccountError as error:
            if error.code != "name_taken":
                raise
            raise name_taken(person.name, ISSUER, person.name) from None
        return Identity(account.name, role, account.id, "proxy", ALL_SCOPES)
