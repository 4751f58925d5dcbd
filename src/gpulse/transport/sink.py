"""Where transports put what they hear of a node."""

from typing import Protocol


class Sink(Protocol):
    """Takes a node's lines and the story of its connection. Every call returns at once and none waits."""

    def connecting(self, name: str, detail: str) -> None:
        """The node is being connected to; `detail` says how far it is."""

    def line(self, name: str, data: bytes) -> None:
        """One line of the probe's. Raises BadLine where it is no snapshot; what was known stays."""

    def down(self, name: str, reason: str) -> None:
        """The node is not reached, for a reason in words a person can act on."""

    def log(self, name: str, message: str) -> None:
        """A message for the node's log."""
