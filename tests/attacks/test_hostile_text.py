"""Every text of a snapshot is an attack, and every way out is read: nothing runs, and nothing is forged."""

import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from icalendar import Calendar
from prometheus_client.parser import text_string_to_metric_families

from gpulse.api.application import create_app
from gpulse.api.routes import ENDPOINTS
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.reservations.ical import feed_text
from gpulse.reservations.model import Place as Spot
from gpulse.reservations.model import Reservation
from gpulse_probe.outlets.table import draw
from gpulse_probe.schema import RECORDS
from tests.api.asking import ask
from tests.api.people import open_access
from tests.api.serving import served
from tests.cli.hub import GPULSE, FakeHub, env, gpulse, running
from tests.hostile_text import ATTACKS, FORGED, IMAGE, SCRIPT, snapshot, text_fields, update

# What gpulse itself writes to a terminal: colors, and where to draw the next table.
OWN_CODES = re.compile(r"\x1b\[(?:[0-9]{0,2}m|2J|H|K|J)")
KINDS = list(ATTACKS)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running() as fake:
        yield fake


@pytest.fixture(scope="module")
def mark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shell") / "mark"


@pytest.fixture(autouse=True)
def _no_mark(mark: Path) -> None:
    mark.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def fleet(mark: Path) -> Fleet:
    """A node for each attack that is in use, and one that is free; one more is down, in such words."""
    made = Fleet()
    for kind, text in ATTACKS.items():
        attack = text.replace("{mark}", str(mark))
        place = {"display_name": attack, "group": attack, "rack": attack, "address": attack}
        for name, free in ((f"used-{kind}", False), (f"free-{kind}", True)):
            made.place(Place(name=name, **place))
            made.connecting(name, attack)
            made.line(name, snapshot(name, attack, free=free))
        made.line(f"used-{kind}", update(attack))
        made.log(f"used-{kind}", attack)
        made.place(Place(name=f"down-{kind}", **place))
        made.down(f"down-{kind}", attack)
    made.tick()
    return made


@pytest.fixture(scope="module")
def url(fleet: Fleet) -> Iterator[str]:
    with served(create_app(fleet, access=open_access())) as port:
        yield f"http://127.0.0.1:{port}"


def harmless(text: str, mark: Path) -> None:
    """Nothing in it moves a terminal, and no line of it is forged."""
    for line in OWN_CODES.sub("", text).replace("\r\n", "\n").split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.startswith((FORGED, "BEGIN:", "Set-Cookie")), line
    assert not mark.exists()


def test_all_texts_of_the_schema_are_attacked():
    sent = snapshot("n", "ATTACK").decode() + update("ATTACK").decode()
    whole = json.loads(snapshot("n", "ATTACK"))
    assert len(text_fields()) >= 50
    records = {
        "Snapshot": whole,
        "Probe": whole["probe"],
        "Collector": whole["probe"]["collectors"][0],
        "Host": whole["host"],
        "Disk": whole["host"]["disks"][0],
        "Network": whole["host"]["networks"][0],
        "InfinibandPort": whole["host"]["infiniband"][0],
        "Gpu": whole["gpus"][2],
        "XidEvent": whole["gpus"][2]["xid_events"][0],
        "Process": whole["processes"][0],
        "GpuUse": whole["processes"][0]["gpus"][0],
        "Report": whole["reports"][0],
        "Update": json.loads(update("ATTACK")),
    }
    assert list(records) == list(RECORDS), "read the new record in this test"
    for record, field in text_fields():
        if (record, field) != ("Snapshot", "node"):
            assert "ATTACK" in str(records[record][field]), (record, field)
    assert "ATTACK" in sent


def test_the_rest_of_the_snapshot_stays(fleet: Fleet):
    for kind in KINDS:
        gpus = fleet.gpus_of(f"used-{kind}")
        assert [gpu.uuid for gpu in gpus] == [f"used-{kind}/{place}" for place in ("0", "1", "0.1")]
        assert all(gpu.people for gpu in gpus)
        assert all(gpu.name and gpu.pci_bus_id is None and gpu.serial is None for gpu in gpus)
        assert fleet.known(f"used-{kind}").refused


# The ways out over HTTP.


