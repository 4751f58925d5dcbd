"""gpulse: every GPU of a cluster, live, with who uses it."""

from gpulse_probe import __version__

__all__ = ["__version__"]
