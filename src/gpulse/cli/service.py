"""gpulse service install|status|restart|stop|remove: the hub as a service of this machine, without root."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

import gpulse
from gpulse.cli import terminal
from gpulse.cli.options import AsJson, HubCommand
from gpulse.cli.up import ConfigPath, Data, Host, Port, read_config, with_options
from gpulse.errors import AgentError

if TYPE_CHECKING:
    from gpulse.agents.node_service import Answer

app = typer.Typer(help="The hub as a service of this machine.", no_args_is_help=True, rich_markup_mode=None)


@app.command(cls=HubCommand)
def install(
    hosts: Annotated[list[str] | None, typer.Argument(metavar="HOSTS", help="Nodes over SSH, as of gpulse up.")] = None,
    config: ConfigPath = None,
    host: Host = None,
    port: Port = None,
    data: Data = None,
    no_local: Annotated[bool, typer.Option("--no-local", help="Leave this machine out.")] = False,
    interval: Annotated[
        float | None,
        typer.Option("--interval", min=0.1, max=3600, metavar="SECONDS", help="Time between snapshots (default 1)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep `gpulse up` with these options running on this machine, also after a reboot."""
    from gpulse.discovery import sources

    settings, path = read_config(config)
    # Mistakes are told now, not in a log.
    sources(hosts or [], path, with_options(settings, host, port, data))
    values = {"--config": path and path.resolve(), "--host": host, "--port": port, "--interval": interval}
    values["--data"] = data and data.expanduser().resolve()
    options = [word for name, value in values.items() if value is not None for word in (name, str(value))]
    # A log must not keep a link; `gpulse user link` makes one.
    switches = ["--no-link", *(["--no-local"] if no_local else [])]
    command = [_program(), "up", *options, *switches, "--", *(hosts or [])]

    def doing(control: Any, service: Any) -> Any:
        return control.install(service, command, {}, gpulse.__version__)

    _tell(_done(doing), as_json, "failed")


@app.command(cls=HubCommand)
def status(as_json: AsJson = False) -> None:
    """Tell whether the hub runs, since when, and what it said last."""
    _tell(_done(lambda control, service: control.status(service)), as_json, "failed", "stopped", "absent")


@app.command(cls=HubCommand)
def restart(as_json: AsJson = False) -> None:
    """Start the hub, or start it anew."""
    _tell(_done(lambda control, service: control.restart(service)), as_json, "failed", "absent")


@app.command(cls=HubCommand)
def stop(as_json: AsJson = False) -> None:
    """Stop the hub, until it is restarted or the machine is."""
    _tell(_done(lambda control, service: control.stop(service)), as_json, "failed")


@app.command(cls=HubCommand)
def remove(as_json: AsJson = False) -> None:
    """Take the service away; the hub's data stays."""
    _tell(_done(lambda control, service: control.remove(service)), as_json, "failed")


def _done(doing: Callable[[Any, Any], Any]) -> "Answer":
    from gpulse.agents.node_service import Answer
    from gpulse_probe.service import control, services
    from gpulse_probe.service.folder import ServiceError

    try:
        # The probe has no annotations: they would cost every node memory.
        answer = doing(control, services.hub())  # type: ignore[no-untyped-call]
    except ServiceError as problem:
        answer = {"outcome": "failed", "error": str(problem)}
    return msgspec.convert(answer, Answer)


def _program() -> str:
    beside = Path(sys.executable).with_name("gpulse")
    found = str(beside) if beside.exists() else shutil.which("gpulse")
    if not found:
        raise AgentError("the program gpulse is not found beside Python nor on PATH; install gpulse with pip")
    return found


def _tell(answer: "Answer", as_json: bool, *failures: str) -> None:
    from gpulse.cli.agent import lines

    answer = msgspec.structs.replace(answer, node="hub")
    if as_json:
        terminal.tell_record(answer)
    else:
        for line in lines(answer):
            terminal.tell(line)
    if answer.outcome in failures:
        raise typer.Exit(1)
