"""gpulse export: what is in the site, that nobody reads half of it, and how it ends."""

import fcntl
import http.server
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from typer.testing import CliRunner

from gpulse.api.application import create_app
from gpulse.api.page import OwnFiles
from gpulse.cli.commands import app
from gpulse.config import Web
from gpulse.errors import ExportError
from gpulse.export import folder
from gpulse.export.site import Moment, Site, script
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.api.fleets import HOSTILE, card, process, small, snapshot
from tests.api.people import make_people, open_access
from tests.api.serving import served
from tests.chromium import dom_of
from tests.cli.hub import GPULSE, FakeHub, env, listing, node
from tests.patience import PATIENCE_SECONDS

PAGE = """<!doctype html>
<html lang="en"><head>
<meta charset="utf-8" />
<title>gpulse</title>
<link rel="icon" href="./icon.svg" />
<link rel="stylesheet" href="page.css" />
<script src="data.js" defer></script>
<script src="page.js" defer></script>
</head>
<body><div id="app"></div><a href="#/people">People</a></body></html>
"""
# Shows what it finds, as the real page does.
SCRIPT = """
const data = window.gpulseExport;
document.getElementById("app").textContent = "READY " + data.nodes.length + " " + JSON.stringify(data.title);
"""
VERSION = r"gpulse-\d{8}T\d{6}Z-[0-9a-f]{8}"


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page as `make web` leaves it, but small."""
    folder = tmp_path / "built"
    folder.mkdir()
    for name, text in {"index.html": PAGE, "icon.svg": "<svg/>", "page.js": SCRIPT, "page.css": "b{}"}.items():
        (folder / name).write_text(text)
    monkeypatch.setattr("gpulse.export.site.BUILT", folder)
    monkeypatch.delenv("GPULSE_HUB", raising=False)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def done(*arguments: str | Path) -> None:
    result = export(*arguments)
    assert (result.exit_code, result.output) == (0, "")


def refused(*arguments: str | Path) -> str:
    result = export(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("gpulse: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def page_of(site: Path) -> tuple[str, Path]:
    """The page, and the folder of its files."""
    page = (site / "index.html").read_text()
    (version,) = set(re.findall(VERSION, page))
    return page, site / version


def data_of(site: Path) -> Any:
    text = (page_of(site)[1] / "data.js").read_text()
    return json.loads(text.removeprefix("window.gpulseExport = ").rstrip(";\n"))


def made(site: Path) -> float:
    """When; 0 where it was replaced while it was read."""
    try:
        return data_of(site)["made"]
    except OSError:
        return 0.0


def hostile() -> Fleet:
    fleet = small()
    fleet.place(Place(name="gpu9", display_name=f"</script><script>alert(1)</script>{HOSTILE}\u2028\u2029"))
    fleet.line("gpu9", snapshot("gpu9", [card("GPU-9", 0)], [process(1, "eve", "GPU-9", "<!--<script> x")]))
    fleet.tick()
    return fleet


def answers(hub: FakeHub) -> None:
    hub.answers = {
        "/config.json": {"hub": "", "title": "gpulse", "logo": None, "custom_css": False},
        "/summary": {"nodes": 1},
        "/nodes": listing(node("n1")),
        "/users": listing(),
        "/history": {"node": None, "step_seconds": 10, "end": 1.0, "gpus": []},
        "/nodes/n1/log": listing(),
    }


def test_everything_is_in_it(site: Path):
    with served(create_app(small(), access=open_access(), title="Lab & co")) as port:
        before = time.time()
        done(site, "--hub", f"http://127.0.0.1:{port}")
    page, files = page_of(site)
    assert sorted(path.name for path in files.iterdir()) == ["data.js", "icon.svg", "page.css", "page.js"]
    data = data_of(site)
    assert data["title"] == "Lab & co"
    assert before <= data["made"] <= time.time()
    assert (data["summary"]["nodes"], data["summary"]["gpus"]) == (4, 6)
    assert [one["name"] for one in data["nodes"]] == ["gpu1", "gpu2", "gpu3", "gpu10"]
    assert data["nodes"][0]["host"]["cpu_threads"] == 64
    assert data["nodes"][0]["processes"][0]["command"] == "python"
    assert [one["person"] for one in data["people"]] == ["alice"]
    assert data["logs"]["gpu3"][0]["message"] == "connection refused"
    assert (data["history"]["step_seconds"], len(data["history"]["gpus"])) == (10, 6)
    assert {len(gpu["power"]) for gpu in data["history"]["gpus"]} == {60}
    assert "<title>Lab &amp; co</title>" in page
    assert 'href="#/people"' in page
    for address in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert (site / address).is_file(), address


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ((), {"alice"}),
        (("--sight", "names"), {"alice"}),
        (("--sight", "anonymous"), set()),
        (("--sight", "full"), {"alice", "train.py"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_readers_see_of_people(site: Path, options: tuple[str, ...], seen: set[str]):
    """Whoever exports, here somebody who sees everything: the site is for others."""
    with served(create_app(small(), access=open_access())) as port:
        done(site, "--hub", f"http://127.0.0.1:{port}", *options)
    written = b"".join(path.read_bytes() for path in site.rglob("*") if path.is_file()).decode()
    assert {word for word in ("alice", "train.py") if word in written} == seen
    assert ("somebody" in written) == ("alice" not in seen)


def test_no_more_is_written_than_who_exports_sees(site: Path, tmp_path: Path):
    people = make_people(tmp_path)
    try:
        with served(create_app(small(), access=people.access(anonymous=True))) as port:
            done(site, "--hub", f"http://127.0.0.1:{port}", "--sight", "full")
    finally:
        people.records.close()
    assert data_of(site)["nodes"][0]["processes"][0]["command"] == "python"


def test_the_last_minutes_of_every_node_whatever_its_name(site: Path):
    fleet = Fleet()
    names = ["a[1-3]", "b c", *(f"gpu{number}" for number in range(105))]
    for name in names:
        fleet.place(Place(name=name))
        fleet.line(name, snapshot(name, [card(f"GPU-{name}", 0)]))
    fleet.tick()
    with served(create_app(fleet, access=open_access())) as port:
        done(site, "--hub", f"http://127.0.0.1:{port}")
    data = data_of(site)
    assert sorted(gpu["node"] for gpu in data["history"]["gpus"]) == sorted(names)
    assert sorted(data["logs"]) == sorted(names)


def test_a_node_that_is_taken_away_meanwhile_is_no_reason_to_fail(hub: FakeHub, site: Path):
    answers(hub)
    hub.answers["/nodes"] = listing(node("n1"), node("two words"))
    hub.answers["/history"] = lambda query: (
        (404, {"error": {"code": "unknown_node", "message": "there is no such node"}})
        if "node" in query
        else {"node": None, "step_seconds": 10, "end": 1.0, "gpus": [{"id": "GPU-1", "node": "n1"}]}
    )
    hub.refuse("/nodes/two%20words/log", 404, "unknown_node", "there is no such node")
    done(site, "--hub", hub.url)
    assert [gpu["node"] for gpu in data_of(site)["history"]["gpus"]] == ["n1"]
    assert data_of(site)["logs"] == {}


def test_an_empty_fleet_has_no_past(hub: FakeHub, site: Path):
    answers(hub)
    hub.answers["/nodes"] = listing()
    done(site, "--hub", hub.url)
    assert data_of(site)["history"] is None


def test_what_a_site_made_its_own(tmp_path: Path, site: Path):
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n and more")
    (tmp_path / "our.css").write_text(":root{}")
    own = OwnFiles.read(Web(logo=tmp_path / "logo.png", custom_css=tmp_path / "our.css"))
    with served(create_app(small(), access=open_access(), own_files=own)) as port:
        done(site, "--hub", f"http://127.0.0.1:{port}")
    page, files = page_of(site)
    assert data_of(site)["logo"] == f"{files.name}/logo.png"
    assert (files / "logo.png").read_bytes().startswith(b"\x89PNG")
    assert page.index("page.css") < page.index("custom.css")
    assert (files / "custom.css").read_text() == ":root{}"


def test_no_name_ends_the_script(site: Path):
    with served(create_app(hostile(), access=open_access())) as port:
        done(site, "--hub", f"http://127.0.0.1:{port}")
    text = (page_of(site)[1] / "data.js").read_text()
    assert "<" not in text
    assert "\u2028" not in text
    assert "\u2029" not in text
    assert data_of(site)["nodes"][3]["display_name"].startswith("</script><script>alert(1)</script><img")


def test_a_title_is_words_and_no_html(hub: FakeHub, site: Path):
    answers(hub)
    hub.answers["/config.json"] = {"title": r"<b>\1 & ünï</title><script>x</script>"}
    done(site, "--hub", hub.url)
    assert r"<title>&lt;b&gt;\1 &amp; ünï&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;</title>" in page_of(site)[0]


@pytest.mark.parametrize("way", ["file", "http"])
def test_a_browser_shows_it(tmp_path: Path, site: Path, way: str):
    with served(create_app(hostile(), access=open_access(), title="Lab")) as port:
        done(site, "--hub", f"http://127.0.0.1:{port}")

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(site))

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name is given
            """Tests say themselves what matters."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/" if way == "http" else f"file://{site}/index.html"
        seen = dom_of(address, tmp_path)
        server.shutdown()
    assert 'READY 5 "Lab"' in seen


