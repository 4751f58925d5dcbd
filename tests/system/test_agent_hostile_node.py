"""gpulse agent … against a node that lies, prints without end, hangs or asks for a password."""

import asyncio
import json
import os
import subprocess
import time
import tracemalloc

import pytest

from gpulse.agents import node_service
from gpulse.agents.care import Agents
from gpulse.agents.node_secrets import push_secrets
from gpulse.agents.order import Order
from gpulse.auth.noting import Actor
from gpulse.auth.tokens import Tokens
from gpulse.store import Records
from gpulse.transport.bundle import make_agent
from gpulse.transport.ssh import Ssh
from gpulse_probe.boot import START_MARKER
from tests.hub.running import GPULSE
from tests.system.conftest import target
from tests.system.sshd import oldest_python

MARKER = f"printf '\\n{START_MARKER}\\n'"
ORDER = Order(hub="http://127.0.0.1:9")
BY = Actor("tester", "local")


def told(settings, *servers, way="status", secrets=None):
    """What agents say, by the number of the node."""

    async def asked():
        ssh = Ssh(settings)
        agents = Agents(ssh, make_agent())
        targets = [target(server, name=f"n{number}") for number, server in enumerate(servers)]
        try:
            if way == "install":
                found = agents.install(targets, ORDER, secrets)
            elif way == "remove":
                found = agents.remove(targets, secrets)
            else:
                found = agents.ask(targets, way)
            return {answer.node: answer async for answer in found}
        finally:
            await ssh.close()

    return asyncio.run(asked())


def says(*answers):
    """A login that answers with these lines, whatever it is asked."""
    lines = "\n".join(answers)
    return f"cat > /dev/null & {MARKER}\ncat <<'END'\n{lines}\nEND\n"


@pytest.mark.parametrize(
    "script",
    [
        "exec yes",
        "exec yes ''",
        "exec cat /dev/zero",
        f"{MARKER}; exec yes '{{}}'",
        f"{MARKER}; exec cat /dev/zero",
        says('{"outcome": "running"}') + "exec yes",
    ],
    ids=["preamble", "blank lines", "zeros", "answers", "one line", "after the answer"],
)
def test_it_prints_without_end(serve, settings, script):
    """It is left soon, and what it printed is not kept."""
    server, honest = serve(wrapper=script), serve(python=oldest_python())
    tracemalloc.start()
    try:
        answers = told(settings, server, honest)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answers["n0"].outcome == "failed"
    ways = ("without end", "end of it", "more than 100 lines")
    assert any(words in answers["n0"].error for words in ways), answers["n0"]
    assert answers["n1"].outcome == "absent", "the others are answered for"
    assert most < 64 << 20


@pytest.mark.parametrize(
    "script",
    ["exec sleep 1000", f"{MARKER}; exec sleep 1000", f"{MARKER}; printf '{{'; exec sleep 1000"],
    ids=["at its start", "before its answer", "within its answer"],
)
def test_it_hangs(serve, settings, script, monkeypatch):
    monkeypatch.setattr(node_service, "START_SECONDS", 4.0)
    monkeypatch.setattr(node_service, "ANSWER_SECONDS", 4.0)
    began = time.monotonic()
    answers = told(settings, serve(wrapper=script))
    assert answers["n0"].outcome == "failed"
    assert "within 4 s" in answers["n0"].error
    assert time.monotonic() - began < 60


def test_it_asks_for_a_password(serve, settings):
    """Nobody is asked, and nothing that could be one is sent."""
    options = "PasswordAuthentication yes\nAuthenticationMethods publickey,password"
    answers = told(settings, serve(config=options))
    assert answers["n0"].outcome == "failed"
    assert "password" in (answers["n0"].error + answers["n0"].fix)


LIES = [
    "{}",
    "[]",
    "null",
    '{"outcome": "rooted"}',
    '{"outcome": "running", "since": 1e300, "pid": 5}',
    '{"outcome": "running", "since": -5, "pid": 5}',
    '{"outcome": "running", "pid": 99999999999999999999}',
    '{"outcome": "running", "notes": "x"}',
    '{"outcome": "running", "log": [5]}',
    "[" * 100000,
    '{"outcome": "running", "since": NaN}',
    "\\xff\\xfe",
]


def test_it_answers_what_is_none(serve, settings):
    servers = [serve(wrapper=says(lie)) for lie in LIES]
    answers = told(settings, *servers)
    for number, lie in enumerate(LIES):
        answer = answers[f"n{number}"]
        assert (answer.outcome, "cannot be read" in answer.error) == ("failed", True), (lie[:60], answer)


