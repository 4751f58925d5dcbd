"""Nodes named on the command line."""

from gpulse.config.sections import Reach
from gpulse.discovery.targets import NOTHING, Problem, Target, expand


class Static:
    """Text that names nodes; HostsError at once where it names none."""

    def __init__(self, text: str, defaults: Reach = NOTHING) -> None:
        self._targets = expand(text, defaults)

    def targets(self, problem: Problem) -> list[Target]:  # noqa: ARG002 - whatever is wrong was told at once
        return self._targets

    def mark(self) -> None:
        """It never changes."""

    def close(self) -> None:
        """Nothing goes on."""
