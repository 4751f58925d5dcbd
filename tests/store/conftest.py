"""A backup, for tests that restore it."""

import pytest

from gpulse.store import Records
from gpulse.store.backup import back_up
from tests.store.keeping import everything, fill


@pytest.fixture
def written(tmp_path_factory):
    """A backup with something in every table, and what that is; from a file."""
    folder = tmp_path_factory.mktemp("written")
    with Records(folder) as records:
        fill(records)
        back_up(records, folder / "all.gpulse")
        return folder / "all.gpulse", everything(records)
