"""The list of commands, for --help and for the shell's completion."""

from typing import Annotated

import typer

import gpulse
from gpulse.cli import (
    agent,
    audit,
    backup,
    changing_reservations,
    connect,
    demo,
    doctor,
    export,
    free,
    gpus,
    login,
    logs,
    moving_in,
    nodes,
    probe,
    reservations,
    reserve,
    restore,
    service,
    terminal,
    token,
    up,
    user,
    who,
)
from gpulse.cli.options import HubCommand

app = typer.Typer(
    name="gpulse",
    help="Every GPU of a cluster, live, with who uses it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        terminal.tell(f"gpulse {gpulse.__version__}")
        raise typer.Exit


@app.callback()
def gpulse_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Every GPU of a cluster, live, with who uses it."""


# Its options are the probe's own: `gpulse probe --help` is answered there.
@app.command("probe", add_help_option=False, context_settings={"ignore_unknown_options": True})
def probe_command(arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
    """Print this machine's snapshot: --once, --stream, --pretty."""
    raise typer.Exit(probe.run(arguments or []))


# The commands that start a hub.
app.command(cls=HubCommand)(up.up)
app.command(cls=HubCommand)(demo.demo)
app.command(cls=HubCommand)(doctor.doctor)

# The commands for the tokens of nodes.
app.add_typer(token.app, name="token")

# The commands for the accounts of people.
user.app.command(cls=HubCommand)(connect.connect)
app.add_typer(user.app, name="user")
app.command(cls=HubCommand)(audit.audit)

# The commands for all that is kept.
app.command(cls=HubCommand)(backup.backup)
app.command(cls=HubCommand)(restore.restore)

# The commands that ask a running hub.
for command in (login.login, login.logout, nodes.nodes, gpus.gpus, who.who, free.free, logs.logs, export.export):
    app.command(cls=HubCommand)(command)

# The commands for reservations.
app.command(cls=HubCommand)(reserve.reserve)
app.command(cls=HubCommand)(reservations.reservations)
for change in (changing_reservations.extend, changing_reservations.end, changing_reservations.cancel):
    app.command(cls=HubCommand)(change)

# "import" is a word of Python.
app.command("import", cls=HubCommand)(moving_in.import_)

# What runs for long, here and on nodes.
app.add_typer(agent.app, name="agent")
app.add_typer(service.app, name="service")
