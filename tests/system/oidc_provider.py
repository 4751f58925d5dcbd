"""A small OpenID Connect provider, as a process of its own: real HTTP, real RS256 keys, and the lies a test asks for.

python -m tests.system.oidc_provider PORT
"""

import base64
import json
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "gpulse-test", "a secret: with% signs"


class Provider:
    """Whoever comes is signed in as `claims` say; `lies` change what it tells."""

    def __init__(self, issuer: str):
        self.issuer = issuer
        self.key = RSAKey.generate_key(2048, {"kid": "k1"}, private=True)
        self.stranger = RSAKey.generate_key(2048, {"kid": "k1"}, private=True)
        self.claims: dict[str, Any] = {}
        self.lies: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **self.lies.get("metadata", {}),
        }

    def authorize(self, asked: dict[str, str]) -> str:
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_hex(16)
        self.codes[code] = asked
        told = {"code": code, "state": asked["state"], "iss": self.issuer, "session_state": "ignored"}
        if "error" in self.lies:
            told = {"error": self.lies["error"], "state": asked["state"]}
        return f"{asked['redirect_uri']}?{urlencode(told)}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(name), unquote_plus(secret)) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or create_s256_code_challenge(form["code_verifier"]) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        if form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        claims |= self.claims | self.lies.get("claims", {})
        key = self.stranger if self.lies.get("strange_key") else self.key
        text = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, key)
        if self.lies.get("unsigned"):
            head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
            text = f"{head}.{text.split('.')[1]}."
        return 200, {"access_token": "told", "token_type": "Bearer", "id_token": text}


def handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = dict(parse_qsl(parts.query))
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif parts.path == "/.well-known/openid-configuration":
                self._tell(200, provider.metadata())
            elif parts.path == "/keys":
                self._tell(200, {"keys": [{"kty": "new"}, provider.key.as_dict(private=False)]})
            elif parts.path == "/userinfo":
                self._tell(200, provider.lies.get("userinfo", {}))
            else:
                self._tell(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/set":
                wanted = json.loads(body)
                provider.claims, provider.lies = wanted["claims"], wanted.get("lies", {})
                self._tell(200, {})
            else:
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                self._tell(*provider.token(form, self.headers.get("Authorization", "")))

        def _tell(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name is given
            """Tests say themselves what matters."""

    return Handler


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    issuer = f"http://127.0.0.1:{server.server_port}"
    server.RequestHandlerClass = handler(Provider(issuer))
    sys.stdout.write(issuer + "\n")
    sys.stdout.flush()
    server.serve_forever()
