"""gpulse token, as people run it."""

import getpass
import json
import re
import stat
from pathlib import Path

import pytest
import typer.main

from gpulse.auth.tokens import Tokens
from gpulse.cli.commands import app
from gpulse.store import Records
from tests.cli.hub import gpulse

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
COMMANDS = typer.main.get_command(app).commands["token"].commands


@pytest.fixture
def token(tmp_path):
    """Runs the command on a folder of its own."""

    def run(*arguments):
        return gpulse("token", *arguments, "--data", str(tmp_path / "data"), HOME=str(tmp_path))

    return run


def listed(token):
    return json.loads(token("list", "--json").stdout)


def test_a_token_for_each_node(token, tmp_path):
    done = token("create", "gpu07", "gpu[01-02]")
    assert (done.returncode, done.stderr) == (0, "")
    told = dict(line.split(" ") for line in done.stdout.splitlines())
    assert list(told) == ["gpu07", "gpu01", "gpu02"]
    with Records(tmp_path / "data") as records:
        tokens = Tokens(records)
        assert [tokens.check(text).node for text in told.values()] == list(told)


def test_who_made_and_revoked_which_is_noted(token, tmp_path):
    token("create", "gpu[01-02]")
    token("create", "--join", "n[1-9]", "--expires", "1h")
    token("revoke", "gpu01")
    told = gpulse("audit", "--json", "--data", str(tmp_path / "data"), HOME=str(tmp_path)).stdout.splitlines()
    entries = [json.loads(line) for line in told]
    assert {one["who"] for one in entries} == {f"local: {getpass.getuser()}"}
    assert [(one["action"], one["target"]) for one in entries] == [
        ("token.make", "gpu01"),
        ("token.make", "gpu02"),
        ("token.make_join", "n[1-9]"),
        ("token.revoke", "gpu01"),
    ]


def test_into_files(token, tmp_path):
    out = tmp_path / "out"
    done = token("create", "gpu[01-02]", "--out", str(out))
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["gpu01", "gpu02"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    first = (out / "gpu01").read_text()
    assert re.fullmatch(r"gpn_\w{12}_\w{48}\n", first)
    done = token("create", "gpu01", "--out", str(out))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is there already" in done.stderr
    assert token("create", "gpu01", "--out", str(out), "--replace").returncode == 0
    assert (out / "gpu01").read_text() != first
    done = token("create", "gpu03", "--out", "/proc/out")
    assert (done.returncode, "no token was made" in done.stderr) == (2, True)
    assert {one["nodes"] for one in listed(token)} == {"gpu01", "gpu02"}


def test_a_join_token(token):
    done = token("create", "--join", "gpu[00001-12500]")
    text = done.stdout.strip()
    assert re.fullmatch(r"gpj_\w{12}_\w{48}", text)
    assert "gpulse agent push --hub http://HUB:7070 --token-file FILE\n" in done.stderr
    # Who writes the token into a file finds its secret there and nowhere else.
    assert text.split("_")[2] not in done.stderr
    (one,) = listed(token)
    assert (one["nodes"], one["kind"], one["state"], one["joined"]) == ("gpu[00001-12500]", "join", "live", 0)
    assert one["expires_at"] - one["created_at"] == pytest.approx(86400, abs=5)


def test_the_end(token):
    times = {"90s": 90, "15m": 900, "2h": 7200, "1d": 86400, "4w": 2419200}
    for text in times:
        token("create", f"n{text}", "--expires", text)
    ends = {one["nodes"][1:]: one["expires_at"] - one["created_at"] for one in listed(token)}
    assert ends == {text: pytest.approx(seconds, abs=10) for text, seconds in times.items()}


def test_the_list_has_no_secrets(token):
    assert token("list").stdout == "there are no tokens yet; make one with: gpulse token create NODE\n"
    secret = token("create", "gpu01").stdout.split("_")[2].strip()
    join = token("create", "--join", "n[1-3]").stdout.strip()
    told = token("list").stdout
    assert told.splitlines()[0].split() == [
        "ID",
        "KIND",
        "STATE",
        "CREATED",
        "EXPIRES",
        "FIRST",
        "USED",
        "JOINED",
        "NODES",
    ]
    assert told.splitlines()[-1] == "2 tokens: 2 live"
    for text in (told, token("list", "--json").stdout):
        assert secret not in text
        assert join.split("_")[2] not in text


def test_revoked(token):
    token("create", "gpu[01-03]")
    done = token("revoke", "gpu01", "gpu[02-09]")
    assert done.returncode == 0
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["gpu01", "gpu02", "gpu03"]
    assert {one["state"] for one in listed(token)} == {"revoked"}


def test_the_config_names_the_folder(tmp_path):
    config = tmp_path / "gpulse.toml"
    config.write_text(f'[hub]\ndata = "{tmp_path}/there"\nport = 7171\n[web]\nbase_path = "/gpu"\n')
    done = gpulse("token", "create", "--join", "n[1-2]", "--config", str(config), HOME=str(tmp_path))
    assert "--hub http://HUB:7171/gpu --token-file FILE\n" in done.stderr
    assert (tmp_path / "there" / "gpulse.db").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create"], "name nodes"),
        (["create", "gpu01", "--join", "gpu02"], "name nodes"),
        (["create", "--join", "gpu01", "--out", "x"], "--out is for"),
        (["create", "me@gpu01"], "without a user"),
        (["create", "gpu["], 'has a "[" without its "]"'),
        (["create", "gpu01", "--expires", "soon"], "write 90s, 15m"),
        (["create", "gpu01", "--expires", "0s"], "a second to ten years"),
        (["create", "gpu01", "--expires", "999999999w"], "a second to ten years"),
        (["create", "old"], "old has a token already; --replace"),
        (["revoke", "gpu09"], "gpu09 has no token"),
    ],
)
def test_mistakes_are_one_sentence(token, tmp_path, arguments, words):
    with Records(tmp_path / "data") as records:
        Tokens(records).create_node("old")
    done = token(*arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert words in done.stderr


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "gpulse.db").write_bytes(b"nonsense" * 1000)
    done = gpulse("token", "list", "--data", str(tmp_path), HOME=str(tmp_path))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "it is damaged" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_those_of_the_docs(command):
    there = {name for option in COMMANDS[command].params for name in option.opts if name.startswith("-")}
    section = DOCUMENT.read_text("utf-8").partition(f"\n### gpulse token {command}\n")[2].partition("\n##")[0]
    cells = re.findall(r"^\| (`-.+?) \|", section, flags=re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"--[a-z]+", cell)} == there


def test_a_name_that_only_looks_like_a_number(token):
    for arguments in (("create", "²"), ("list",), ("list", "--json"), ("revoke", "²")):
        done = token(*arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
