"""Nodes over SSH, with real OpenSSH servers: every shell, every kind of login, and what is told when one fails."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gpulse_probe
from gpulse.transport import bundle
from gpulse.transport.ssh import SshSettings, SshTarget
from tests.conform import conforms
from tests.interpreters import interpreters
from tests.ports import free_port
from tests.system.conftest import target
from tests.system.hub import first_failure, first_line, hub
from tests.system.sshd import make_key, oldest_python

MODEL = "NVIDIA H100 80GB HBM3"
RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "nvidia_smi" / "h100-mig.xml"
# What nc would do, where there is none.
BRIDGE = """
import os, select, socket, sys
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for ready in select.select([0, far], [], [])[0]:
        data = os.read(0, 65536) if ready == 0 else far.recv(65536)
        if not data:
            sys.exit()
        far.sendall(data) if ready == 0 else os.write(1, data)
"""


def test_a_node_sends_its_lines_by_one_connection(serve, settings):
    server = serve(gpus=2)

    async def run():
        async with hub(settings, target(server)) as seen:
            await seen.until(lambda: len(seen.lines["n0"]) >= 4)
            return seen

    seen = asyncio.run(run())
    first = seen.lines["n0"][0]
    assert first["node"] == "n0"
    assert [gpu["name"] for gpu in first["gpus"]] == [MODEL] * 2
    assert [line["seq"] for line in seen.lines["n0"][:4]] == [0, 1, 2, 3]
    assert seen.downs["n0"] == []
    assert (server.folder / "log").read_text().count("Accepted publickey") == 1


def test_a_hub_upgrade_brings_its_own_probe(serve, settings, monkeypatch):
    """Nothing of the old version is on the node: the new hub's connection runs the new probe."""
    server = serve()
    before = asyncio.run(first_line(settings, target(server))).lines["n0"][0]
    assert before["probe"]["version"] == gpulse_probe.__version__
    original = bundle.squeeze
    old, new = f'"{gpulse_probe.__version__}"', '"99.0.0"'
    monkeypatch.setattr(bundle, "squeeze", lambda source: original(source).replace(old, new))
    bundle._made.cache_clear()
    try:
        after = asyncio.run(first_line(settings, target(server))).lines["n0"][0]
    finally:
        bundle._made.cache_clear()
    assert after["probe"]["version"] == "99.0.0"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "tcsh", "fish", "rbash"])
def test_login_shells_and_what_their_start_up_files_print(serve, settings, shell):
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"{shell} is missing")
    server = serve(login=(program,))
    for name in (".bashrc", ".tcshrc", ".config/fish/config.fish"):
        file = server.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("echo Welcome, no matter who\necho to stderr >&2\n" if "tcsh" not in name else "echo Welcome\n")
    seen = asyncio.run(first_line(settings, target(server)))
    assert seen.lines["n0"][0]["node"] == "n0"
    if shell in ("bash", "rbash", "tcsh", "fish"):
        assert any("Welcome" in message for message in seen.logs["n0"])


def test_the_oldest_python(serve, settings):
    server = serve(python=oldest_python())
    seen = asyncio.run(first_line(settings, target(server)))
    assert seen.lines["n0"][0]["probe"]["python"].startswith(f"{next(iter(interpreters()))}.")


def test_a_python_by_its_path(serve, settings):
    server = serve(python=None, path="")
    seen = asyncio.run(first_line(settings, target(server, python=oldest_python())))
    assert seen.lines["n0"][0]["node"] == "n0"


def test_a_slow_login(serve, settings):
    server = serve(wrapper='sleep 5; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"')
    seen = asyncio.run(first_line(settings, target(server)))
    assert seen.downs["n0"] == []


def test_a_banner_before_the_login(serve, settings, tmp_path):
    (tmp_path / "banner").write_text("Authorised use only\n" * 50)
    server = serve(config=f"Banner {tmp_path}/banner")
    assert asyncio.run(first_line(settings, target(server))).downs["n0"] == []


@pytest.mark.parametrize("shell", ["sh", "bash", "tcsh", "fish"])
def test_without_python_by_nvidia_smi(serve, settings, shell):
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"{shell} is missing")
    server = serve(login=(program,), python=None, path="")
    server.program("nvidia-smi", f"exec /bin/cat {RECORDED}")
    seen = asyncio.run(first_line(settings, target(server)))
    snapshot = seen.lines["n0"][0]
    assert conforms("Snapshot", snapshot) == []
    assert snapshot["probe"]["gpu_source"] == "nvidia-smi"
    assert snapshot["probe"]["interval_seconds"] == 5.0
    assert [gpu["name"] for gpu in snapshot["gpus"] if "parent_uuid" not in gpu] == [MODEL]
    assert "there is no python3" in snapshot["reports"][0]["message"]


def test_with_neither_python_nor_nvidia_smi(serve, settings):
    server = serve(python=None, path="")
    reason = asyncio.run(first_failure(settings, target(server)))
    assert reason.startswith("there is no python3 on the node's PATH, and no nvidia-smi; install Python 3.6")


