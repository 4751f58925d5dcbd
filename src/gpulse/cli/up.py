"""gpulse up: the hub, with this machine and nodes over SSH."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from gpulse.config import Config, load

_DEFAULT_CONFIG = Path("gpulse.toml")

ConfigPath = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings (default: ./gpulse.toml if it is there).")
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on (default 127.0.0.1).")
]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on (default 7070); 0: any free one.")
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="GPULSE_DATA",
        metavar="DIR",
        help="Folder for what is kept (default ~/.local/share/gpulse).",
        show_envvar=False,
    ),
]
NoLink = Annotated[bool, typer.Option("--no-link", help="Print no link to sign in with, as where a log keeps it.")]


def up(
    hosts: Annotated[
        list[str] | None, typer.Argument(metavar="HOSTS", help="Nodes over SSH: 'gpu[01-16]' me@gpu40 10.0.0.7:2222.")
    ] = None,
    config: ConfigPath = None,
    host: Host = None,
    port: Port = None,
    data: Data = None,
    no_local: Annotated[bool, typer.Option("--no-local", help="Leave this machine out.")] = False,
    interval: Annotated[
        float | None,
        typer.Option("--interval", min=0.1, max=3600, metavar="SECONDS", help="Time between snapshots (default 1)."),
    ] = None,
    no_link: NoLink = False,
) -> None:
    """Show this machine, and nodes over SSH, at http://127.0.0.1:7070."""
    settings, path = read_config(config)
    hub = with_options(settings, host, port, data)
    changes: dict[str, object] = {}
    if no_local:
        changes["local"] = False
    if interval is not None:
        changes["interval_seconds"] = interval
    hub = msgspec.structs.replace(hub, hub=msgspec.structs.replace(hub.hub, **changes))
    # Loaded here: commands that only ask a hub need none of it.
    from gpulse.cli.hub_process import run_hub
    from gpulse.discovery import sources

    run_hub(hub, sources(hosts or [], path, hub), link=not no_link)


def read_config(path: Path | None) -> tuple[Config, Path | None]:
    """The settings and the file they came from; without a name it may be missing."""
    if path is None:
        if not _DEFAULT_CONFIG.exists():
            return Config(), None
        path = _DEFAULT_CONFIG
    return load(path), path


def with_options(config: Config, host: str | None, port: int | None, data: Path | None) -> Config:
    """What the command line says wins."""
    given = {"host": host, "port": port, "data": data}
    hub = msgspec.structs.replace(config.hub, **{name: value for name, value in given.items() if value is not None})
    return msgspec.structs.replace(config, hub=hub)
