"""docs/api.md names every address, parameter and word of the filter language."""

from pathlib import Path

import pytest

from gpulse.api.endpoint import Endpoint
from gpulse.api.errors import CODES
from gpulse.api.live import LiveQuery
from gpulse.api.routes import ENDPOINTS
from gpulse.fleet.figure_terms import FIGURES
from gpulse.fleet.health import FLAGS
from gpulse.fleet.terms import KEYS
from gpulse.fleet.views import GPU_STATES

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_address_and_parameter(endpoint: Endpoint):
    assert f"`{endpoint.path}`" in TEXT
    for parameter in endpoint.query.__struct_encode_fields__:
        assert f"`{parameter}" in TEXT, parameter


def test_every_word_of_the_filter_language():
    for key in KEYS:
        assert f"`{key}:" in TEXT
    for figure in FIGURES:
        assert f"`{figure}>" in TEXT or f"`{figure}<" in TEXT
    for state in GPU_STATES:
        assert f"`{state}`" in TEXT
    for flag in FLAGS:
        assert f"`{flag}`" in TEXT


def test_the_live_stream_and_all_errors():
    assert "`/api/v1/live`" in TEXT
    for parameter in LiveQuery.__struct_fields__:
        assert parameter in TEXT
    for status in set(CODES) - {500}:
        assert str(status) in TEXT