def test_a_python_that_is_too_old(serve, settings):
    server = serve(python=None)
    server.program("python3", 'echo "gpulse: Python 3.4 is too old, the probe needs 3.6" >&2; exit 8')
    reason = asyncio.run(first_failure(settings, target(server)))
    assert reason.startswith("gpulse: Python 3.4 is too old, the probe needs 3.6")


def test_a_restricted_shell(serve, settings):
    server = serve(login=("/bin/rbash",))
    reason = asyncio.run(first_failure(settings, target(server, python="/usr/bin/python3")))
    assert reason.startswith("its login shell is restricted and refuses to run the probe")


def test_a_full_disk(serve, settings):
    server = serve(wrapper='echo "sh: cannot create temp file for here document: No space left on device" >&2; exit 2')
    assert asyncio.run(first_failure(settings, target(server))).startswith("a disk is full there")


def test_unknown_host_key(serve, settings, client):
    server = serve(known=False)
    reason = asyncio.run(first_failure(settings, target(server)))
    assert reason.startswith(
        f"the SSH host key of [127.0.0.1]:{server.port} is not in known_hosts (ssh-ed25519 SHA256:"
    )
    assert 'ssh.host_keys = "accept-new"' in reason
    assert not client.known_hosts.exists()


def test_accept_new_adds_the_key_once_and_never_a_changed_one(serve, settings, client):
    server = serve(known=False)
    client.known_hosts.write_text("# ours, without an end of line")
    trusting = SshSettings("accept-new", settings.config_files, settings.system_known_hosts)
    for _ in range(2):
        asyncio.run(first_line(trusting, target(server)))
    lines = client.known_hosts.read_text().splitlines()
    assert lines == ["# ours, without an end of line", f"[127.0.0.1]:{server.port} {server.public_host_key}"]
    assert client.known_hosts.stat().st_mode & 0o22 == 0
    asyncio.run(first_line(settings, target(server)))

    server.stop()
    for file in server.folder.glob("host_key*"):
        file.unlink()
    make_key(server.folder / "host_key")
    server.start()
    reason = asyncio.run(first_failure(trusting, target(server)))
    assert "has CHANGED" in reason
    assert f"ssh-keygen -f {client.known_hosts} -R '[127.0.0.1]:{server.port}'" in reason
    assert client.known_hosts.read_text().splitlines() == lines


def test_hashed_and_system_known_hosts(serve, settings, client, tmp_path):
    hashed, system = serve(), serve(known=False)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", client.known_hosts], check=True, capture_output=True)
    assert "127.0.0.1" not in client.known_hosts.read_text()
    (tmp_path / "system_known_hosts").write_text(
        f"a line that is none\n[127.0.0.1]:{system.port} {system.public_host_key}\n"
    )
    asyncio.run(first_line(settings, target(hashed)))
    asyncio.run(first_line(settings, target(system)))


def test_a_certificate_authority_and_a_revoked_key(serve, settings, client, tmp_path):
    authority = make_key(tmp_path / "ca")
    signed, revoked = serve(known=False), serve(known=False)
    sign = ["ssh-keygen", "-q", "-s", tmp_path / "ca", "-I", "node", "-h", "-n", "127.0.0.1"]
    subprocess.run([*sign, signed.folder / "host_key.pub"], check=True, capture_output=True)
    signed.stop()
    with (signed.folder / "sshd_config").open("a") as config:
        config.write(f"HostCertificate {signed.folder}/host_key-cert.pub\n")
    signed.start()
    client.known_hosts.write_text(
        f"@cert-authority [127.0.0.1]:* {authority}\n@revoked * {revoked.public_host_key}\n"
        f"[127.0.0.1]:{revoked.port} {revoked.public_host_key}\n"
    )
    asyncio.run(first_line(settings, target(signed)))
    reason = asyncio.run(first_failure(settings, target(revoked)))
    assert "is refused: Host key is revoked" in reason


def test_ssh_config_jump_host_and_proxy_command(serve, settings, client):
    jump, node = serve(), serve()
    (client.home / "bridge.py").write_text(BRIDGE)
    client.config.write_text(
        f"""Include more
Host gpu-jump
  ProxyJump bastion
Host gpu-proxy
  ProxyCommand {sys.executable} {client.home}/bridge.py %h %p
  HostKeyAlias [127.0.0.1]:{node.port}
Host gpu-*
  HostName 127.0.0.1
  Port {node.port}
"""
    )
    (client.ssh / "more").write_text(
        f"""Host bastion
  HostName 127.0.0.1
  Port {jump.port}
  IdentityFile ~/.ssh/no_such_key
  IdentityFile ~/.ssh/id_ed25519
"""
    )
    with (jump.folder / "sshd_config").open("r+") as config:
        text = config.read().replace(f"ForceCommand {jump.folder}/login", "")
        config.seek(0)
        config.truncate()
        config.write(text)
    jump.stop()
    jump.start()

    async def run():
        targets = [SshTarget(name=f"n{number}", host="gpu-jump", interval_seconds=0.5) for number in range(3)]
        async with hub(settings, *targets) as seen:
            await seen.up("n0", "n1", "n2")
        # The jump host is shared by the nodes behind it.
        assert (jump.folder / "log").read_text().count("Accepted publickey") == 1
        assert seen.downs == {}
        async with hub(settings, SshTarget(name="p", host="gpu-proxy", interval_seconds=0.5)) as seen:
            await seen.up("p")

    asyncio.run(run())