def test_tokens_of_others_stay_theirs(serve, settings, tmp_path):
    """A node that says it holds another's token is given none of it, and takes none away."""
    with Records(tmp_path / "data") as records:
        other = Tokens(records).create_node("other").split("_")[1]
    server = serve(wrapper=says(json.dumps({"outcome": "removed", "token_id": other, "error": "x"})))
    with push_secrets(tmp_path / "data", None, BY) as secrets:
        assert told(settings, server, way="remove", secrets=secrets)["n0"].outcome == "removed"
        assert told(settings, server, way="install", secrets=secrets)["n0"].outcome == "removed"
    with Records(tmp_path / "data") as records:
        states = {one.id: (one.nodes, one.state) for one in Tokens(records).listing()}
    assert states[other] == ("other", "live")
    assert [nodes for nodes, state in states.values() if state == "live"].count("n0") == 1


def test_it_sends_back_what_it_was_given(serve, settings, tmp_path):
    """People are shown what a node says: not the token, though."""
    echo = (
        "head -c 1 > /dev/null; "
        + MARKER
        + "; token=$(timeout 3 cat | tr -c 'a-z0-9_' '\\n' | grep -a -m1 '^gpn_');"
        + ' printf \'{"outcome": "failed", "error": "got %s"}\\n\' "$token"'
    )
    first = 'case "$SSH_ORIGINAL_COMMAND" in *status*) ' + says('{"outcome": "absent"}').replace(
        "cat > /dev/null &", ""
    )
    server = serve(wrapper=f"{first};;\n*) {echo};; esac")
    with push_secrets(tmp_path / "data", None, BY) as secrets:
        answer = told(settings, server, way="install", secrets=secrets)["n0"]
    assert answer.error.startswith("got gpn_") and answer.error.endswith("…"), answer
    assert len(answer.error) < 30


def test_links_in_its_home(serve, settings, tmp_path):
    """A link in the place of a secret is replaced, and what it leads to stays as it is."""
    server = serve(python=oldest_python())
    server.program("systemctl", "exit 1")
    server.program("crontab", "exit 1")
    keys = server.home / "keys"
    keys.write_text("what was there\n")
    folder = server.home / ".local/share/gpulse-agent/n0"
    folder.mkdir(parents=True)
    for name in ("token", "upgrade-key", "agent.pyz", "ca.pem"):
        (folder / name).symlink_to(keys)
    with push_secrets(tmp_path / "data", None, BY) as secrets:
        answer = told(settings, server, way="install", secrets=secrets)["n0"]
        assert answer.outcome in ("installed", "updated", "started"), answer
        try:
            assert keys.read_text() == "what was there\n"
            for name in ("token", "upgrade-key"):
                assert not (folder / name).is_symlink()
                assert (folder / name).stat().st_mode & 0o777 == 0o600
        finally:
            assert told(settings, server, way="remove", secrets=secrets)["n0"].outcome == "removed"
    assert keys.exists()


def test_what_people_are_shown_is_short_and_plain(serve, client, tmp_path):
    """One node cannot fill or repaint the terminal, nor hide what others answer."""
    words = "\\u001b[2J\\u009b31m\\u202e\\r\\n<b>x</b>" + "x" * 100_000
    answer = {"outcome": "running", "version": "V", "notes": ["N"] * 1000, "log": ["L"], "folder": "F"}
    text = json.dumps(answer)
    for letter in "VNL":
        text = text.replace(f'"{letter}"', f'"{words}"', 1)
    server, late = serve(wrapper=says(text)), serve(wrapper=says('{"outcome": "running", "since": 1e300, "pid": 1}'))
    client.config.write_text(
        f"Host evil\n  HostName 127.0.0.1\n  Port {server.port}\nHost late\n  HostName 127.0.0.1\n  Port {late.port}\n"
    )
    settings = tmp_path / "gpulse.toml"
    settings.write_text(f'[hub]\ndata = "{tmp_path / "data"}"\n[ssh]\nconfig_files = ["{client.config}"]\n')
    ran = subprocess.run(
        [GPULSE, "agent", "status", "evil", "late", "--config", str(settings)],
        env={**os.environ, "HOME": str(client.home), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    shown = ran.stdout.decode()
    assert "Traceback" not in ran.stderr.decode()
    assert "evil" in shown and "late" in shown and "2 nodes" in shown
    assert not set(shown) & set("\x1b\x9b\u202e\r")
    assert len(shown) < 50_000
