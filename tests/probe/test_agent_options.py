"""The agent's command line: what each of its commands takes, and mistakes in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse_probe import __version__
from gpulse_probe.agent import COMMANDS, Options
from gpulse_probe.hub_address import read
from gpulse_probe.options import UsageError
from tests.patience import PATIENCE_SECONDS

GPULSE = Path(sys.executable).with_name("gpulse")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "agent.md"


def run(*command, **environment):
    full = {**os.environ, "GPULSE_TOKEN": "", **environment}
    ran = subprocess.run(command, env=full, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["push"], "--hub is needed: where the hub is, such as http://hub:7070"),
        (["push", "--hub"], "--hub needs a value"),
        (["push", "--hub="], "--hub needs a value"),
        (["push", "--hub", "x", "--port", "1"], "unknown argument --port"),
        (["push", "--hub", "x", "more"], "unknown argument more"),
        (["push", "--upgrade=yes"], "--upgrade takes no value"),
        (["push", "--interval", "0"], "--interval: '0' is not a number of seconds from 0.05 to 86400"),
        (["serve", "--port", "70000"], "--port: '70000' is not a port from 0 to 65535"),
        (["serve", "--port", "http"], "--port: 'http' is not a port from 0 to 65535"),
        (["drop"], "DIR is needed: the folder to write into"),
        (["drop", "a", "b"], "unknown argument b"),
        (["serve", "-x"], "unknown argument -x"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(UsageError) as raised:
        Options(arguments[0], arguments[1:])
    assert str(raised.value) == message


@pytest.mark.parametrize("word", COMMANDS)
def test_a_token_on_the_command_line_is_refused_with_the_reason(word):
    for arguments in (["--token", "gpn_x"], ["--token=gpn_x"]):
        with pytest.raises(UsageError, match="there is no --token, everybody on this machine could read it"):
            Options(word, arguments)


def test_values_and_defaults():
    push = Options("push", ["--hub=http://h", "--token-file", "f", "--upgrade", "--node", "n 1"])
    assert (push.hub, push.token_file, push.upgrade, push.node) == ("http://h", "f", True, "n 1")
    assert (push.interval, push.deadline, push.folder, push.ca) == (1.0, None, None, None)
    drop = Options("drop", ["/shared", "--interval", "30"])
    assert (drop.directory, drop.interval) == ("/shared", 30.0)
    assert Options("drop", ["/shared"]).interval == 5.0
    serve = Options("serve", [])
    assert (serve.host, serve.port, serve.interval) == (None, None, 1.0)


def test_as_people_type_it(tmp_path):
    code, out, err = run(GPULSE, "agent", "push", "--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: gpulse agent push --hub URL")
    assert run(GPULSE, "agent", "drop", "--version")[1] == f"gpulse-probe {__version__}\n"
    code, out, err = run(GPULSE, "agent", "push")
    assert (code, out) == (2, "")
    assert err.endswith("such as http://hub:7070; see gpulse agent push --help\n")
    code, _, err = run(sys.executable, "-m", "gpulse_probe", "push", "--hub", "http://h", HOME=str(tmp_path))
    assert code == 2
    assert "there is no token in" in err
    assert "gpulse token create" in err


def test_agent_does_not_load_the_hub():
    """`gpulse agent push` must stay as small as the probe itself."""
    script = (
        "import sys; sys.argv = ['gpulse', 'agent', 'push', '--version']\n"
        "from gpulse.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name in ('typer', 'rich', 'argparse', 'subprocess', 'ssl')))"
    )
    assert run(sys.executable, "-c", script)[1].splitlines()[-1] == "[]"


@pytest.mark.parametrize("word", COMMANDS)
def test_help_has_every_option(word):
    told = set(re.findall(r"^  --([a-z-]+)", COMMANDS[word].help, flags=re.MULTILINE))
    assert told == {*COMMANDS[word].values, *COMMANDS[word].switches}


def test_options_of_push_are_documented():
    chapter = DOCUMENT.read_text("utf-8").partition("\n## push\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`--([a-z-]+)", "".join(re.findall(r"^\| (`--.+?) \|", chapter, flags=re.MULTILINE))))
    assert told == {*COMMANDS["push"].values, *COMMANDS["push"].switches}


@pytest.mark.parametrize(
    ("text", "host", "port", "path", "authority"),
    [
        ("http://hub", "hub", 80, "", "hub"),
        ("https://hub/", "hub", 443, "", "hub"),
        ("HTTP://hub:7070/a/b/", "hub", 7070, "/a/b", "hub:7070"),
        ("https://[::1]:8443/x", "::1", 8443, "/x", "[::1]:8443"),
        ("http://[fd00::7]", "fd00::7", 80, "", "[fd00::7]"),
    ],
)
def test_addresses_of_hubs(text, host, port, path, authority):
    address = read(text)
    assert (address.host, address.port, address.path) == (host, port, path + "/api/v1/ingest")
    assert address.authority == authority
    assert address.secure == text.lower().startswith("https")
    assert str(address) == f"{'https' if address.secure else 'http'}://{authority}{path}"


@pytest.mark.parametrize(
    "text",
    [
        *("hub:7070", "ftp://hub", "http://", "http://:80", "http://hub:0", "http://hub:x", "http://hub:99999"),
        *("http://me@hub", "http://hub/?a=b", "http://hub/#x", "http://hub\r\nX: y", "http://hüb", "http://[::1"),
        *("http://[::1]80", "http://::1", "http://a:b:c"),
    ],
)
def test_what_is_no_address(text):
    with pytest.raises(UsageError, match="--hub: "):
        read(text)
