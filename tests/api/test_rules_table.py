"""Who may ask for each address, written down a second time: a rule that is changed by mistake fails here."""

from gpulse.api.openapi import document
from gpulse.api.routes import ENDPOINTS

EXPECTED = {
    "anyone": {
        "GET /api/v1/keys/{key}/proof",
        "GET /api/v1/me",
        "POST /api/v1/session",
        "POST /api/v1/session/link",
        "GET /api/v1/session/sso",
        "GET /api/v1/session/sso/callback",
        "GET /feeds/{secret}.ics",
        "GET /healthz",
        "GET /readyz",
    },
    "read": {
        "GET /api/v1/free",
        "GET /api/v1/gpus",
        "GET /api/v1/gpus/{id}",
        "GET /api/v1/history",
        "GET /api/v1/hub",
        "GET /api/v1/live",
        "GET /api/v1/nodes",
        "GET /api/v1/nodes/{node}",
        "GET /api/v1/nodes/{node}/checks",
        "GET /api/v1/nodes/{node}/log",
        "GET /api/v1/reservations",
        "GET /api/v1/reservations/{reservation}",
        "GET /api/v1/summary",
        "GET /api/v1/users",
        "GET /api/v1/when",
        "GET /free",
        "POST /get-status",
        "GET /metrics",
    },
    "self": {
        "GET /api/v1/me/feeds",
        "POST /api/v1/me/feeds",
        "DELETE /api/v1/me/feeds/{feed}",
        "GET /api/v1/me/keys",
        "POST /api/v1/me/keys",
        "DELETE /api/v1/me/keys/{key}",
        "POST /api/v1/me/password",
        "GET /api/v1/me/sessions",
        "DELETE /api/v1/me/sessions/{session}",
        "DELETE /api/v1/session",
        # Who may not reserve any more can let go of what is theirs; the rules of reservations say whose it is.
        "DELETE /api/v1/reservations/{reservation}",
        "POST /api/v1/reservations/{reservation}/end",
    },
    "member": {
        "POST /api/v1/reservations",
        "PATCH /api/v1/reservations/{reservation}",
    },
    "admin": {
        "GET /api/v1/accounts",
        "POST /api/v1/accounts",
        "PATCH /api/v1/accounts/{account}",
        "DELETE /api/v1/accounts/{account}/keys",
        "POST /api/v1/accounts/{account}/link",
        "DELETE /api/v1/accounts/{account}/sessions",
        "GET /api/v1/audit",
        "POST /api/v1/reservations/import",
    },
    "node": {
        "POST /api/v1/ingest",
        "GET /api/v1/ingest/agent",
        "POST /api/v1/ingest/gpustat",
        "POST /api/v1/ingest/join",
    },
}


def test_every_address_has_the_rule_it_should():
    told: dict[str, set[str]] = {}
    for path, methods in document(ENDPOINTS, "gpulse")["paths"].items():
        for method, operation in methods.items():
            told.setdefault(operation["x-may"], set()).add(f"{method.upper()} {path}")
    assert told == EXPECTED
