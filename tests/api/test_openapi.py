"""The description of the API: complete, and true of what the application does."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gpulse.api.application import create_app
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Ingest
from gpulse.api.routes import ENDPOINTS
from gpulse.auth.tokens import Tokens
from gpulse.auth.upgrades import Upgrades
from gpulse.config import Config
from gpulse.fleet.places import Place
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from gpulse.transport.push import Push
from tests.api.asking import ask
from tests.api.fleets import HOSTILE, add, card, process, small, snapshot
from tests.api.people import People, make_people, open_access

STATUSES = ["400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "5xx"]
FILES = ("/api/docs", "/api/openapi.json", "/config.json")


def test_every_route_is_described(tmp_path: Path):
    app = create_app(small(), access=open_access(), built_page=tmp_path)
    document = ask(app, "/api/openapi.json").json()
    routes = {route.path.replace(":path}", "}") for route in app.routes if isinstance(route, Route)}
    questions = {path for path in routes if path != "/" and not path.startswith(FILES)}
    assert questions == set(document["paths"])
    assert {endpoint.path for endpoint in ENDPOINTS} < questions


def test_parameters_have_their_limits():
    document = ask(create_app(small(), access=open_access()), "/api/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    parameters = {one["name"]: one for one in document["paths"]["/api/v1/nodes"]["get"]["parameters"]}
    assert set(parameters) == {"q", "me", "sight", "limit", "offset", "state", "group", "detail", "full", "sort"}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    assert set(parameters["state"]["schema"]["enum"]) == {"new", "up", "stale", "down"}
    assert all(one["description"] for one in parameters.values())
    path = document["paths"]["/api/v1/nodes/{node}"]["get"]
    assert path["parameters"][0]["in"] == "path"
    assert set(path["responses"]) == {"200", "304", "400", "401", "403", "404", "406", "421"}


def test_every_operation_has_its_own_name():
    names = [endpoint.name for endpoint in ENDPOINTS]
    assert len(set(names)) == len(names)


def test_a_figure_has_one_kind_of_number():
    def walk(value: object) -> None:
        if isinstance(value, dict):
            kinds = {one.get("type") for one in value.get("anyOf", []) if isinstance(one, dict)}
            assert not {"integer", "number"} <= kinds
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(ask(create_app(small(), access=open_access()), "/api/openapi.json").json())


def test_the_viewer_gets_what_it_understands():
    app = create_app(small(), access=open_access())
    document = ask(app, "/api/docs/openapi.json").json()
    assert document["openapi"] == "3.0.3"
    assert '"null"' not in ask(app, "/api/docs/openapi.json").text
    age = document["components"]["schemas"]["NodeView"]["properties"]["age_seconds"]
    assert age["nullable"] is True
    assert "SwaggerUIBundle" in ask(app, "/api/docs/swagger-ui-bundle.js").text


def described_fleet():
    fleet = small()
    add(fleet, "gpu20", 3)
    fleet.place(Place(name="odd", display_name=HOSTILE))
    fleet.line("odd", snapshot("odd", [card(None, 0, name=HOSTILE)], [process(1, HOSTILE, "x", HOSTILE)]))
    fleet.tick()
    return fleet


FLEET = described_fleet()


class Described:
    """A hub whose description can be read at once; once it is opened it takes what nodes and an admin send, too."""

    def __init__(self) -> None:
        self._app = create_app(FLEET, access=open_access())
        self._node = self._join = self._admin = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def open(self, folder: Path, people: People) -> None:
        tokens = Tokens(people.records)
        self._admin = people.key("admin")
        self._node = tokens.create_node("gpu1")
        self._join = tokens.create_join("new[1-9]", expires_at=time.time() + 3600)
        push = Push(FLEET, lambda name: Place(name=name))
        desk = Desk(Reservations(people.records), FLEET, Config().reservations)
        ingest = Ingest(tokens, push, Upgrades(folder))
        self._app = create_app(FLEET, access=people.access(), ingest=ingest, desk=desk)

    def headers(self, path: str) -> dict[str, str]:
        if not path.startswith("/api/v1/ingest"):
            return {"Authorization": f"Bearer {self._admin}"}
        return {"Authorization": f"Bearer {self._join if path.endswith('/join') else self._node}"}


DESCRIBED = Described()


@pytest.fixture(scope="module")
def with_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("hub")
    people = make_people(folder)
    DESCRIBED.open(folder, people)
    yield
    people.records.close()


schema = schemathesis.openapi.from_asgi("/api/openapi.json", DESCRIBED)
# Too long a text may make the whole body too large, and that is told first. And what a WebSocket's address says to a
# plain GET without a mistake: a wrong value may leave no trace in a query.
schema.config.checks.negative_data_rejection.expected_statuses = [*STATUSES, "413", "426"]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@schema.parametrize()
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@pytest.mark.usefixtures("with_tokens")
def test_answers_are_as_described(case):
    FLEET.tick()
    case.call_and_validate(checks=CHECKS, headers=DESCRIBED.headers(case.operation.path))


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if one.token], ids=lambda one: one.name)
@pytest.mark.parametrize("token", [None, "", "Bearer", "Basic eDp5", "Bearer gpn_000000000000_" + 48 * "0"])
@pytest.mark.usefixtures("with_tokens")
def test_nothing_is_taken_without_a_token(endpoint: Endpoint, token: str | None):
    headers = {} if token is None else {"Authorization": token}
    response = ask(DESCRIBED, endpoint.path, endpoint.method, headers, b"{}" if endpoint.method == "POST" else None)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["code"].startswith("token_")
