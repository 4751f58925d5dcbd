"""Single sign-on by OpenID Connect: the code flow with PKCE, each trip bound to the browser that began it."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped] # it has no types
from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped] # it has no types
from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped] # it has no types
from joserfc import jwt
from joserfc.errors import JoseError

from gpulse.auth.oidc_provider import Provider
from gpulse.auth.proxy import no_role
from gpulse.auth.roles import Role
from gpulse.config import Oidc
from gpulse.errors import SignInRefused

# So long somebody may take to sign in at the provider.
TRIP_SECONDS = 600
_LEEWAY_SECONDS = 60
_TRIP = re.compile(r"[0-9a-f]{64}")


class External(NamedTuple):
    """Somebody the provider vouches for."""

    subject: str
    name: str
    display: str
    groups: frozenset[str]


class SingleSignOn:
    """Keeps nothing of a trip here: all its secrets come from one number, which is in the browser's cookie."""

    def __init__(self, settings: Oidc):
        self.settings = settings
        self._provider = Provider(settings)

    async def begin(self, redirect_url: str) -> tuple[str, str]:
        """Where to send the browser, and what its cookie must have when it comes back."""
        trip = secrets.token_hex(32)
        metadata = await self._provider.metadata()
        address: str = prepare_grant_uri(
            metadata["authorization_endpoint"],
            self.settings.client_id,
            "code",
            redirect_uri=redirect_url,
            scope=" ".join(dict.fromkeys(("openid", *self.settings.scopes))),
            state=_part(trip, "state"),
            nonce=_part(trip, "nonce"),
            code_challenge=create_s256_code_challenge(_part(trip, "verifier")),
            code_challenge_method="S256",
        )
        return address, trip

    def came_back(self, trip: str | None, state: str) -> str:
        """The trip that a browser is at the end of; SignInRefused where it began none, or another. Costs nothing."""
        if trip is None or not _TRIP.fullmatch(trip):
            raise _refused("sso_trip", "this browser has not begun to sign in, or took longer than ten minutes")
        if not hmac.compare_digest(state.encode(), _part(trip, "state").encode()):
            raise _refused("sso_trip", "this is the end of another browser's way to sign in")
        return trip

    async def finish(self, trip: str, told: Mapping[str, str], redirect_url: str) -> External:
        """Who came back from a trip, by what the provider put into the address; SignInRefused where nobody did."""
        if told.get("iss", self.settings.issuer).rstrip("/") != self.settings.issuer.rstrip("/"):
            raise _refused("sso_trip", "somebody else than the provider answered")
        if "error" in told or not told.get("code"):
            raise _refused("sso_denied", f"the provider did not sign in: {_word(told.get('error', 'no code'))}")
        tokens = await self._provider.tokens(told["code"], redirect_url, _part(trip, "verifier"))
        access_token = tokens.get("access_token")
        claims = await self._claims(tokens.get("id_token"), access_token, _part(trip, "nonce"))
        if not {self.settings.name_claim, self.settings.role_claim} <= claims.keys():
            more = await self._provider.userinfo(access_token if isinstance(access_token, str) else "")
            # Only of the same person, and nothing that the ID token has said already.
            if more.get("sub") == claims["sub"]:
                claims = more | claims
        return self._external(claims)

    def role(self, person: External, had: Role | None) -> Role:
        """By the person's groups where they decide, else what the account has; SignInRefused where they may nothing."""
        role = self.settings.roles.of(person.groups) if self.settings.roles.any() else had
        if role is not None:
            return role
        if self.settings.default_role == "none":
            raise no_role(person.name)
        return self.settings.default_role

    async def _claims(self, id_token: object, access_token: object, nonce: str) -> dict[str, Any]:
        if not isinstance(id_token, str):
            raise _refused("sso_token", "the provider sent no ID token; is openid among its scopes?")
        keys, algorithms = await self._provider.keys(), await self._provider.algorithms()
        try:
            token = jwt.decode(id_token, keys, algorithms=algorithms)
            claims = CodeIDToken(
                token.claims,
                token.header,
                {
                    "iss": {"essential": True, "value": (await self._provider.metadata())["issuer"]},
                    "aud": {"essential": True, "value": self.settings.client_id},
                    "sub": {"essential": True},
                },
                {"nonce": nonce, "client_id": self.settings.client_id, "access_token": access_token},
            )
            claims.validate(leeway=_LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _refused("sso_token", f"the provider's ID token is not good: {type(error).__name__}") from None
        return dict(claims)

    def _external(self, claims: Mapping[str, Any]) -> External:
        name, subject = claims.get(self.settings.name_claim), claims.get("sub")
        if not isinstance(name, str) or not name or not isinstance(subject, str) or not subject:
            raise _refused(
                "sso_claims",
                f'the provider tells no name in the claim "{self.settings.name_claim}"; see docs/access.md',
            )
        groups = claims.get(self.settings.role_claim)
        listed = groups if isinstance(groups, list) else [groups]
        display = claims.get("name")
        return External(
            subject=subject,
            name=name,
            display=display if isinstance(display, str) else "",
            groups=frozenset(one for one in listed if isinstance(one, str)),
        )


def _part(trip: str, what: str) -> str:
    """One of the secrets of a trip; none of them tells another."""
    return hmac.new(bytes.fromhex(trip), what.encode("ascii"), hashlib.sha256).hexdigest()


def _refused(code: str, why: str) -> SignInRefused:
    return SignInRefused(401, code, why, "begin again at the hub's page; if it stays so, tell an admin of this hub")


def _word(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:100]
