"""How far a connection is: each step has a deadline, and words for what it means when that passes."""

import asyncio
from typing import Protocol

from gpulse.errors import NodeLost


class Progress(Protocol):
    """Is told how far a connection is."""

    def within(self, seconds: float, overdue: NodeLost) -> None:
        """The step that begins now may take so long."""

    def connecting(self, detail: str) -> None:
        """In words, for people."""


class Steps:
    """The progress of a connection that nobody watches."""

    deadline: asyncio.Timeout

    def __init__(self) -> None:
        self.overdue = NodeLost("it did not answer in time")

    def within(self, seconds: float, overdue: NodeLost) -> None:
        self.overdue = overdue
        self.deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    def connecting(self, detail: str) -> None:
        """Nobody is told."""
