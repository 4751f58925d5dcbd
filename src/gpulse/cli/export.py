"""gpulse export: the page with the data of this moment as a static site."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from gpulse.cli import figures, terminal
from gpulse.cli.client import Hub
from gpulse.cli.hub_url import DEFAULT_HUB
from gpulse.cli.moment import ask_moment
from gpulse.cli.options import Fingerprint, HubData
from gpulse.cli.up import read_config
from gpulse.errors import GpulseError, HubSilent
from gpulse.export import folder
from gpulse.export.site import build
from gpulse.fleet.sight import Level

_LEAST_SECONDS = 5.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - read from settings, not listened on


def export(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the site; made if it is not there.", show_default=False)
    ],
    hub: Annotated[
        str | None, typer.Option("--hub", metavar="URL", help=f"Address of the hub (default {DEFAULT_HUB}).")
    ] = None,
    fingerprint: Fingerprint = None,
    data: HubData = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Ask the hub that these settings are of.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="Again after each 30s, 5m or 1h, until Ctrl-C.")
    ] = None,
    sight: Annotated[
        Level, typer.Option("--sight", help="What readers see of people; full: command lines, as you see them.")
    ] = "names",
) -> None:
    """Write the page as a static site, for any web server and for file://."""
    if hub is not None and config is not None:
        raise GpulseError("--hub and --config both name the hub; give one of them")
    address = hub or (_address(config) if config is not None else os.environ.get("GPULSE_HUB") or DEFAULT_HUB)
    asked = Hub(address, fingerprint, data or (read_config(config)[0].hub.data if config is not None else None))
    if every is None:
        _export(asked, directory, sight)
        return
    seconds = figures.duration(every)
    if seconds < _LEAST_SECONDS:
        raise GpulseError(f"--every {every} is too often; allowed: {_LEAST_SECONDS:g}s or more")
    _repeat(asked, directory, seconds, sight)


def _repeat(hub: Hub, directory: Path, seconds: float, sight: Level) -> None:
    """Goes on whatever happens later: a hub comes back, a disk is emptied. The page says how old it is."""
    due, told, done = time.monotonic(), "", False
    while True:
        try:
            _export(hub, directory, sight)
            told, done = "", True
        except GpulseError as trouble:
            if not done and not isinstance(trouble, HubSilent):
                raise
            if str(trouble) != told:
                terminal.warn(f"{trouble}; trying again every {seconds:g} s")
            told = str(trouble)
        due = max(due + seconds, time.monotonic())
        time.sleep(due - time.monotonic())


def _export(hub: Hub, directory: Path, sight: Level) -> None:
    moment = ask_moment(hub, sight)
    folder.put(directory, lambda version: build(moment, version), moment.made)
    # A person likes to know; cron would send it by mail.
    if sys.stdout.isatty():
        terminal.tell(f"{directory / 'index.html'}: {figures.amount(len(moment.nodes), 'node', 'nodes')}")


def _address(config: Path) -> str:
    settings, _ = read_config(config)
    if settings.hub.port == 0:
        raise GpulseError(f"{config}: hub.port is 0, any free port; name the hub with --hub URL")
    host = _EVERYWHERE.get(settings.hub.host, settings.hub.host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls.on else 'http'}://{shown}:{settings.hub.port}{settings.web.base_path}"
