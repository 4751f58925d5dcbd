"""gpulse login and logout, with a real hub; and which key a command shows to whom."""

import http.server
import json
import os
import pty
import re
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.api.server import make_server
from gpulse.auth import local_socket, secret_text
from gpulse.cli import own_keys
from tests.api.fleets import small
from tests.api.people import PASSWORD, People, make_people
from tests.api.serving import served
from tests.cli.hub import GPULSE
from tests.patience import PATIENCE_SECONDS


class Person:
    """Somebody with a home of their own and a hub to ask."""

    def __init__(self, home: Path, url: str, people: People, app: Starlette):
        self.home = home
        self.url = url
        self.people = people
        self._app = app
        self.kept = home / ".config/gpulse/keys.json"

    def environment(self, **variables: str) -> dict[str, str]:
        usual = {name: value for name, value in os.environ.items() if not name.startswith(("GPULSE", "XDG"))}
        return {**usual, "HOME": str(self.home), "GPULSE_HUB": self.url, **variables}

    def run(
        self, *words: str, stdin: str = "", cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*GPULSE, *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=cwd or self.home,
            env=self.environment(**variables),
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    @contextmanager
    def at_home(self, data: Path) -> Iterator[None]:
        """The hub has its socket in a data folder while the block runs."""
        with local_socket.listening(data, self.url) as listener:
            server = make_server(self._app, None, listener)
            thread = threading.Thread(target=server.run, args=([],))
            thread.start()
            try:
                yield
            finally:
                server.should_exit = True
                thread.join(20)
                assert not thread.is_alive()

    def type_in(self, *answers: str) -> str:
        """`gpulse login` on a terminal; all that the terminal showed."""
        own, other = pty.openpty()
        process = subprocess.Popen(
            [*GPULSE, "login"], stdin=other, stdout=other, stderr=other, env=self.environment(), start_new_session=True
        )
        os.close(other)
        shown, left, end = b"", list(answers), time.monotonic() + PATIENCE_SECONDS
        try:
            while time.monotonic() < end:
                ready = select.select([own], [], [], 0.2)[0]
                try:
                    shown += os.read(own, 65536) if ready else b""
                except OSError:
                    # The other end is closed: the command has ended.
                    break
                if left and shown.rstrip(b" ").endswith((b":", b"]:")) and shown.endswith(b" "):
                    os.write(own, left.pop(0).encode() + b"\n")
                    shown += b"\n"
        finally:
            process.kill()
            process.wait(PATIENCE_SECONDS)
            os.close(own)
        return shown.decode()


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    (tmp_path / "home").mkdir()
    people = make_people(tmp_path / "data")
    access = people.access()
    access.operator = people.accounts["admin"]
    app = create_app(small(), access=access)
    with served(app) as port:
        yield Person(tmp_path / "home", f"http://127.0.0.1:{port}", people, app)
    people.records.close()


def test_by_name_and_password_and_out_again(person: Person):
    assert "sign in with: gpulse login --hub" in person.run("nodes").stderr
    told = person.run("login", "--name", "member", stdin=PASSWORD + "\n")
    assert (told.returncode, told.stderr) == (0, "")
    assert re.fullmatch(f"{person.url}: signed in as member, member, until [-0-9]+ [:0-9]+\n", told.stdout)
    assert person.kept.stat().st_mode & 0o777 == 0o600
    key = json.loads(person.kept.read_text())[person.url]
    assert person.run("nodes").returncode == 0
    (view,) = person.people.directory.keys.list(person.people.accounts["member"])
    assert (view.id, view.scopes, view.state) == (key.split("_")[1], ["read", "write"], "live")
    assert not person.people.directory.sessions.list(person.people.accounts["member"]), "a key is enough"
    assert person.run("logout").returncode == 0
    assert json.loads(person.kept.read_text()) == {}
    assert person.run("nodes").returncode == 2
    assert person.people.directory.keys.list(person.people.accounts["member"])[0].state == "revoked"
    assert "nobody is signed in" in person.run("logout").stderr


def test_on_a_terminal_the_password_is_not_shown(person: Person):
    shown = person.type_in("admin", PASSWORD)
    assert "signed in as admin, admin" in shown
    assert PASSWORD not in shown
    assert person.run("nodes").returncode == 0


def test_by_a_key(person: Person):
    key = person.people.key("viewer", "read")
    assert person.run("login", stdin=key).stdout == f"{person.url}: signed in as viewer, viewer\n"
    assert person.run("nodes").returncode == 0
    other = person.run("nodes", GPULSE_HUB="http://127.0.0.1:9")
    assert "no gpulse hub answers" in other.stderr


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        ("gpk_000000000000_" + 48 * "0", "does not know this key"),
        ("gpk_x", "this is no key"),
        ("a password without a name", "this is no key"),
        ("", "this is no key"),
    ],
)
def test_what_is_no_key_is_not_kept(person: Person, stdin: str, words: str):
    told = person.run("login", stdin=stdin)
    assert told.returncode == 2
    assert words in told.stderr
    assert not person.kept.exists()


