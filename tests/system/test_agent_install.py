"""gpulse agent install|status|restart|stop|remove against real OpenSSH servers, with real agents on old Pythons."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

import gpulse
from gpulse.tls.own import own_fingerprint
from tests.hub.running import GPULSE, RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port
from tests.probe.machine import CRONTAB, alive, until
from tests.system.own_machine import OwnMachine
from tests.system.sshd import oldest_python

# Nobody listens there.
NO_HUB = "http://127.0.0.1:9"


@pytest.fixture
def node(serve, client):
    """Start a node that can be reached by its name."""

    def start(name: str, python: str | None = None, systemd: bool = False, **options):
        server = serve(python=python or oldest_python(), **options)
        if not systemd:
            server.program("systemctl", "exit 1")
        server.program("crontab", CRONTAB.format(file=server.folder / "crontab"))
        with client.config.open("a") as file:
            file.write(f"Host {name}\n  HostName 127.0.0.1\n  Port {server.port}\n")
        return server

    return start


@pytest.fixture
def settings_file(client, tmp_path):
    path = tmp_path / "gpulse.toml"
    client.config.touch()
    path.write_text(f'[hub]\ndata = "{tmp_path / "data"}"\nlocal = false\n[ssh]\nconfig_files = ["{client.config}"]\n')
    return path


@pytest.fixture
def run(client, settings_file):
    """`gpulse …` as a person types it."""

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ, HOME=str(client.home), PYTHONIOENCODING="utf-8")
        ran = subprocess.run(
            [GPULSE, *words, "--config", str(settings_file)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran

    return run


@pytest.fixture
def told(run):
    """The JSON of `gpulse agent …`, by node."""

    def told(*words: str, code: int = 0) -> dict[str, dict]:
        return {answer["node"]: answer for answer in json.loads(run("agent", *words, "--json", code=code).stdout)}

    return told


def folder(server, name):
    return server.home / ".local/share/gpulse-agent" / name


def live_tokens(run) -> dict[str, str]:
    return {
        one["nodes"]: one["id"] for one in json.loads(run("token", "list", "--json").stdout) if one["state"] == "live"
    }


def test_agents_that_push(node, run, told, settings_file, tmp_path):
    servers = [node("gpu01"), node("gpu02", python=sys.executable)]
    with RunningHub("up", "--config", str(settings_file), "--data", str(tmp_path / "data")) as hub:
        ran = run("agent", "install", "gpu[01-02]", "--hub", hub.url)
        lines = ran.stdout.splitlines()
        assert sorted(line.split(",")[0] for line in lines if line.startswith("✓")) == [
            f"✓ gpu01  installed {gpulse.__version__}",
            f"✓ gpu02  installed {gpulse.__version__}",
        ]
        assert lines[-1] == "2 nodes: 2 installed"
        for name in ("gpu01", "gpu02"):
            hub.until(lambda name=name: hub.node(name)["state"] == "up")
            assert len(hub.node(name)["gpus"]) == 2
        first = live_tokens(run)
        assert set(first) == {"gpu01", "gpu02"}
        assert all("gpn_" not in path.read_bytes().decode("latin-1") for path in (tmp_path / "data").glob("gpulse.db*"))

        again = told("install", "gpu[01-02]", "--hub", hub.url)
        assert {answer["outcome"] for answer in again.values()} == {"unchanged"}
        assert live_tokens(run) == first
        shown = told("status", "gpu[01-02]")
        # It may also tell that the hub has got what was measured before.
        assert "connected" in [line for line in shown["gpu01"]["log"] if "what it missed" not in line][-1]
        assert {answer["pid"] for answer in shown.values()} == {answer["pid"] for answer in again.values()}

        run("agent", "remove", "gpu01")
        assert not folder(servers[0], "gpu01").exists()
        assert set(live_tokens(run)) == {"gpu02"}
        assert told("remove", "gpu01")["gpu01"]["outcome"] == "absent"


def test_tokens_are_kept_while_they_are_good(node, run, told):
    server = node("gpu01")
    install = ("install", "gpu01", "--hub", NO_HUB)
    assert told(*install)["gpu01"]["outcome"] == "installed"
    token = folder(server, "gpu01") / "token"
    first = token.read_text()
    assert live_tokens(run) == {"gpu01": first.split("_")[1]}
    assert told(*install, "--interval", "2")["gpu01"]["outcome"] == "updated"
    assert token.read_text() == first

    token.unlink()
    assert told(*install)["gpu01"]["outcome"] == "updated"
    second = token.read_text()
    assert second != first
    run("token", "revoke", "gpu01")
    assert told(*install)["gpu01"]["outcome"] == "updated"
    assert token.read_text() not in (first, second)
    assert live_tokens(run) == {"gpu01": token.read_text().split("_")[1]}
    key = (folder(server, "gpu01") / "upgrade-key").read_text()
    assert len(bytes.fromhex(key)) == 32


def test_secrets_are_in_no_command_line(node, told, run):
    server = node(
        "gpu01",
        wrapper='echo "$SSH_ORIGINAL_COMMAND" >> "$GPULSE_TEST_NODE/commands"\nexec sh -c "$SSH_ORIGINAL_COMMAND"',
    )
    pid = told("install", "gpu01", "--hub", NO_HUB)["gpu01"]["pid"]
    asked = (server.folder / "commands").read_text()
    assert "service install" in asked
    for name in ("token", "upgrade-key"):
        secret = (folder(server, "gpu01") / name).read_text()
        assert secret not in asked
        assert secret not in Path(f"/proc/{pid}/cmdline").read_text()
    assert run("agent", "status", "gpu01").stdout.count("gpn_") == 0


def test_status_restart_stop(node, told, run):
    node("gpu01")
    assert told("status", "gpu01", code=1) == {"gpu01": {"node": "gpu01", "outcome": "absent"}}
    assert told("restart", "gpu01", code=1)["gpu01"]["outcome"] == "absent"
    installed = told("install", "gpu01", "--hub", NO_HUB)["gpu01"]
    assert (installed["by"], installed["at_boot"]) == ("detached", True)
    stopped = told("stop", "gpu01")["gpu01"]
    assert (stopped["outcome"], alive(installed["pid"])) == ("stopped", False)
    assert told("status", "gpu01", code=1)["gpu01"]["outcome"] == "stopped"
    restarted = told("restart", "gpu01")["gpu01"]
    assert (restarted["outcome"], alive(restarted["pid"])) == ("running", True)
    assert (
        f"✓ gpu01  running {gpulse.__version__}, detached, pid {restarted['pid']} since 2"
        in run("agent", "status", "gpu01").stdout
    )


def test_drop(node, run, tmp_path):
    node("gpu01")
    shared = tmp_path / "shared"
    shared.mkdir()
    ran = run("agent", "install", "gpu01", "--way", "drop", "--drop", str(shared), "--interval", "0.5")
    table = tomllib.loads(ran.stderr.partition("add to gpulse.toml:")[2])
    assert table == {"drop_folders": [{"path": str(shared)}]}
    snapshot = json.loads(until(lambda: (shared / "gpu01.json").exists() and (shared / "gpu01.json").read_bytes()))
    assert (snapshot["node"], len(snapshot["gpus"])) == ("gpu01", 2)


def test_serve(node, run, told):
    server = node("gpu01")
    port = free_port()
    install = ("install", "gpu01", "--way", "serve", "--listen", "127.0.0.1", "--port", str(port))
    ran = run("agent", *install)
    (table,) = tomllib.loads(ran.stderr.partition("add to gpulse.toml:")[2])["nodes"]
    assert table["hosts"] == ["gpu01"]
    assert (table["transport"], table["port"]) == ("pull", port)
    assert table["token_file"].endswith("/pull-tokens/{name}")
    file = Path(table["token_file"].replace("{name}", "gpu01"))
    assert file.stat().st_mode & 0o777 == 0o600
    token = file.read_text().strip()
    assert (folder(server, "gpu01") / "token").read_text().strip() == token

    def ask(token: str) -> int:
        try:
            url = f"http://127.0.0.1:{port}/snapshot"
            return httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_SECONDS).status_code
        except httpx.TransportError:
            return 0

    assert until(lambda: ask(token)) == 200
    assert ask("another") in (401, 403)
    assert told(*install)["gpu01"]["outcome"] == "unchanged"
    assert file.read_text().strip() == token


def test_a_bad_node_does_not_disturb_the_others(node, run, told):
    node("gpu01")
    bad = node("gpu02", path="")
    (bad.bin / "python3").unlink()
    full = node("gpu04")
    (full.home / ".local").write_text("in the way")
    found = told("install", "gpu[01-04]", "--hub", "https://hub.invalid", code=1)
    assert {name: answer["outcome"] for name, answer in found.items()} == {
        "gpu01": "installed",
        "gpu02": "failed",
        "gpu03": "failed",
        "gpu04": "failed",
    }
    assert found["gpu02"]["error"] == "there is no python3 on the node's PATH"
    assert found["gpu03"]["error"] == "the name gpu03 does not resolve"
    assert "Not a directory" in found["gpu04"]["error"]
    assert set(live_tokens(run)) == {"gpu01"}
    shown = run("agent", "status", "gpu[01-02]", code=1).stdout
    assert "✗ gpu02  there is no python3 on the node's PATH\n      → install Python 3.6 or later there" in shown


def test_another_python(node, told):
    server = node("gpu01")
    (server.bin / "python3").rename(server.bin / "python3.x")
    assert told("install", "gpu01", "--hub", NO_HUB, "--python", "python3.x")["gpu01"]["outcome"] == "installed"


def test_unknown_host_keys_are_refused(node, told):
    node("gpu01", known=False)
    assert "is not in known_hosts" in told("install", "gpu01", "--hub", NO_HUB, code=1)["gpu01"]["error"]


def test_through_a_jump_host_and_a_talkative_login(node, told, client, tmp_path):
    node("door")
    inner = node("gpu01", wrapper='echo Welcome; printf "no newline"; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    with client.config.open("a") as file:
        file.write("Host gpu01\n  ProxyJump door\n")
    # Behind another host, "this machine" is never the hub.
    refused = told("install", "gpu01", "--hub", NO_HUB, code=1)["gpu01"]
    assert refused["error"] == f"{NO_HUB} would lead the node to itself, not to the hub"
    assert told("install", "gpu01", "--way", "drop", "--drop", str(tmp_path))["gpu01"]["outcome"] == "installed"
    assert folder(inner, "gpu01").exists()


def test_hubs_that_nodes_cannot_reach(run):
    ran = run("agent", "install", "gpu01.invalid", "--hub", "http://localhost:7070", code=1)
    assert "would lead the node to itself" in ran.stdout
    assert "address by which the nodes reach this machine" in ran.stdout


def test_http_over_a_network_is_told_once(node, run):
    node("gpu01")
    ran = run("agent", "install", "gpu01", "--hub", "http://hub.invalid:7070")
    assert ran.stderr.count("unencrypted") == 1
    assert "unencrypted" not in run("agent", "install", "gpu01", "--hub", "https://hub.invalid").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--hub URL is needed"),
        (("--hub", "hub:7070"), "is no address of a hub"),
        (("--hub", "ftp://hub"), "is no address of a hub"),
        (("--way", "serve"), "needs --listen ADDRESS"),
        (("--way", "drop", "--drop", "relative"), "needs --drop DIR"),
        (("--hub", "https://hub", "--ca", "/nonexistent"), "--ca /nonexistent cannot be read"),
        (
            ("--hub", "https://hub", "--fingerprint", "sha256:0"),
            "--fingerprint: a fingerprint is sha256: and 64 digits",
        ),
        (("--hub", "http://hub", "--fingerprint", "sha256:" + "0" * 64), "--fingerprint goes with --hub https://"),
    ],
)
def test_mistakes(run, words, said):
    assert said in run("agent", "install", "gpu01", *words, code=2).stderr


def test_nodes_of_the_settings(node, told, settings_file):
    node("gpu01")
    node("gpu02")
    with settings_file.open("a") as file:
        file.write('[[nodes]]\nhosts = "gpu01"\ntransport = "push"\n')
        file.write('[[nodes]]\nhosts = "gpu02"\ntransport = "pull"\nport = 7080\ntoken_file = "t"\n')
    (settings_file.parent / "t").write_text("x")
    assert set(told("status", code=1)) == {"gpu01", "gpu02"}


def test_nodes_that_share_a_home(node, told, tmp_path):
    wrapper = f'export HOME={tmp_path}/shared; mkdir -p "$HOME"; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    servers = [node(name, wrapper=wrapper) for name in ("gpu01", "gpu02")]
    found = told("install", "gpu[01-02]", "--hub", NO_HUB)
    assert len({answer["pid"] for answer in found.values()}) == 2
    told("remove", "gpu01")
    assert told("status", "gpu02")["gpu02"]["pid"] == found["gpu02"]["pid"]
    assert not (servers[0].folder / "crontab").exists()
    assert "gpu02" in (servers[1].folder / "crontab").read_text()


def test_a_node_with_systemd(node, told, tmp_path):
    with OwnMachine() as own:
        enter = " ".join(own.enter)
        server = node("gpu01", systemd=True, wrapper=f'exec {enter} sh -c "$SSH_ORIGINAL_COMMAND"')
        own.start_systemd(server.home, lingers=True)
        found = told("install", "gpu01", "--way", "drop", "--drop", str(tmp_path))["gpu01"]
        assert (found["outcome"], found["by"], found["at_boot"]) == ("installed", "systemd", True)
        until((tmp_path / "gpu01.json").exists)
        assert told("install", "gpu01", "--way", "drop", "--drop", str(tmp_path))["gpu01"]["outcome"] == "unchanged"
        assert told("remove", "gpu01")["gpu01"]["outcome"] == "removed"
        assert own.processes(["app.slice"]) == []


def test_agents_are_told_the_fingerprint_of_a_hub_with_its_own_certificate(
    node, run, told, settings_file, tmp_path, monkeypatch
):
    node("gpu01")
    url = "https://127.0.0.1:9"
    install = ("install", "gpu01", "--hub", url)
    with settings_file.open("a") as file:
        file.write("[tls]\nself_signed = true\n")
    assert "start it once" in run("agent", *install, code=2).stderr
    with RunningHub("up", "--config", str(settings_file), "--data", str(tmp_path / "data")) as hub:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "data" / "tls" / "certificate.pem"))
        found = told("install", "gpu01", "--hub", hub.url)["gpu01"]
        known_by = own_fingerprint(tmp_path / "data")
        assert ["--fingerprint", known_by] == found["command"][found["command"].index("--fingerprint") :][:2]
        hub.until(lambda: hub.node("gpu01")["state"] == "up")
    # Whoever names another knows better; and http has none.
    other = "sha256:" + "0" * 64
    assert other in told(*install, "--fingerprint", other)["gpu01"]["command"]
    assert "--fingerprint" not in told("install", "gpu01", "--hub", NO_HUB)["gpu01"]["command"]
    settings_file.write_text(settings_file.read_text().replace("self_signed = true", ""))
    assert "tls.self_signed is not set in these settings" in run("agent", *install).stderr
