"""The gpulse probe: reads one node and prints what it saw, one Snapshot a tick."""

__version__ = "0.1.0"
