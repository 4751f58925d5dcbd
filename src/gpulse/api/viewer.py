"""The offline viewer of the API's description: Swagger UI from its PyPI package, with our description in it."""

from pathlib import Path
from typing import Any

import swagger_ui_bundle  # type: ignore[import-untyped]  # it has no types

# What is served of the package; the rest are source maps and variants.
ASSETS = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
# The viewer styles its parts in place and carries its icons in data: addresses.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def asset_folder() -> Path:
    return Path(swagger_ui_bundle.swagger_ui_path)


def for_viewer(document: dict[str, Any]) -> dict[str, Any]:
    """The description as OpenAPI 3.0: the packaged viewer refuses 3.1."""
    plain: dict[str, Any] = _without_null(document)
    plain["openapi"] = "3.0.3"
    # It is fetched from one level deeper.
    plain["servers"] = [{"url": "../.."}]
    return plain


def _without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_null(one) for key, one in value.items()}
    choices = kept.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        del kept["anyOf"]
        kept |= {**(rest[0] if len(rest) == 1 else {"anyOf": rest}), "nullable": True}
    return kept
