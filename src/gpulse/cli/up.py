"""gpulse up: the hub, with this machine and nodes over SSH."""

import ipaddress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from gpulse.config import Config, load
from gpulse.errors import ListenError

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
    Path | None, typer.Option("--data", metavar="DIR", help="Folder for what is kept (default ~/.local/share/gpulse).")
]
Open = Annotated[
    bool, typer.Option("--open-to-network", help="Allow an address that others can reach; there are no accounts yet.")
]


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
    open_to_network: Open = False,
) -> None:
    """Show this machine, and nodes over SSH, at http://127.0.0.1:7070."""
    settings, path = read_config(config)
    hub = with_options(settings, host, port, data, open_to_network)
    changes: dict[str, object] = {}
    if no_local:
        changes["local"] = False
    if interval is not None:
        changes["interval_seconds"] = interval
    hub = msgspec.structs.replace(hub, hub=msgspec.structs.replace(hub.hub, **changes))
    # Loaded here: commands that only ask a hub need none of it.
    from gpulse.cli.hub_process import run_hub
    from gpulse.discovery import sources

    run_hub(hub, sources(hosts or [], path, hub))


def read_config(path: Path | None) -> tuple[Config, Path | None]:
    """The settings and the file they came from; without a name it may be missing."""
    if path is None:
        if not _DEFAULT_CONFIG.exists():
            return Config(), None
        path = _DEFAULT_CONFIG
    return load(path), path


def with_options(
    config: Config, host: str | None, port: int | None, data: Path | None, open_to_network: bool
) -> Config:
    """What the command line says wins; an address others can reach must be wanted."""
    given = {"host": host, "port": port, "data": data}
    hub = msgspec.structs.replace(config.hub, **{name: value for name, value in given.items() if value is not None})
    if not open_to_network and not _is_loopback(hub.host):
        raise ListenError(
            f"{hub.host} can be reached by others and gpulse has no accounts yet: everybody there could read every"
            " command line; if that is what you want, add --open-to-network"
        )
    return msgspec.structs.replace(config, hub=hub)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