def test_every_answer_of_the_api_is_json_of_the_same_data(fleet: Fleet):
    app = create_app(fleet, access=open_access())
    read = 0
    for endpoint in ENDPOINTS:
        if endpoint.method != "GET" or endpoint.media != "application/json" or "{" in endpoint.path:
            continue
        answer = ask(app, endpoint.path)
        if answer.status_code == 200:
            answer.json()
            read += 1
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert read >= 8
    names = [f"{state}-{kind}" for kind in KINDS for state in ("used", "free", "down")]
    for name in names:
        for path in (f"/api/v1/nodes/{name}", f"/api/v1/nodes/{name}/log"):
            answer = ask(app, path)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("application/json")
            answer.json()


def test_logs_of_nodes_are_clean(fleet: Fleet, mark: Path):
    for name in fleet.names():
        for entry in fleet.log_of(name):
            harmless(entry.message, mark)
        harmless(fleet.known(name).reason, mark)


@pytest.mark.parametrize("query", ["", "?n=3", "?n=12", "?n=500", "?n=2&same_node=true"])
def test_free_in_plain_text(fleet: Fleet, mark: Path, query: str):
    answer = ask(create_app(fleet, access=open_access()), f"/free{query}")
    harmless(answer.text, mark)
    if answer.status_code == 200:
        # As people paste it: all of it, into a shell.
        subprocess.run(["sh", "-c", answer.text], capture_output=True, check=False, cwd=mark.parent)
        assert not mark.exists()


def test_metrics_stay_within_their_labels(fleet: Fleet):
    text = ask(create_app(fleet, access=open_access()), "/metrics").text
    found = list(text_string_to_metric_families(text))
    names = {sample.labels.get("node") for family in found for sample in family.samples}
    assert names - {None} == set(fleet.names())
    sample = re.compile(r'[a-z_0-9]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? [-+0-9.eInfNa]+')
    for line in text.removesuffix("\n").split("\n"):
        assert line.startswith("# ") or sample.fullmatch(line), ascii(line)


def test_get_status_is_json(fleet: Fleet):
    json_type = {"Content-Type": "application/json"}
    answer = ask(create_app(fleet, access=open_access()), "/get-status", "POST", json_type, b'{"passwd": "x"}')
    assert answer.status_code == 200
    assert len(answer.json()["Nodes"]) == len(fleet.names())
    assert answer.headers["content-type"].startswith("application/json")


