"""Single sign-on at a provider that lies in every part: its description, its keys, its tokens and its claims.

Asked without a hub around it, so that each lie meets a provider that nobody has asked before.
"""

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from joserfc import jws, jwt
from joserfc.jwk import OctKey

from gpulse.auth import oidc_provider
from gpulse.auth.oidc import External, SingleSignOn
from gpulse.config import Oidc
from gpulse.config.access import Roles
from gpulse.errors import SignInRefused
from tests.system.oidc_provider import CLIENT, Provider

BACK = "http://hub/api/v1/session/sso/callback"
ANN: dict[str, Any] = {"sub": "u-1", "preferred_username": "ann", "name": "Ann L.", "groups": ["staff"]}
DEEP = b"[" * 400_000
Raw = tuple[int, dict[str, str], bytes]


class Liar(Provider):
    """An honest provider until `answers` has a path of its own, or `forge` another token."""

    def __init__(self, issuer: str):
        super().__init__(issuer)
        self.claims = ANN
        self.answers: dict[str, Callable[[], Raw]] = {}
        self.forge: Callable[[dict[str, Any]], str] | None = None
        self.asked: list[str] = []

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Takes any client: whom it lets in is not what is tried here."""
        del authorization
        asked, now = self.codes[form["code"]], int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        claims = {**claims, **self.claims, **self.lies.get("claims", {})}
        claims = {name: value for name, value in claims.items() if value != "ABSENT"}
        text = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self.key) if self.forge is None else self.forge(claims)
        return 200, {"access_token": "told", "token_type": "Bearer", "id_token": text, **self.lies.get("tokens", {})}


def handler(liar: Liar) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            honest: dict[str, Callable[[], Any]] = {
                "/.well-known/openid-configuration": liar.metadata,
                "/keys": lambda: {"keys": [liar.key.as_dict(private=False)]},
                "/userinfo": lambda: liar.lies.get("userinfo", {}),
            }
            self._tell(path, honest.get(path, dict))

        def do_POST(self) -> None:
            form = dict(httpx.QueryParams(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._tell(self.path, lambda: liar.token(form, "")[1])

        def _tell(self, path: str, honest: Callable[[], Any]) -> None:
            liar.asked.append(path)
            made = liar.answers.get(path)
            status, headers, body = made() if made else (200, {}, json.dumps(honest()).encode())
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                # Who asked has had enough.
                self.close_connection = True

        def log_message(self, *_words: object) -> None:
            """Tests say themselves what matters."""

    return Handler


@pytest.fixture
def liar() -> Iterator[Liar]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    server.block_on_close = False
    found = Liar(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = handler(found)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def signed_in(liar: Liar, **settings: Any) -> External:
    """The whole trip of a browser; SignInRefused is the only way to fail. Costs the loop no time of its own."""
    roles = Roles(admin=("gpu-admins",), member=("staff",))
    sso = SingleSignOn(Oidc(issuer=liar.issuer, client_id=CLIENT, roles=roles, **settings))

    async def trip() -> External:
        address, begun = await sso.begin(BACK)
        asked = dict(httpx.URL(address).params)
        liar.codes["c"] = asked
        sso.came_back(begun, asked["state"])
        return await sso.finish(begun, {"code": "c", "state": asked["state"]}, BACK)

    return asyncio.run(trip())


def refused(liar: Liar, **settings: Any) -> SignInRefused:
    began = time.thread_time()
    with pytest.raises(SignInRefused) as why:
        signed_in(liar, **settings)
    # Reading a megabyte is allowed; computing with it is not.
    assert time.thread_time() - began < 2.0
    assert len(str(why.value)) < 1000
    return why.value


def test_it_signs_in_while_it_is_honest(liar: Liar):
    """Else all that follows would be refused for another reason."""
    person = signed_in(liar)
    assert (person.subject, person.name, person.groups) == ("u-1", "ann", frozenset({"staff"}))


def part(value: Any) -> str:
    return (
        base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode().rstrip("=")
    )


def with_public_key(liar: Liar, claims: dict[str, Any]) -> str:
    """HS256 with what everybody knows as its secret."""
    secret = OctKey.import_key(liar.key.as_pem(private=False))
    return jwt.encode({"alg": "HS256", "kid": "k1"}, claims, secret, algorithms=["HS256"])


def unsigned(liar: Liar, claims: dict[str, Any], **head: Any) -> str:
    """The head says something else than what the token was signed with."""
    good = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, liar.key).split(".")
    return f"{part({'alg': 'RS256', 'kid': 'k1', **head})}.{good[1]}.{good[2] if head.get('alg') != 'none' else ''}"


def with_empty_key(_liar: Liar, claims: dict[str, Any]) -> str:
    text = f"{part({'alg': 'HS256'})}.{part(claims)}"
    return f"{text}.{part(hmac.new(b'', text.encode(), hashlib.sha256).digest())}"


FORGED: dict[str, Callable[[Liar, dict[str, Any]], str]] = {
    "none": lambda liar, claims: unsigned(liar, claims, alg="none"),
    "None": lambda liar, claims: unsigned(liar, claims, alg="None"),
    "public key as a secret": with_public_key,
    "empty key": with_empty_key,
    "another head": lambda liar, claims: unsigned(liar, claims, typ="x"),
    "a key of its own in the head": lambda liar, claims: jwt.encode(
        {"alg": "RS256", "jwk": liar.stranger.as_dict(private=False)}, claims, liar.stranger
    ),
    "an address of keys in the head": lambda liar, claims: jwt.encode(
        {"alg": "RS256", "kid": "k1", "jku": f"{liar.issuer}/other"}, claims, liar.stranger
    ),
    "an unknown key": lambda liar, claims: unsigned(liar, claims, kid="../../etc/passwd"),
    "a number for a key": lambda liar, claims: unsigned(liar, claims, kid=5),
    "critical": lambda liar, claims: unsigned(liar, claims, crit=["x"]),
    "a list": lambda liar, _claims: jwt.encode({"alg": "RS256"}, {}, liar.key).replace(".", "", 1),
    "deep": lambda liar, _claims: jws.serialize_compact({"alg": "RS256", "kid": "k1"}, DEEP, liar.key),
    "no claims": lambda liar, _claims: jws.serialize_compact({"alg": "RS256", "kid": "k1"}, b"[5]", liar.key),
    "deep head": lambda _liar, claims: f"{part(DEEP)}.{part(claims)}.{part(b'x' * 256)}",
    "dots": lambda _liar, _claims: "." * 500_000,
    "empty": lambda _liar, _claims: "",
    "huge": lambda _liar, _claims: "a" * 900_000,
    "five parts": lambda _liar, _claims: ".".join([part({"alg": "dir", "enc": "A128GCM"}), "", "a", "b", "c"]),
}


@pytest.mark.parametrize("forge", FORGED)
def test_forged_tokens(liar: Liar, forge: str):
    liar.forge = lambda claims: FORGED[forge](liar, claims)
    assert refused(liar).code in ("sso_token", "sso_trouble")
    assert "/other" not in liar.asked


WRONG_CLAIMS: list[dict[str, Any]] = [
    {"aud": "another"},
    {"aud": []},
    {"aud": [CLIENT, "another"]},
    {"aud": "ABSENT"},
    {"azp": "another"},
    {"aud": [CLIENT], "azp": "another"},
    {"iss": "https://evil.example.org"},
    {"iss": "ABSENT"},
    {"iss": ["x"]},
    {"nonce": "another"},
    {"nonce": "ABSENT"},
    {"nonce": ""},
    {"nonce": None},
    {"exp": 1},
    {"exp": "ABSENT"},
    {"exp": "tomorrow"},
    {"exp": 1e400},
    {"exp": [9999999999]},
    {"iat": 99999999999},
    {"iat": "ABSENT"},
    {"nbf": 99999999999},
    {"nbf": "x"},
    {"sub": ""},
    {"sub": 5},
    {"sub": "ABSENT"},
    {"at_hash": "another"},
    {"preferred_username": 5},
    {"preferred_username": ""},
]


@pytest.mark.parametrize("claims", WRONG_CLAIMS, ids=str)
def test_wrong_claims(liar: Liar, claims: dict[str, Any]):
    liar.lies = {"claims": claims}
    assert refused(liar).code in ("sso_token", "sso_claims")


def a_public_key_with(liar: Liar, **more: Any) -> Raw:
    return 200, {}, json.dumps({"keys": [{**liar.key.as_dict(private=False), **more}]}).encode()


LARGE = part(b"\xff" * 300_000)
BAD_KEYS: dict[str, Callable[[Liar], Raw]] = {
    "of somebody else": lambda liar: (200, {}, json.dumps({"keys": [liar.stranger.as_dict(private=False)]}).encode()),
    "none": lambda _liar: (200, {}, b'{"keys": []}'),
    "null": lambda _liar: (200, {}, b'{"keys": null}'),
    "a word": lambda _liar: (200, {}, b'{"keys": "RS256"}'),
    "a number": lambda _liar: (200, {}, b'{"keys": 5}'),
    "numbers": lambda _liar: (200, {}, b'{"keys": [1, null, "x", [], {}]}'),
    "a list": lambda _liar: (200, {}, b"[]"),
    "deep": lambda _liar: (200, {}, b'{"keys": ' + DEEP),
    "a secret": lambda _liar: (200, {}, json.dumps({"keys": [{"kty": "oct", "k": part(b"x" * 32)}]}).encode()),
    "an enormous modulus": lambda liar: a_public_key_with(liar, n=LARGE),
    "an enormous exponent": lambda liar: a_public_key_with(liar, e=LARGE),
    "a private exponent": lambda liar: a_public_key_with(liar, n=part(b"\xfb" * 4000), d=part(b"\xfd" * 4000)),
    "a modulus of nothing": lambda liar: a_public_key_with(liar, n="", e=""),
    "ten thousand": lambda _liar: (
        200,
        {},
        json.dumps(
            {
                "keys": [
                    {"kty": "EC", "crv": "P-256", "kid": str(n), "x": part(b"\1" * 32), "y": part(b"\2" * 32)}
                    for n in range(7000)
                ]
            }
        ).encode(),
    ),
    "too much": lambda _liar: (200, {}, b'{"keys": "' + b"x" * (2 << 20)),
    "packed": lambda _liar: (200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * (64 << 20))),
    "elsewhere": lambda _liar: (302, {"Location": "http://169.254.169.254/latest/meta-data/"}, b""),
    "an error": lambda _liar: (500, {}, b"<html>"),
    "half": lambda _liar: (200, {"Content-Length": "100000"}, b'{"keys": ['),
}


@pytest.mark.parametrize("keys", BAD_KEYS)
def test_keys_that_are_none(liar: Liar, keys: str):
    made = BAD_KEYS[keys](liar)
    liar.answers["/keys"] = lambda: made
    tracemalloc.start()
    try:
        assert refused(liar).code in ("sso_token", "sso_trouble")
        # What is packed is not unpacked.
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


DESCRIPTIONS: list[dict[str, Any]] = [
    {"issuer": "https://login.example.org"},
    {"issuer": 5},
    {"issuer": None},
    {"issuer": ["x"]},
    {"jwks_uri": "http://169.254.169.254/latest/meta-data/iam"},
    {"jwks_uri": "http://127.0.0.1:1/keys"},
    {"jwks_uri": "file:///etc/passwd"},
    {"jwks_uri": "http://["},
    {"jwks_uri": 5},
    {"jwks_uri": ""},
    {"token_endpoint": "http://127.0.0.1:1/token"},
    {"token_endpoint": "https://evil.example.org/token"},
    {"token_endpoint": "http://[::1"},
    {"token_endpoint": None},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"authorization_endpoint": "data:text/html,x"},
    {"authorization_endpoint": "http://evil.example.org/authorize"},
    {"authorization_endpoint": 5},
    {"authorization_endpoint": "http://[/x"},
    {"id_token_signing_alg_values_supported": ["none"]},
    {"id_token_signing_alg_values_supported": ["HS256"]},
    {"id_token_signing_alg_values_supported": "RS256 none"},
    {"id_token_signing_alg_values_supported": 5},
    {"token_endpoint_auth_methods_supported": 5},
]


@pytest.mark.parametrize("told", DESCRIPTIONS, ids=str)
def test_descriptions_that_lead_elsewhere(liar: Liar, told: dict[str, Any]):
    liar.lies = {"metadata": told}
    assert refused(liar).status in (401, 502)


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
@pytest.mark.parametrize(
    "answer",
    [(200, {}, b"null"), (200, {}, b"\xff\xfe"), (200, {}, b'{"a":' + DEEP), (200, {}, b""), (204, {}, b""),
     (301, {"Location": "http://evil.example.org/"}, b"{}"), (200, {"Content-Encoding": "br"}, b"x"),
     (200, {"Content-Encoding": "gzip"}, b"no gzip")],
    ids=lambda answer: f"{answer[0]} {answer[1]} {answer[2][:8]!r}",
)  # fmt: skip
def test_answers_that_are_none(liar: Liar, path: str, answer: Raw):
    liar.answers[path] = lambda: answer
    assert refused(liar).code in ("sso_token", "sso_trouble")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
def test_answers_that_take_too_long(liar: Liar, path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(oidc_provider, "_SECONDS", 1.0)
    ended = threading.Event()

    def slow() -> Raw:
        ended.wait(30)
        return 200, {}, b"{}"

    liar.answers[path] = slow
    try:
        assert "within 1 s" in str(refused(liar))
    finally:
        ended.set()


@pytest.mark.parametrize(
    "claims",
    [
        {"preferred_username": "x" * 500_000},
        {"sub": "x" * 500_000},
        {"groups": [f"g{number}" for number in range(50_000)]},
        {"preferred_username": "<img src=x onerror=alert(1)>"},
        {"preferred_username": "ann\n[hub]\x1b[2J\u202e"},
        {"preferred_username": "../../ann"},
        {"preferred_username": "ann\0"},
    ],
    ids=lambda claims: str(claims)[:60],
)
def test_enormous_and_strange_claims_are_no_fault_here(liar: Liar, claims: dict[str, Any]):
    """What such a person may be called is decided where accounts are made; see test_oidc.py."""
    liar.lies = {"claims": claims}
    began = time.thread_time()
    try:
        signed_in(liar)
    except SignInRefused as why:
        assert len(str(why)) < 1000
    assert time.thread_time() - began < 2.0


@pytest.mark.parametrize(
    "groups",
    [
        "gpu-admins ",
        "GPU-ADMINS",
        ["gpu-admins,staff"],
        [["gpu-admins"]],
        {"gpu-admins": 1},
        5,
        None,
        True,
        ["gpu"],
        "*",
    ],
    ids=str,
)
def test_only_the_group_itself_makes_an_admin(liar: Liar, groups: Any):
    sso = SingleSignOn(Oidc(issuer=liar.issuer, client_id=CLIENT, roles=Roles(admin=("gpu-admins",))))
    liar.lies = {"claims": {"groups": groups}}
    with pytest.raises(SignInRefused, match="no role"):
        sso.role(signed_in(liar), "admin")


def test_userinfo_of_somebody_else_adds_nothing(liar: Liar):
    liar.claims = {"sub": "u-1", "preferred_username": "ann"}
    for sub in ("u-2", "", None, ["u-1"]):
        liar.lies = {"userinfo": {"sub": sub, "groups": ["gpu-admins"], "preferred_username": "root"}}
        person = signed_in(liar)
        assert (person.name, person.groups) == ("ann", frozenset())
    liar.lies = {"userinfo": {"sub": "u-1", "groups": ["gpu-admins"], "preferred_username": "root"}}
    assert signed_in(liar).name == "ann", "what the token says is what holds"
