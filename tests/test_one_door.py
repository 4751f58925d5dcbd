"""Nothing reaches a terminal or a log but by the door: a lint over the sources, by their syntax trees.

Commands print with gpulse.cli.terminal, the probe with gpulse_probe.printable, and the log of the hub is formatted by
gpulse.clean_text. Each cleans what it is given. Whoever prints in another way is found here.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"

# By file, the calls that it may make, and why they are harmless.
ALLOWED = {
    "gpulse/cli/terminal.py": ({"typer.echo", "sys.stdout.write"}, "the door of the commands"),
    "gpulse/clean_text.py": ({"logging.StreamHandler", "logging.basicConfig"}, "the door of the log"),
    "gpulse_probe/printable.py": ({"os.write"}, "the door of the probe"),
    "gpulse_probe/agent.py": ({"os.write"}, "help and version: ASCII, and all its own words"),
    "gpulse_probe/boot.py": ({"sys.stderr.write"}, "version numbers alone, and nothing else is loaded yet"),
    "gpulse_probe/child.py": ({"os.write"}, "into a pipe between a process and its child"),
    "gpulse_probe/outlets/drop.py": ({"os.write"}, "into a file"),
    "gpulse_probe/outlets/stream.py": (
        {"os.write"},
        "ASCII: JSON with escapes, or the table of outlets/cells.py, cleaned",
    ),
    "gpulse_probe/service/command.py": ({"os.write"}, "ASCII: JSON with escapes"),
    "gpulse_probe/service/folder.py": ({"os.write"}, "into a file"),
    "gpulse_probe/tokens.py": ({"os.write"}, "a token into a file"),
    "gpulse_probe/upgrade.py": ({"os.write"}, "into a file"),
    "gpulse/transport/host_keys.py": ({"os.write"}, "a key into known_hosts"),
}
PRINTING = {"print", "pprint", "typer.echo", "typer.secho", "click.echo", "click.secho", "os.write", "os.writev"}
PRINTING |= {
    f"sys.{name}{part}.{verb}"
    for name in ("stdout", "stderr", "__stdout__", "__stderr__")
    for part in ("", ".buffer")
    for verb in ("write", "writelines")
}
PRINTING |= {
    "logging.StreamHandler",
    "logging.FileHandler",
    "logging.basicConfig",
    "logging.config.dictConfig",
    "warnings.warn",
}
PRINTING |= {
    "rich.print",
    "console.print",
    "console.log",
    "traceback.print_exc",
    "traceback.print_exception",
    "syslog.syslog",
}
# They ask, so they print as well: what they print must be a constant, or text of gpulse's own.
ASKING = {"input", "typer.prompt", "typer.confirm", "click.prompt", "click.confirm", "getpass.getpass"}
ASKS = {
    "gpulse/cli/login.py": "the login name of whoever types",
    "gpulse/cli/user.py": "the account that whoever types has named",
    "gpulse/cli/doctor.py": "a number",
}
LOGGERS = ("_log", "log", "logger", "_logger", "logging")
LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}


def faults(source: str, path: str) -> Iterator[str]:
    """The calls in a source that print or log by another way than the door."""
    allowed = ALLOWED.get(path, (set(), ""))[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in ("typer", "click", "sys", "rich", "logging", "os"):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in PRINTING | ASKING or alias.name in ("stdout", "stderr"):
                    yield f"{path}:{node.lineno}: imports {alias.name} by its bare name"
        if not isinstance(node, ast.Call):
            # Given to somebody else who calls it.
            if (
                isinstance(node, ast.Attribute)
                and ast.unparse(node) in PRINTING - allowed - {"os.write"}
                and not _called(node, source)
            ):
                yield f"{path}:{node.lineno}: passes {ast.unparse(node)} on"
            continue
        called = ast.unparse(node.func)
        if called in PRINTING - allowed:
            yield f"{path}:{node.lineno}: {called}"
        owner, _, verb = called.rpartition(".")
        if verb in LEVELS and owner.rpartition(".")[2] in LOGGERS and not _is_constant(node.args[:1]):
            yield f"{path}:{node.lineno}: {called} with a message that is no constant; give its parts as arguments"
        if called in ASKING and not _is_constant(node.args[:1]) and path not in ASKS:
            yield f"{path}:{node.lineno}: {called} with text that is no constant"
        if any(keyword.arg == "file" and "sys.std" in ast.unparse(keyword.value) for keyword in node.keywords):
            yield f"{path}:{node.lineno}: {called} to {ast.unparse(node.keywords[-1].value)}"


def _called(node: ast.Attribute, source: str) -> bool:
    end = ast.get_source_segment(source, node) or ""
    lines = source.splitlines()[(node.end_lineno or 1) - 1]
    return bool(end) and lines.encode()[node.end_col_offset or 0 :][:1] == b"("


def _is_constant(arguments: list[ast.expr]) -> bool:
    return not arguments or isinstance(arguments[0], ast.Constant)


def test_everything_printed_or_logged_passes_the_door():
    found = [
        fault
        for path in sorted(SOURCES.rglob("*.py"))
        for fault in faults(path.read_text(), path.relative_to(SOURCES).as_posix())
    ]
    assert found == [], "print with gpulse.cli.terminal or gpulse_probe.printable: they clean what comes from outside"


@pytest.mark.parametrize(
    "source",
    [
        "print(x)",
        "import typer\ntyper.echo(f'{x}', err=True)",
        "import sys\nsys.stderr.write(x)",
        "import sys\nsys.stdout.buffer.write(x)",
        "from typer import echo\necho(x)",
        "from sys import stderr\nstderr.write(x)",
        "import os\nos.write(2, x)",
        "console.print(x)",
        "_log.warning(f'node {x}')",
        "_log.exception('node ' + x)",
        "logging.error(x)",
        "logging.StreamHandler()",
        "typer.confirm(f'Add {x}?')",
        "import typer\nhelper(typer.echo)",
        "traceback.print_exc(file=sys.stderr)",
    ],
)
def test_another_way_is_found(source):
    assert list(faults(source, "gpulse/somewhere.py"))


@pytest.mark.parametrize(
    "source",
    [
        "_log.warning('node %s', x)",
        "terminal.tell(x)",
        "complain(x)",
        "typer.confirm('Reserve?')",
        "math.log(x)",
        "fleet.log(x, y)",
    ],
)
def test_the_door_and_constants_are_not(source):
    assert not list(faults(source, "gpulse/somewhere.py"))


def test_every_exception_is_still_needed():
    for path, (calls, why) in ALLOWED.items():
        tree = ast.parse((SOURCES / path).read_text())
        made = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert calls <= made, f"{path} ({why}) no longer calls {calls - made}"
