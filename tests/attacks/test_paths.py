"""Names that lead out of the folder they belong into."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.auth import local_socket
from tests.api.fleets import card, snapshot
from tests.attacks.speaking import asked, status_of
from tests.hub.running import GPULSE
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import CALM, Site

MARK = "a line of a file that is nobody's business"
LOGO = '<svg xmlns="http://www.w3.org/2000/svg"><title>the logo</title></svg>'
UPWARDS = ("..", "%2e%2e", "%2E.", "..%2f..", "..%5c..", "%252e%252e", "..;", "%c0%ae%c0%ae", "....//..")
# Where files are served, with the folders above them.
PLACES = ("/", "/assets/", "/api/docs/", "/logo/", "/custom.css/", "/api/v1/nodes/", "/api/v1/gpus/", "/static/")
ODD_NAMES = ("../outside", "..", "a/b", "/etc/passwd", "..\\outside", "a\0b", ".hidden", "gpu1/../../outside")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Beside the logo and above the data are files that nobody is to read."""
    folder = tmp_path_factory.mktemp("outer") / "site"
    folder.mkdir()
    (folder / "logo.svg").write_text(LOGO)
    (folder / "custom.css").write_text("body { margin: 0 }")
    for place in (folder, folder.parent):
        (place / "mark.txt").write_text(MARK)
    (folder / "gpulse.toml").write_text('[web]\nlogo = "logo.svg"\ncustom_css = "custom.css"\n')
    with Site(folder) as found:
        yield found


def targets(folder: Path, key: str) -> Iterator[str]:
    """To the marked file, to a file of the system, to our own sources and the database."""
    goals = ("mark.txt", "site/mark.txt", "gpulse.toml", "data/gpulse.db", "etc/passwd", "application.py", key)
    for place, up, depth, goal in itertools.product(PLACES, UPWARDS, (1, 2, 12), goals):
        yield place + "/".join([up] * depth) + "/" + goal
    for place in PLACES:
        yield f"{place}{folder}/mark.txt"
        yield f"{place}/{folder}/mark.txt"
        yield f"{place}file://{folder}/mark.txt"
        yield f"{place}mark.txt%00.svg"
    yield f"http://localhost{folder}/mark.txt"


def test_no_address_leads_out(site: Site):
    """A thousand and a half of them; each is refused, and none tells of a file."""
    tried = 0
    for target in targets(site.folder, local_socket.place(site.data, site.url).name):
        answer = asked(site.url, target)
        tried += 1
        assert status_of(answer) in (400, 404), target
        for secret in (MARK.encode(), b"root:x:", b"SQLite format", b"def create_app", b"gpk_"):
            assert secret not in answer, target
    assert tried > 1000


def test_the_files_themselves_are_there(site: Site):
    """Else the test before would pass without a hub."""
    assert b"the logo" in asked(site.url, "/logo")
    assert b"margin" in asked(site.url, "/custom.css")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_node_has_such_a_name(site: Site, name: str):
    token = site.token("honest")
    try:
        answer = site.post(token, snapshot(name, [card("GPU-1", 0)]))
        assert answer.status_code in (400, 403, 409, 422), answer.text
        names = {node["name"] for node in site.hub.get("api/v1/nodes")["items"]}
        assert names <= {"honest"}
    finally:
        site.token_command("revoke", "honest")
    if "\0" not in name:
        command = [GPULSE, "token", "create", f"--data={site.data}", "--", name]
        ran = subprocess.run(
            command, env=os.environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert ran.returncode != 0
        assert "Traceback" not in ran.stderr


def test_an_export_stays_in_its_folder(site: Site, tmp_path: Path):
    """Whatever a node, its cards and its people are called: their names are no names of files."""
    token = site.token("outward")
    body = snapshot(
        "outward",
        [card("../../../escaped", 0, name="../escaped")],
        [{"pid": 1, "user": "../escaped", "name": "../escaped", "command": "../escaped", "gpus": []}],
        reports=[{"collector": "../escaped", "message": "../escaped"}],
        probe=CALM,
    )
    assert site.post(token, body).status_code == 200
    site.until_up("outward")
    before = set(tmp_path.rglob("*"))
    command = [GPULSE, "export", str(tmp_path / "made" / "here"), "--hub", site.url]
    home = {**os.environ, "HOME": str(site.folder), "GPULSE_DATA": str(site.data)}
    ran = subprocess.run(command, env=home, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert ran.returncode == 0, ran.stderr
    new = set(tmp_path.rglob("*")) - before
    assert all(path.is_relative_to(tmp_path / "made") for path in new)
    assert not [path for path in new if "escaped" in path.name]
    assert any(b"../escaped" in path.read_bytes() for path in new if path.name == "data.js")
