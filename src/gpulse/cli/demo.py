"""gpulse demo: the hub with a simulated cluster."""

from typing import Annotated

import typer

from gpulse.cli.up import Data, Host, Open, Port, with_options
from gpulse.config import Config


def demo(
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=20_000, help="How many nodes.")] = 40,
    host: Host = None,
    port: Port = None,
    data: Data = None,
    seed: Annotated[int, typer.Option("--seed", help="Another cluster for another number.")] = 1,
    open_to_network: Open = False,
) -> None:
    """Show a simulated cluster at http://127.0.0.1:7070."""
    from gpulse.cli.hub_process import run_hub
    from gpulse.simulate.transport import scene

    run_hub(with_options(Config(), host, port, data, open_to_network), [], scene(nodes, seed))