def test_a_jump_host_that_cannot_be_reached(serve, settings, client):
    node = serve()
    client.config.write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {node.port}\n  ProxyJump 127.0.0.1:{free_port()}\n"
    )
    reason = asyncio.run(first_failure(settings, SshTarget(name="n0", host="gpu")))
    assert reason.startswith("jump host 127.0.0.1: 127.0.0.1 port")
    assert "refuses connections" in reason


def test_a_key_that_is_not_accepted(serve, settings):
    server = serve()
    (server.folder / "authorized_keys").write_text("")
    reason = asyncio.run(first_failure(settings, target(server, user="root")))
    assert reason.startswith("root@127.0.0.1 denies the login (keys tried: ~/.ssh/id_ed25519)")


def test_a_passphrase_and_an_agent(serve, settings, client, tmp_path, monkeypatch):
    server = serve()
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", client.key], check=True, capture_output=True)
    reason = asyncio.run(first_failure(settings, target(server)))
    assert reason == "the key ~/.ssh/id_ed25519 has a passphrase and no agent holds it; run: ssh-add ~/.ssh/id_ed25519"

    agent = subprocess.Popen(["ssh-agent", "-D", "-a", tmp_path / "agent"], stdout=subprocess.DEVNULL)
    try:
        while not (tmp_path / "agent").exists():
            time.sleep(0.02)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        (tmp_path / "ask").write_text("#!/bin/sh\necho secret\n")
        (tmp_path / "ask").chmod(0o700)
        asking = dict(os.environ, SSH_ASKPASS=str(tmp_path / "ask"), SSH_ASKPASS_REQUIRE="force")
        subprocess.run(["ssh-add", "-q", client.key], env=asking, check=True, capture_output=True)
        asyncio.run(first_line(settings, target(server)))
    finally:
        agent.terminate()
        agent.wait()


def test_a_second_factor(serve, settings):
    server = serve(config="KbdInteractiveAuthentication yes\nAuthenticationMethods publickey,keyboard-interactive")
    reason = asyncio.run(first_failure(settings, target(server)))
    assert "wants a second factor or a password (keyboard-interactive)" in reason


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("Access denied by pam_slurm_adopt: you have no active jobs on this node", "Slurm lets you log in only while"),
        ("Your account has expired; please contact your system administrator.", "the account has expired"),
        ("System is going down. Unprivileged users are not permitted to log in anymore.", "the node takes no logins"),
    ],
)
def test_what_a_login_says_when_it_refuses(serve, settings, tmp_path, said, meaning):
    # As PAM does: the message comes as a banner, then nobody is let in.
    (tmp_path / "banner").write_text(said + "\n")
    server = serve(config=f"Banner {tmp_path}/banner\nDenyUsers *")
    assert asyncio.run(first_failure(settings, target(server))).startswith(meaning)


def test_nobody_listens_and_names_that_do_not_resolve(settings):
    refused = SshTarget(name="n0", host="127.0.0.1", port=free_port())
    assert "refuses connections; see that sshd runs there" in asyncio.run(first_failure(settings, refused))
    unknown = SshTarget(name="n0", host="no-such-host.invalid")
    reason = asyncio.run(first_failure(settings, unknown))
    assert reason.startswith("the name no-such-host.invalid")


def test_a_bad_ssh_config(serve, settings, client):
    server = serve()
    client.config.write_text("Host *\n  Port many\n")
    reason = asyncio.run(first_failure(settings, target(server)))
    assert "ssh's settings cannot be used" in reason
    assert "line 2" in reason


def test_nodes_come_and_go(serve, settings):
    one, two = serve(), serve()

    async def run():
        async with hub(settings, target(one, "one")) as seen:
            await seen.up("one")
            seen.set_targets([target(one, "one"), target(two, "two")])
            await seen.up("one", "two")
            logins = (one.folder / "log").read_text().count("Accepted publickey")
            before = len(seen.lines["two"])
            seen.set_targets([target(two, "two", interval_seconds=0.25)])
            await seen.until(lambda: not one.login_processes())
            await seen.until(lambda: any(line["seq"] == 0 for line in seen.lines["two"][before:]))
            await seen.up("two")
            return logins

    assert asyncio.run(run()) == 1


def test_nothing_stays_on_the_node(serve, settings):
    server = serve()

    async def run():
        async with hub(settings, target(server)) as seen:
            await seen.up("n0")
            assert server.login_processes()
        await seen.until(lambda: not server.login_processes())

    asyncio.run(run())
    assert [path.name for path in server.home.rglob("*")] == []
