"""gpulse.toml as frozen structs: `load` reads it, and everything in it has a default."""

from gpulse.config.reading import load
from gpulse.config.sections import (
    Config,
    ConsulTable,
    DnsTable,
    DropFolderTable,
    HostFileTable,
    Hub,
    IniFileTable,
    Nodes,
    Reach,
    Record,
    Ssh,
    Transport,
    Web,
)
from gpulse.config.thresholds import Thresholds

__all__ = [
    "Config",
    "ConsulTable",
    "DnsTable",
    "DropFolderTable",
    "HostFileTable",
    "Hub",
    "IniFileTable",
    "Nodes",
    "Reach",
    "Record",
    "Ssh",
    "Thresholds",
    "Transport",
    "Web",
    "load",
]
