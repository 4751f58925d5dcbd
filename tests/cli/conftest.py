"""What the commands' tests share."""

from collections.abc import Iterator

import pytest

from tests.cli.hub import FakeHub, running


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running() as fake:
        yield fake
