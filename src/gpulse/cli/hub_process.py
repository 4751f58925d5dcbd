"""Runs the hub in this process: says where it is, then serves until it is told to end."""

import os
import sys

import typer

from gpulse.api.server import listen, url_of
from gpulse.app import Hub
from gpulse.config import Config
from gpulse.discovery import Source
from gpulse.simulate.transport import Scene


def run_hub(config: Config, sources: list[Source], scene: Scene | None = None) -> None:
    hub = Hub(config, say)
    listener = listen(config.hub.host, config.hub.port)
    # The first line, for people and for scripts that wait for it.
    typer.echo(url_of(listener, config.web.base_path))
    # uvloop's loop costs half of asyncio's for thousands of connections.
    import uvloop

    uvloop.run(hub.run(listener, sources, scene))
    # All is ended in order; a thread that still waits for a name server must not keep the person waiting.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def say(sentence: str) -> None:
    typer.echo(f"gpulse: {sentence}", err=True)