def test_nothing_writes_csv():
    """Whoever adds a way out for spreadsheets escapes formulas, and reads it here."""
    assert not [endpoint.path for endpoint in ENDPOINTS if "csv" in endpoint.media]
    sources = (Path(__file__).parents[2] / "src").rglob("*.py")
    assert not [path for path in sources if re.search(r"^\s*(import|from) csv\b", path.read_text(), re.MULTILINE)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_calendar_has_one_event(kind: str):
    attack = ATTACKS[kind]
    one = Reservation(
        id="0123456789ab",
        person=attack,
        maker=attack,
        comment=attack,
        places=(Spot("n", "0"),),
        start=1e9,
        end=1.1e9,
        made_at=1e9,
        revision=1,
    )
    text = feed_text([one], attack, 1e9)
    assert text.count("\r\nBEGIN:VEVENT") == 1
    assert "\x1b" not in text
    (event,) = Calendar.from_ical(text).walk("VEVENT")
    assert event["UID"] == "0123456789ab@gpulse"


# The ways out of the commands.


def on_a_terminal(*words: str, hub: str) -> str:
    """All that gpulse writes to a terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen([*GPULSE, *words], stdout=its, stderr=its, env=env(hub, TERM="xterm", COLUMNS="200"))
    os.close(its)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        # Its other end is closed.
        assert process.wait(60) == 0
    finally:
        os.close(ours)
    return shown.decode()


LISTS = [("nodes",), ("gpus",), ("who",), ("free",), ("free", "-n", "3", "--same-node"), ("free", "-n", "900")]


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_commands_in_a_pipe(url: str, mark: Path, command: tuple[str, ...]):
    done = gpulse(*command, hub=url)
    assert done.returncode in (0, 1), done.stderr
    harmless(done.stdout + done.stderr, mark)
    done = gpulse(*command, "--json", hub=url)
    harmless(done.stdout + done.stderr, mark)
    json.loads(done.stdout)


@pytest.mark.parametrize("command", ["nodes", "gpus", "who"])
def test_commands_on_a_terminal(url: str, mark: Path, command: str):
    for words in ([command], [command, "--json"]):
        shown = on_a_terminal(*words, hub=url)
        assert len(shown) > 500
        harmless(shown, mark)


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_of_a_node(url: str, mark: Path, kind: str):
    for words in (("logs", f"used-{kind}"), ("logs", f"used-{kind}", "--json")):
        done = gpulse(*words, hub=url)
        assert done.returncode == 0
        harmless(done.stdout + done.stderr, mark)


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_for_eval_runs_nothing(url: str, mark: Path, kind: str):
    """No GPU of the node has a UUID that is one, so they have no name for CUDA, or are numbers."""
    for count in ("1", "2"):
        done = gpulse("free", "-n", count, "--export", f"node:free-{kind}", hub=url)
        harmless(done.stdout + done.stderr, mark)
        assert re.fullmatch(r"(export CUDA_VISIBLE_DEVICES=[0-9,]+\n)?", done.stdout)
        subprocess.run(["sh", "-c", 'eval "$1"', "sh", done.stdout], check=False, capture_output=True)
        assert not mark.exists()


def test_the_site_that_is_exported(url: str, tmp_path: Path, mark: Path):
    site = tmp_path / "site"
    done = gpulse("export", str(site), hub=url)
    assert done.returncode == 0, done.stderr
    harmless(done.stdout + done.stderr, mark)
    pages = [path for path in site.rglob("*") if path.suffix in (".html", ".js")]
    assert any(path.name == "data.js" for path in pages)
    for path in pages:
        text = path.read_text()
        assert IMAGE not in text
        assert SCRIPT not in text
        assert "\u2028" not in text or path.name != "data.js"


def test_the_table_of_the_probe(mark: Path):
    for text in ATTACKS.values():
        for free in (False, True):
            record = json.loads(snapshot("n", text, free=free))
            lines = draw(record, None, 200, colour=True)
            harmless(lines, mark)


# A hub, or what is in its place, that sends such text to the commands.


@pytest.mark.parametrize(
    "export",
    [
        "CUDA_VISIBLE_DEVICES=0;touch {mark}",
        "CUDA_VISIBLE_DEVICES=$(touch {mark})",
        "CUDA_VISIBLE_DEVICES='0\ntouch {mark}",
        "X=0\ntouch {mark}",
        "PATH=/tmp",
    ],
)
def test_an_old_or_hostile_hub_runs_nothing_by_eval(hub: FakeHub, mark: Path, export: str):
    found = {
        "found": True,
        "gpus": [{"node": "n", "id": "n/0", "state": "free", "index": 0}],
        "explanation": "1 free",
        "node": "n",
    }
    hub.answers["/free"] = {**found, "export": export.replace("{mark}", str(mark))}
    done = gpulse("free", "--export", hub=hub.url)
    assert len(done.stdout.splitlines()) <= 1
    assert done.stdout == "" or done.stdout.startswith("export CUDA_VISIBLE_DEVICES=")
    subprocess.run(["sh", "-c", 'eval "$1"', "sh", done.stdout], check=False, capture_output=True)
    assert not mark.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_a_hostile_hub_are_clean(hub: FakeHub, mark: Path, kind: str):
    attack = ATTACKS[kind]
    hub.refuse("/gpus", 422, "bad", attack, attack)
    hub.refuse("/free", 422, "bad", attack, attack)
    hub.answers["/nodes"] = {"items": "\x1b[2J" + attack, "total": attack}
    hub.answers["/people"] = (200, attack.encode())
    for words in (["gpus"], ["free", "--wait", "--timeout", "1s", "--no-hold"], ["nodes"], ["who"], ["who", "--json"]):
        done = gpulse(*words, hub=hub.url)
        assert done.returncode != 0
        harmless(done.stdout + done.stderr, mark)
    hub.answers["/free"] = {"found": False, "gpus": [], "explanation": attack, "export": None, "node": None}
    done = gpulse("free", "--wait", "--timeout", "2s", "--no-hold", hub=hub.url)
    assert done.returncode == 1
    harmless(done.stdout + done.stderr, mark)
