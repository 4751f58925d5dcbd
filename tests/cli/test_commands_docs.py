"""docs/commands.md names every command and every option, and none that there is not."""

import re
from pathlib import Path

import pytest
import typer.main

from gpulse.cli.commands import app

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
COMMANDS = typer.main.get_command(app).commands
HUB_COMMANDS = ("nodes", "gpus", "who", "free", "logs")
LISTS = ("nodes", "gpus", "who")


def sections() -> dict[str, str]:
    parts = re.split(r"^##+ (.+)$", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def told(text: str) -> set[str]:
    """Options in the first column of a table."""
    cells = re.findall(r"^\| (`-.+?) \|", text, flags=re.MULTILINE)
    return {option for cell in cells for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", cell)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_listed(command):
    assert f"| `gpulse {command}` |" in DOCUMENT.read_text("utf-8")


# The probe's options are in docs/probe.md.
@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "probe"])
def test_options_are_those_of_help(command):
    there = {name for option in COMMANDS[command].params for name in option.opts if name.startswith("-")} | {"--help"}
    chapters = sections()
    documented = told(chapters[f"gpulse {command}"])
    if command in HUB_COMMANDS:
        documented |= told(chapters["Asking a hub"])
    if command in LISTS:
        documented |= told(chapters["Lists"])
    assert documented == there


# What the agent itself takes is in docs/agent.md.
PARTS = [
    (command, part)
    for command, group in COMMANDS.items()
    for part in getattr(group, "commands", {})
    if (command, part) not in {("agent", "push"), ("agent", "serve"), ("agent", "drop")}
]


@pytest.mark.parametrize(("command", "part"), PARTS)
def test_options_of_parts_are_those_of_help(command, part):
    options = COMMANDS[command].commands[part].params
    there = {name for option in options for name in option.opts if name.startswith("-")}
    assert told(sections()[f"gpulse {command} {part}"]) == there
