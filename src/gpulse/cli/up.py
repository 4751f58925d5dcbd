"""gpulse up: the hub, with this machine and nodes over SSH."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from gpulse.config import Config, load
from gpulse.config.files import other_owner
from gpulse.errors import ConfigError

_DEFAULT_CONFIG = Path("gpulse.toml")
# A folder whose settings count, whoever owns them: those that are mounted into a container.
_TRUSTED = "GPULSE_TRUST_FOLDER"

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
    """Return the settings and the file they came from; without a name it may be missing.

    A file that nobody named, and that is somebody else's, is refused: settings can name programs to run.
    """
    if path is not None:
        return load(path), path
    if not _DEFAULT_CONFIG.exists():
        return Config(), None
    if _is_trusted():
        return load(_DEFAULT_CONFIG), _DEFAULT_CONFIG
    # Of a link, and of the very file that is read.
    _refuse_stranger(other_owner(_DEFAULT_CONFIG))
    return load(_DEFAULT_CONFIG, _refuse_stranger), _DEFAULT_CONFIG


def own_config() -> Config:
    """Return the settings of this folder, or the defaults if there are none or they are somebody else's."""
    try:
        return read_config(None)[0]
    except _StrangerError:
        return Config()


class _StrangerError(ConfigError):
    """Somebody else's settings that nobody named."""


def _refuse_stranger(owner: str) -> None:
    if owner:
        raise _StrangerError(
            [
                f"{_DEFAULT_CONFIG.absolute()} belongs to {owner}, and its settings could run programs as you; if you"
                f" trust it, name it: --config {_DEFAULT_CONFIG}"
            ]
        )


def _is_trusted() -> bool:
    """Whether this folder's settings count, whoever owns them: images trust a folder of theirs."""
    trusted = os.environ.get(_TRUSTED, "")
    return bool(trusted) and Path(trusted).resolve() == Path.cwd()


def with_options(config: Config, host: str | None, port: int | None, data: Path | None) -> Config:
    """What the command line says wins."""
    given = {"host": host, "port": port, "data": data}
    hub = msgspec.structs.replace(config.hub, **{name: value for name, value in given.items() if value is not None})
    return msgspec.structs.replace(config, hub=hub)
