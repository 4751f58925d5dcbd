"""gpulse import, against a hub as it is."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from gpulse.cli.moving_in import _WORDS
from gpulse.reservations.moving_in import Outcome
from tests.api.moving import FILE, ZONE, Moving, moving
from tests.api.serving import served
from tests.cli.hub import gpulse


class Served(NamedTuple):
    hub: Moving
    url: str
    key: str
    file: Path

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return gpulse("import", *arguments, hub=self.url, GPULSE_KEY=self.key, TZ=ZONE)


@pytest.fixture
def there(tmp_path) -> Iterator[Served]:
    file = tmp_path / "comments.json"
    # As old files are.
    file.write_bytes(FILE.encode("latin-1"))
    with moving(tmp_path / "data") as hub, served(hub.app) as port:
        yield Served(hub, f"http://127.0.0.1:{port}", hub.people.key("admin"), file)


def test_each_entry_has_a_line_and_nothing_is_lost(there):
    done = there.run(str(there.file), "--dry-run")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:9]] == ["3", "4", "5", "8", "9", "11", "11", "12"]
    assert "would be reserved  until Tuesday 1 December 2026, 18:00 CET" in lines[1]
    assert "Père Noël" in lines[2]
    assert 'not understood     "when done" is no time that I understand' in lines[5]
    assert lines[-2] == ("8 entries: 3 would be reserved, 1 over, left out, 2 no such GPU, 1 not understood, 1 empty")
    assert lines[-1] == "nothing was changed (--dry-run)"
    assert there.hub.table.current() == []

    done = there.run(str(there.file))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "8 entries: 3 reserved, 1 over, left out, 2 no such GPU, 1 not understood, 1 empty"
    )
    assert {one.person for one in there.hub.table.current()} == {"ann", "Père Noël", "dan"}
    assert "3 already there" in there.run(str(there.file)).stdout


def test_json_and_an_end_where_all_is_well(there):
    there.file.write_text('{"gpu1": [{"name": "ann", "date": "2026-12-01 18:00"}, {}]}')
    done = there.run(str(there.file), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["counts"] == {"reserved": 1, "empty": 1}


def test_a_file_that_cannot_be_read(there, tmp_path):
    done = there.run(str(tmp_path / "nowhere.json"))
    assert done.returncode == 2
    assert done.stderr.endswith("nowhere.json cannot be read: No such file or directory; name a comments.json\n")
    there.file.write_text('{\n"gpu1": [}')
    done = there.run(str(there.file))
    assert done.returncode == 2
    assert done.stderr.startswith("gpulse: line 2 of the file: ")
    there.file.write_bytes(b" " * ((1 << 20) + 1))
    assert "is larger than 1,048,576 bytes" in there.run(str(there.file)).stderr


def test_every_outcome_has_its_words_and_is_in_the_docs():
    assert set(_WORDS) == set(get_args(Outcome))
    text = (Path(__file__).resolve().parents[2] / "docs" / "moving-in.md").read_text("utf-8")
    for code, (words, _, _) in _WORDS.items():
        assert f"| {words} | `{code}` |" in text


def test_who_may_not(there):
    done = gpulse("import", str(there.file), hub=there.url, GPULSE_KEY=there.hub.people.key("member"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs the role admin" in done.stderr
    assert there.hub.table.current() == []
