"""Asks an OpenID Connect provider: where its parts are, what a code is worth, and with which keys it signs."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
import msgspec
from authlib.oauth2.rfc6749.parameters import prepare_token_request  # type: ignore[import-untyped] # it has no types
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url  # type: ignore[import-untyped] # it has no types
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from gpulse.config import Oidc
from gpulse.config.files import read_secret
from gpulse.errors import ConfigError, SignInRefused

# What a provider may sign with; never "none", nor a secret that is ours as well.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
_SECONDS = 10.0
_MOST_BYTES = 1 << 20
_FRESH_SECONDS = 3600.0
# How long it is not asked again after it could not be.
_TROUBLE_SECONDS = 10.0
# Whoever comes with codes that are none must not make us ask the provider without end.
_AT_ONCE = 4
# What an answer unpacks to could not be bounded: so it comes as it is.
_ACCEPTED = {"Accept": "application/json", "Accept-Encoding": "identity"}
_MOST_KEYS = 50
# What a key to check signatures with is made of. Others would cost time: of a private exponent, primes are computed.
_PUBLIC = ("kty", "kid", "use", "alg", "n", "e", "crv", "x", "y")
# RSA with 16,384 bits has 2,731.
_LONGEST_PART = 3000


class Provider:
    """`settings` are [access.oidc]. Only the issuer's own host and those of `hosts` are ever asked."""

    def __init__(self, settings: Oidc, clock: Callable[[], float] = time.monotonic):
        self._settings = settings
        self._clock = clock
        self._secret = _secret(settings)
        issuer = urlsplit(settings.issuer)
        self._scheme = issuer.scheme
        self._hosts = frozenset({issuer.netloc.lower(), *(host.lower() for host in settings.hosts)})
        self._metadata: dict[str, Any] = {}
        self._asked_again_at = -math.inf
        self._trouble: SignInRefused | None = None
        self._asking: asyncio.Task[None] | None = None
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def metadata(self) -> dict[str, Any]:
        """What the provider says of itself: asked each hour, once for all who wait; what it said before is kept."""
        if self._asking is None and self._clock() >= self._asked_again_at:
            self._asking = asyncio.create_task(self._ask_metadata())
        if not self._metadata and self._asking is not None:
            # Who asked first may go meanwhile: the others wait on.
            await asyncio.shield(self._asking)
        if not self._metadata and self._trouble is not None:
            raise _again(self._trouble)
        return self._metadata

    async def _ask_metadata(self) -> None:
        try:
            self._metadata = self._checked(
                await self._json("GET", get_well_known_url(self._settings.issuer, external=True))
            )
            self._trouble = None
            self._asked_again_at = self._clock() + _FRESH_SECONDS
        except SignInRefused as trouble:
            self._trouble = trouble
            self._asked_again_at = self._clock() + _TROUBLE_SECONDS
        finally:
            self._asking = None

    def _checked(self, found: dict[str, Any]) -> dict[str, Any]:
        try:
            OpenIDProviderMetadata(found).validate()
        except (ValueError, TypeError, AttributeError) as error:
            raise _trouble(f"it describes itself in a wrong way: {error!s:.200}") from None
        if found["issuer"].rstrip("/") != self._settings.issuer.rstrip("/"):
            raise _trouble(f'it calls itself "{found["issuer"]:.200}"; set access.oidc.issuer to that if it is right')
        return found

    async def algorithms(self) -> list[str]:
        told = (await self.metadata()).get("id_token_signing_alg_values_supported") or ["RS256"]
        return [one for one in _ALGORITHMS if one in told]

    async def tokens(self, code: str, redirect_url: str, verifier: str) -> dict[str, Any]:
        """What a code is worth: an ID token, and an access token where there is one."""
        metadata = await self.metadata()
        client = self._settings.client_id
        form = prepare_token_request(
            "authorization_code", redirect_uri=redirect_url, code=code, code_verifier=verifier, client_id=client
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        auth = None
        if self._secret is not None:
            methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
            if "client_secret_basic" in methods:
                # RFC 6749 wants both parts encoded as in a form.
                auth = httpx.BasicAuth(quote_plus(client), quote_plus(self._secret))
            else:
                form = prepare_token_request(
                    "authorization_code",
                    redirect_uri=redirect_url,
                    code=code,
                    code_verifier=verifier,
                    client_id=client,
                    client_secret=self._secret,
                )
        return await self._json("POST", metadata["token_endpoint"], form.encode("ascii"), headers, auth)

    async def keys(self) -> KeySet:
        found = await self._json("GET", (await self.metadata())["jwks_uri"])
        shown = found.get("keys")
        usable = []
        for one in shown[:_MOST_KEYS] if isinstance(shown, list) else ():
            try:
                usable += KeySet.import_key_set({"keys": [_public(one)]}).keys
            except (JoseError, ValueError, TypeError, KeyError):
                # Of a kind that is not known here: another may be what signs.
                continue
        if not usable:
            raise _trouble("it shows no key that it signs with")
        return KeySet(usable)

    async def userinfo(self, access_token: str) -> dict[str, Any]:
        """What it tells of the person beside the ID token; nothing where it tells no more."""
        address = (await self.metadata()).get("userinfo_endpoint")
        if not address or not access_token:
            return {}
        return await self._json("GET", address, headers={"Authorization": f"Bearer {access_token}"})

    async def _json(
        self,
        method: str,
        url: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        auth: httpx.BasicAuth | None = None,
    ) -> dict[str, Any]:
        self._check(url)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                self._turn,
                httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False) as client,
                client.stream(
                    method, url, content=content, headers={**_ACCEPTED, **(headers or {})}, auth=auth
                ) as answer,
            ):
                body = bytearray()
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > _MOST_BYTES:
                        raise _trouble(f"its answer is larger than {_MOST_BYTES} bytes")
        except TimeoutError:
            raise _trouble(f"no answer within {_SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _trouble(
                f"{urlsplit(url).netloc} cannot be asked: {str(error) or type(error).__name__:.200}"
            ) from None
        try:
            found = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _trouble(f"{urlsplit(url).netloc} answers with {answer.status_code} and no JSON") from None
        if answer.status_code != 200:
            # A word for programs; what else it says may repeat what we sent.
            word = found.get("error")
            raise _trouble(f"it says {answer.status_code} {word if isinstance(word, str) else '':.60}".rstrip())
        return found

    def _check(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except (ValueError, AttributeError):
            raise _trouble(f"it leads to {url!r:.100}, which is no address") from None
        if parts.scheme != self._scheme or parts.netloc.lower() not in self._hosts:
            raise _trouble(
                f"it leads to {parts.scheme}://{parts.netloc:.100}; if that is right, list it in access.oidc.hosts"
            )


def _public(key: dict[str, Any]) -> dict[str, Any]:
    """Return a key without its private parts and remarks; ValueError where it is none."""
    kept = {name: key[name] for name in _PUBLIC if name in key}
    if any(not isinstance(value, str) or len(value) > _LONGEST_PART for value in kept.values()):
        raise ValueError("a part of this key is no text, or too long")
    return kept


def _again(trouble: SignInRefused) -> SignInRefused:
    """The same for another who asks."""
    return SignInRefused(trouble.status, trouble.code, trouble.message, trouble.detail)


def _trouble(why: str) -> SignInRefused:
    return SignInRefused(
        502, "sso_trouble", f"the provider of single sign-on cannot be used: {why}", "tell an admin of this hub"
    )


def _secret(settings: Oidc) -> str | None:
    file = settings.client_secret_file
    if file is None:
        return None
    setting = "access.oidc.client_secret_file"
    try:
        secret = read_secret(file, setting).decode("ascii")
    except UnicodeDecodeError:
        raise ConfigError([f"{setting}: {file} is no text; put the client's secret there"]) from None
    if not secret or not secret.isprintable():
        raise ConfigError([f"{setting}: {file} is empty or not one line of text; put the client's secret there"])
    return secret