def test_the_version_before_stays_and_older_ones_go(hub: FakeHub, site: Path):
    answers(hub)
    seen = []
    for _ in range(4):
        done(site, "--hub", hub.url)
        seen.append(page_of(site)[1].name)
        (site / "notes.txt").write_text("not ours")
    kept = {path.name for path in site.iterdir() if path.is_dir()}
    assert kept == set(seen[-2:])
    assert (site / "notes.txt").exists()


def test_a_reader_never_sees_half(site: Path):
    """A reader takes the page and its files all the time, while new versions come."""
    stop = threading.Event()
    problems: list[str] = []
    reads = 0

    def read() -> None:
        nonlocal reads
        while not stop.is_set():
            try:
                page, files = page_of(site)
                number = re.search(r"number (\d+)", page)
                if number is None or (files / "data.js").read_text() != number[1] * 10_000:
                    problems.append(page)
            except (OSError, ValueError) as error:
                problems.append(repr(error))
            reads += 1

    def build(version: str, number: int) -> Site:
        return Site(f"{version} number {number}", {"data.js": b"%d" % number * 10_000})

    folder.put(site, lambda version: build(version, 0), 0.0)
    reader = threading.Thread(target=read)
    reader.start()
    for number in range(40):
        folder.put(site, lambda version, number=number: build(version, number), float(number))
        # Readers have the time between two versions, which is five seconds at least.
        end = reads + 2
        while reads < end and reader.is_alive():
            time.sleep(0.001)
    stop.set()
    reader.join()
    assert problems == []


