"""Whatever a test asks for here, the answer's status must be in the description of the API."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from gpulse.api.endpoint import Endpoint
from gpulse.api.openapi import document
from gpulse.api.routes import ENDPOINTS

_PATHS = document(ENDPOINTS, "gpulse")["paths"]


@pytest.fixture(autouse=True)
def only_documented_statuses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    respond = Endpoint.respond
    others: list[str] = []

    def watched(self: Endpoint, *arguments: Any) -> Any:
        answered = respond(self, *arguments)
        described = _PATHS.get(self.path, {}).get(self.method.lower(), {}).get("responses")

        async def answer(request: Request) -> Response:
            response: Response = await answered(request)
            if described is not None and str(response.status_code) not in described:
                others.append(f"{self.method} {self.path}: {response.status_code} {bytes(response.body)[:200]!r}")
            return response

        return answer

    monkeypatch.setattr(Endpoint, "respond", watched)
    yield
    assert others == [], "add it to the endpoint's errors"
