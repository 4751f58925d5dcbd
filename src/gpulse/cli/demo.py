"""gpulse demo: the hub with a simulated cluster."""

from pathlib import Path
from typing import Annotated

import typer

from gpulse.cli.up import Host, NoLink, Port, with_options
from gpulse.config import Config, Privacy


def demo(
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=20_000, help="How many nodes.")] = 40,
    host: Host = None,
    port: Port = None,
    data: Annotated[
        Path | None,
        # Not by a variable that names the folder of a real hub.
        typer.Option("--data", metavar="DIR", help="Folder for what is kept (default ~/.local/share/gpulse/demo)."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another cluster for another number.")] = 1,
    no_link: NoLink = False,
) -> None:
    """Show a simulated cluster at http://127.0.0.1:7070."""
    from gpulse.cli.hub_process import run_hub
    from gpulse.simulate.transport import scene

    # Its people are invented: there is nothing to hide of them, and nothing to keep among real accounts.
    config = Config(privacy=Privacy(others="full"))
    hub = with_options(config, host, port, data or config.hub.data / "demo")
    run_hub(hub, [], scene(nodes, seed), link=not no_link)