def test_what_was_there_stays_when_the_disk_is_full(hub: FakeHub, site: Path):
    answers(hub)
    done(site, "--hub", hub.url)
    before = sorted(path.name for path in site.iterdir())

    def too_long(version: str) -> Site:
        return Site(version, {"a.js": b"x", "n" * 300: b"x"})

    with pytest.raises(ExportError, match=r"File name too long.*what is there stays"):
        folder.put(site, too_long, 0.0)
    assert sorted(path.name for path in site.iterdir()) == before


def test_what_a_killed_export_left_goes_with_the_next(hub: FakeHub, site: Path):
    answers(hub)
    done(site, "--hub", hub.url)
    left = "gpulse-20200101T000000Z-00000000"
    (site / left).mkdir()
    (site / f".index.html.{left}").write_text("half")
    done(site, "--hub", hub.url)
    assert not (site / left).exists()
    assert not (site / f".index.html.{left}").exists()


def test_a_page_of_somebody_else_is_not_overwritten(hub: FakeHub, site: Path):
    answers(hub)
    site.mkdir()
    (site / "index.html").write_text("my home page")
    assert "index.html is not of gpulse export; name an empty folder" in refused(site, "--hub", hub.url)
    assert [path.name for path in site.iterdir()] == ["index.html"]
    assert (site / "index.html").read_text() == "my home page"


