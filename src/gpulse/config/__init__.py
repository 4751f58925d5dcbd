"""gpulse.toml as frozen structs: `load` reads it, and everything in it has a default."""

from gpulse.config.reading import load
from gpulse.config.sections import Config, HostFileTable, Hub, IniFileTable, Nodes, Reach, Ssh
from gpulse.config.thresholds import Thresholds

__all__ = ["Config", "HostFileTable", "Hub", "IniFileTable", "Nodes", "Reach", "Ssh", "Thresholds", "load"]