def test_who_types_a_password_for_all_to_read_is_told(person: Person):
    """Before it is asked for; the hub need not be there."""
    told = person.run("login", "--name", "member", "--hub", "http://hub.invalid:7070", stdin=PASSWORD)
    assert "passwords and keys go to http://hub.invalid:7070 unencrypted" in told.stderr
    keyed = person.run("nodes", "--hub", "http://hub.invalid:7070", GPULSE_KEY=person.people.key("viewer"))
    assert keyed.stderr.count("unencrypted") == 1
    assert "unencrypted" not in person.run("nodes", "--hub", "http://hub.invalid:7070").stderr, "there is no key"
    for hub in ("https://hub.invalid:7070", "http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9"):
        assert "unencrypted" not in person.run("login", "--name", "x", "--hub", hub, stdin=PASSWORD).stderr


def test_ones_own_hub_is_found_where_its_data_are(person: Person, tmp_path: Path):
    """By an option, a variable, or the settings that are here: as `gpulse up` finds it."""
    (tmp_path / "gpulse.toml").write_text('[hub]\ndata = "mine"\n')
    (tmp_path / "mine").mkdir()
    refused = person.run("nodes")
    assert refused.returncode == 2
    assert "sign in with: gpulse login --hub" in refused.stderr
    assert "or name the data folder of your hub with --data DIR" in refused.stderr
    with person.at_home(tmp_path / "mine"):
        assert person.run("nodes").returncode == 2
        for words in (("nodes",), ("gpus",), ("who",), ("logs", "gpu1"), ("export", str(tmp_path / "site"))):
            told = person.run(*words, "--data", str(tmp_path / "mine"))
            assert told.returncode == 0, told.stderr
        assert person.run("free", "--data", str(tmp_path / "mine")).returncode in (0, 1)
        assert person.run("nodes", GPULSE_DATA=str(tmp_path / "mine")).returncode == 0
        assert person.run("nodes", cwd=tmp_path).returncode == 0
        # Another hub is not asked there, whatever the settings say.
        elsewhere = person.run("nodes", "--hub", "http://hub.invalid:1", cwd=tmp_path)
        assert "no gpulse hub answers" in elsewhere.stderr


def test_a_wrong_password(person: Person):
    told = person.run("login", "--name", "member", stdin="not the password\n")
    assert told.returncode == 2
    assert "the name or the password is wrong" in told.stderr
    assert not person.kept.exists()


def test_the_environment_comes_first(person: Person):
    person.run("login", "--name", "member", stdin=PASSWORD + "\n")
    assert person.run("nodes", GPULSE_KEY="gpk_x").returncode == 2
    person.kept.write_text("{")
    assert "cannot be read" in person.run("nodes").stderr
    assert person.run("nodes", GPULSE_KEY=person.people.key("viewer", "read")).returncode == 0


def test_a_key_goes_no_further_than_the_hub(person: Person):
    """A hub that leads elsewhere does not lead the key there."""
    seen: list[str | None] = []
    key, parts = secret_text.make("gpk")

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if "/proof?nonce=" in self.path:
                proof = secret_text.proof(parts.digest, self.path.partition("=")[2], 60_000)
                body = json.dumps({"proof": proof, "up_milliseconds": 60_000}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            seen.append(self.headers["Authorization"])
            if self.headers["Host"].startswith("localhost"):
                self.send_response(404)
            else:
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{server.server_port}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name is given
            """Nobody reads it."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        person.run("nodes", GPULSE_KEY=key, GPULSE_HUB=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert seen == [f"Bearer {key}", None]


def test_what_another_hub_of_this_machine_left_stands_in_nobodys_way(person: Person, tmp_path: Path):
    """What a hub that was killed left behind: where everybody may read, one still may."""
    data = person.home / ".local/share/gpulse"
    data.mkdir(parents=True)
    people = make_people(tmp_path / "other")
    with served(create_app(small(), access=people.access(anonymous=True))) as port:
        url = f"http://127.0.0.1:{port}"
        (data / f"local-{port}").write_text(f"{data}/gone.sock\n{url}/\n")
        assert person.run("nodes", GPULSE_HUB=url).returncode == 0
    people.records.close()


def test_what_is_kept_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GPULSE_KEY", raising=False)
    own_keys.keep("http://a:1", "gpk_a")
    own_keys.keep("http://b:1", "gpk_b")
    own_keys.keep("http://a:1", None)
    own_keys.keep("http://never:1", None)
    assert own_keys.read() == {"http://b:1": "gpk_b"}
    assert [path.name for path in own_keys.place().parent.iterdir()] == ["keys.json"]
    assert own_keys.find("http://b:1") == "gpk_b"
    assert own_keys.find("http://c:1") is None