def test_two_at_once_are_one_too_many(hub: FakeHub, site: Path):
    answers(hub)
    done(site, "--hub", hub.url)
    with (site / ".gpulse-export.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another gpulse export writes into" in refused(site, "--hub", hub.url)


def test_a_page_that_is_not_built(hub: FakeHub, site: Path, built: Path):
    answers(hub)
    (built / "index.html").unlink()
    assert "the page is not built" in (words := refused(site, "--hub", hub.url))
    assert "make web" in words
    assert not (site / "index.html").exists()


def test_which_hub_is_asked(hub: FakeHub, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    answers(hub)
    hub.answers = {f"/gpus{path}" if path == "/config.json" else path: told for path, told in hub.answers.items()}
    hub.answers |= {f"/gpus/api/v1{path}": told for path, told in hub.answers.items()}
    settings = tmp_path / "gpulse.toml"
    settings.write_text(f'hub.host = "0.0.0.0"\nhub.port = {hub.url.rpartition(":")[2]}\nweb.base_path = "/gpus"\n')
    monkeypatch.setenv("GPULSE_HUB", "http://127.0.0.1:1")
    done(site, "--config", settings)
    assert [path for path, _ in hub.asked][:2] == ["/gpus/config.json", "/gpus/api/v1/summary"]
    assert "no gpulse hub answers at http://127.0.0.1:1" in refused(site)
    assert "both name the hub" in refused(site, "--hub", hub.url, "--config", settings)
    settings.write_text("hub.port = 0")
    assert "hub.port is 0" in refused(site, "--config", settings)


def test_a_hub_of_another_version_is_told_of(hub: FakeHub, site: Path):
    hub.refuse("/config.json", 404, "not_found", "there is nothing at /config.json")
    assert "has no /config.json; it is of another version" in refused(site, "--hub", hub.url)


@pytest.mark.parametrize(("every", "words"), [("soon", "is not a length of time"), ("1s", "is too often")])
def test_how_often(site: Path, every: str, words: str):
    assert words in refused(site, "--every", every)


@pytest.fixture
def repeating(hub: FakeHub, site: Path, built: Path) -> Iterator["subprocess.Popen[str]"]:
    """`gpulse export --every` as a process, at a pace for tests, of a hub that starts behind a proxy."""
    hub.answers = {"/config.json": (503, b"starting")}
    program = (
        "import sys; from pathlib import Path; import gpulse.cli.export as e, gpulse.export.site as s;"
        f"e._LEAST_SECONDS = 0.1; s.BUILT = Path({str(built)!r});"
        f"sys.argv = ['gpulse', 'export', {str(site)!r}, '--hub', {hub.url!r}, '--every', '0.2s'];"
        "from gpulse.cli.commands import app; app()"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, env=env())
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def until(condition: Any, seconds: float = PATIENCE_SECONDS) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)
    return found


def test_again_and_again_also_when_the_hub_comes_late(hub: FakeHub, site: Path, repeating: "subprocess.Popen[str]"):
    until(lambda: hub.asked)
    assert not (site / "index.html").exists()
    answers(hub)
    until((site / "index.html").exists)
    first = until(lambda: made(site))
    until(lambda: made(site) > first)
    # In all of its answers: the export may be in the midst of asking.
    hub.answers = dict.fromkeys(hub.answers, (503, b"gone"))
    asked = len(hub.asked)
    until(lambda: len(hub.asked) > asked + 3)
    last = made(site)
    answers(hub)
    until(lambda: made(site) > last)
    repeating.send_signal(signal.SIGINT)
    _, words = repeating.communicate(timeout=PATIENCE_SECONDS)
    assert repeating.returncode == 130
    assert 1 <= words.count("HTTP 503 from a proxy") <= 2, "said once each time"
    assert "trying again every 0.2 s" in words


def test_exit_codes_for_cron(hub: FakeHub, site: Path, tmp_path: Path):
    ran = subprocess.run([*GPULSE, "export", site, "--hub", "127.0.0.1:1"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "no gpulse hub answers" in ran.stderr
    answers(hub)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(tmp_path / "file" / "site", "--hub", hub.url)


def test_the_data_are_one_expression():
    raw = msgspec.Raw
    moment = Moment("t", 1.23456, raw(b'{"nodes":0}'), [raw(b'{"name":"\xe2\x80\xa8<"}')], [], 0, None, {})
    assert script(moment, None) == (
        b'window.gpulseExport = {"title":"t","made":1.235,"logo":null,"custom_css":false,'
        b'"summary":{"nodes":0},"people":[],"others":0,"nodes":[{"name":"\\u2028\\u003c"}],"history":null,"logs":{}};\n'
    )
