"""The OpenAPI document, built from the same declarations as the routes."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gpulse.api.endpoint import Endpoint
from gpulse.api.errors import MEANINGS, ErrorAnswer
from gpulse.api.live import MAY as LIVE_MAY
from gpulse.api.live import LiveQuery
from gpulse_probe import __version__

_TEMPLATE = "#/components/schemas/{name}"


def document(endpoints: Sequence[Endpoint], title: str) -> dict[str, Any]:
    """The whole API as OpenAPI 3.1."""
    types = [endpoint.answer for endpoint in endpoints if endpoint.media == "application/json"]
    types += [endpoint.body for endpoint in endpoints if endpoint.body is not None]
    schemas, components = msgspec.json.schema_components([*types, ErrorAnswer], ref_template=_TEMPLATE)
    error_schema = schemas[-1]
    of_type = dict(zip([id(kind) for kind in types], schemas, strict=False))
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, of_type, error_schema)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    paths["/api/v1/live"] = {
        "get": {
            "operationId": "live",
            "summary": "The live stream over WebSocket: a full frame, then a delta a tick. docs/api.md has the frames.",
            "parameters": _query_parameters(LiveQuery),
            "responses": {
                "101": {"description": "The stream begins."},
                **{
                    str(status): _error(status, "application/json", error_schema)
                    for status in (400, 401, 403, 421, 422, 426)
                },
            },
            "security": [{"key": []}, {"session": [], "page_key": []}, {}],
            "x-may": LIVE_MAY,
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": __version__,
            "description": "Every GPU of a cluster, live, with who uses it.",
        },
        # Relative to this document: right under any sub-path.
        "servers": [{"url": ".."}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of a node."},
                "key": {"type": "http", "scheme": "bearer", "description": "A key of a person."},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "gpulse_HUB",
                    "description": "A signed-in browser, together with the key of its page.",
                },
                "page_key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Gpulse",
                    "description": "`page_key` of the answer to the sign-in; with a WebSocket a protocol, docs/api.md.",
                },
            },
        },
    }


def _operation(endpoint: Endpoint, of_type: dict[int, dict[str, Any]], error_schema: dict[str, Any]) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": meaning,
            "schema": {"type": "string", "minLength": 1},
        }
        for name, meaning in endpoint.path_parameters.items()
    ]
    schema = of_type.get(id(endpoint.answer), {"type": "string"})
    done = str(endpoint.status)
    text = {"type": "string"}
    content = {
        media.split(";")[0]: {"schema": schema if media == "application/json" else text}
        for media in (endpoint.media, *endpoint.other_media)
    }
    responses: dict[str, Any] = {done: {"description": "What was asked for.", "content": content}}
    if endpoint.kept:
        responses[done]["headers"] = {
            "ETag": {"description": "Stays the same until the next tick.", "schema": {"type": "string"}}
        }
        responses["304"] = {"description": "Nothing is new since the ETag in If-None-Match."}
    for good, meaning in endpoint.also.items():
        responses[str(good)] = {"description": meaning, "content": content}
    for status in sorted({*endpoint.errors, *_refusals(endpoint)}):
        responses[str(status)] = _error(status, endpoint.media, error_schema)
    operation: dict[str, Any] = {"operationId": endpoint.name, "summary": endpoint.summary, "responses": responses}
    parameters += _query_parameters(endpoint.query)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        body = {"application/json": {"schema": of_type[id(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": body}
    if endpoint.token:
        operation["security"] = [{"token": []}]
    elif endpoint.may != "anyone":
        operation["security"] = [
            {"key": []},
            {"session": [], "page_key": []},
            *([{}] if endpoint.may == "read" else []),
        ]
    # For people and tests: who may, beside with what.
    operation["x-may"] = endpoint.may
    return operation


def _refusals(endpoint: Endpoint) -> tuple[int, ...]:
    """What can come of who asks, whatever is asked."""
    if endpoint.token:
        return ()
    return (400, 401, 403, 421) if endpoint.asks_who else (421,)


def _error(status: int, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    if media.startswith("text/plain"):
        return {"description": MEANINGS[status], "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"description": MEANINGS[status], "content": {"application/json": {"schema": schema}}}


def _query_parameters(query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    (reference,), components = msgspec.json.schema_components([query], ref_template=_TEMPLATE)
    properties = components[reference["$ref"].rsplit("/", 1)[1]]["properties"]
    parameters = []
    for name in query.__struct_encode_fields__:
        schema = dict(properties[name])
        description = schema.pop("description", "")
        if schema.get("default") == "":
            del schema["default"]
        parameters.append({"name": name, "in": "query", "description": description, "schema": schema})
    return parameters
