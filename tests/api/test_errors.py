"""Refusals repeat what they are about, but no secret that somebody sent where none belongs."""

import pytest

from tests.api.asking import get
from tests.api.fleets import small

SECRET = "1" * 48
KEY = f"gpk_{'a' * 12}_{SECRET}"


@pytest.mark.parametrize(
    "path", [f"/{KEY}", f"/api/v1/nodes/{KEY}", f"/api/v1/gpus?q=util>{KEY}", f"/free?{KEY}=1", f"/free?q=mem>{KEY}"]
)
def test_a_secret_is_not_repeated(path: str):
    refused = get(small(), path)
    assert refused.status_code in (400, 404, 422)
    assert "gpk_aaaaaaaaaaaa_…" in refused.text
    assert SECRET not in refused.text
