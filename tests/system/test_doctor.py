"""gpulse doctor against real OpenSSH servers: what passes, what fails first, and what helps."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port


@pytest.fixture
def doctor(client, tmp_path):
    """Run it as a person does; without the system's files, which are of this machine."""
    (tmp_path / "gpulse.toml").write_text(f'[ssh]\nconfig_files = ["{client.config}"]\n')

    def run(*arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        command = [
            Path(sys.executable).with_name("gpulse"),
            "doctor",
            "--config",
            str(tmp_path / "gpulse.toml"),
            *arguments,
        ]
        environment = dict(os.environ, HOME=str(client.home), PYTHONIOENCODING="utf-8")
        return subprocess.run(
            command,
            env=environment,
            input=answer,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    return run


def outcomes(run: subprocess.CompletedProcess[str]) -> dict[str, str]:
    (node,) = json.loads(run.stdout)
    return {check["name"]: check["outcome"] for check in node["checks"]}


def test_a_healthy_node(serve, doctor):
    server = serve(gpus=2)
    run = doctor(f"127.0.0.1:{server.port}")
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].endswith(f"@127.0.0.1:{server.port})")
    assert [line.split()[0] for line in lines[1:]] == ["✓"] * 8
    assert "SHA256:" in lines[3]
    assert "2 GPUs, driver 550.54.15" in lines[6]
    assert outcomes(doctor("--json", f"127.0.0.1:{server.port}")) == dict.fromkeys(
        ["name", "port", "host key", "login", "python", "NVML", "clock", "probe"], "passed"
    )


def test_the_first_failure_ends_a_nodes_checks_and_nodes_keep_their_order(serve, doctor):
    good, bad = serve(), serve(login=("/bin/sh",), python=None, path="")
    gone = free_port()
    run = doctor(f"127.0.0.1:{gone}", f"127.0.0.1:{bad.port}", f"127.0.0.1:{good.port}", "--json")
    assert run.returncode == 1
    first, second, third = json.loads(run.stdout)
    assert [check["outcome"] for check in first["checks"]] == ["passed", "failed"]
    assert first["checks"][-1]["detail"] == f"127.0.0.1 port {gone} refuses connections"
    assert first["checks"][-1]["fix"] == "see that sshd runs there, and its port"
    assert second["checks"][-1]["name"] == "python"
    assert "there is no python3" in second["checks"][-1]["detail"]
    assert third["passed"]


def test_names_that_do_not_resolve(doctor):
    run = doctor("no-such-host.invalid")
    assert run.returncode == 1
    assert "✗ name resolves" in run.stdout
    assert "the name no-such-host.invalid" in run.stdout


@pytest.mark.parametrize(
    ("config", "check", "words"),
    [
        (
            "KbdInteractiveAuthentication yes\nAuthenticationMethods publickey,keyboard-interactive",
            "login",
            "second factor",
        ),
        ("Banner {folder}/banner\nDenyUsers *", "login", "pam_slurm_adopt"),
    ],
)
def test_logins_that_are_refused(serve, doctor, tmp_path, config, check, words):
    (tmp_path / "banner").write_text("Access denied by pam_slurm_adopt: you have no active jobs on this node\n")
    server = serve(config=config.format(folder=tmp_path))
    run = doctor("--json", f"127.0.0.1:{server.port}")
    last = json.loads(run.stdout)[0]["checks"][-1]
    assert (last["name"], last["outcome"]) == (check, "failed")
    assert words in last["detail"]
    assert outcomes(run)["host key"] == "passed"


def test_a_passphrase_without_an_agent(serve, doctor, client):
    server = serve()
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", client.key], check=True, capture_output=True)
    run = doctor(f"127.0.0.1:{server.port}")
    assert "✗ login" in run.stdout
    assert "has a passphrase and no agent holds it\n      → run: ssh-add ~/.ssh/id_ed25519" in run.stdout


def test_a_restricted_shell(serve, doctor, tmp_path):
    server = serve(login=("/bin/rbash",))
    with (tmp_path / "gpulse.toml").open("a") as file:
        file.write('python = "/usr/bin/python3"\n')
    run = doctor(f"127.0.0.1:{server.port}")
    assert "✗ python" in run.stdout
    assert "its login shell is restricted" in run.stdout


def test_a_driver_that_does_not_answer(serve, doctor):
    server = serve()
    server.fake.describe("fault nvmlInit* version_mismatch\ngpu\n")
    run = doctor("--json", f"127.0.0.1:{server.port}")
    assert outcomes(run)["NVML"] == "failed"
    assert "clock" not in outcomes(run)


def test_a_clock_that_is_wrong(serve, doctor):
    server = serve(python=None)
    server.program(
        "python3",
        f"""echo; echo --gpulse-probe-start--; exec {sys.executable} -c '
import json, time
print(json.dumps({{"schema": 1, "time": time.time() - 100, "probe": {{"python": "3.9.1"}}, "gpus": []}}))'""",
    )
    run = doctor(f"127.0.0.1:{server.port}")
    # On a busy machine it is some seconds more until the line is read.
    assert re.search(r"\b1[0-5]\d s behind this machine's", run.stdout), run.stdout
    assert "✓ probe" not in run.stdout


def test_trust_asks_once_for_all(serve, doctor, client):
    servers = [serve(known=False) for _ in range(3)]
    hosts = [f"127.0.0.1:{server.port}" for server in servers]
    refused = doctor("--trust", *hosts, answer="n\n")
    assert refused.returncode == 1
    assert not client.known_hosts.exists()

    run = doctor("--trust", *hosts, answer="y\n")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr.count("Add all 3?") == 1
    for server in servers:
        shown = subprocess.run(
            ["ssh-keygen", "-lf", server.folder / "host_key.pub"], capture_output=True, text=True, check=True
        )
        assert f"[127.0.0.1]:{server.port}  ssh-ed25519 {shown.stdout.split()[1]}" in run.stderr
    assert sorted(client.known_hosts.read_text().splitlines()) == sorted(
        f"[127.0.0.1]:{server.port} {server.public_host_key}" for server in servers
    )
    assert doctor(*hosts).returncode == 0


def test_no_nodes_at_all(doctor):
    run = doctor()
    assert run.returncode == 2
    assert "there are no nodes to look at" in run.stderr


def test_nodes_with_an_agent_are_not_for_the_doctor(doctor, tmp_path):
    with (tmp_path / "gpulse.toml").open("a") as file:
        file.write('[[nodes]]\nhosts = "gpu[01-03]"\ntransport = "push"\n')
    run = doctor()
    assert run.returncode == 2
    assert "3 nodes have an agent, such as gpu01: for these, run gpulse agent status" in run.stderr
    assert "there are no nodes to look at" in run.stderr
