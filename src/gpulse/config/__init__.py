"""gpulse.toml as frozen structs: `load` reads it, and everything in it has a default."""

from gpulse.config.access import Access, Oidc, Privacy, Proxy, Roles
from gpulse.config.reading import load
from gpulse.config.reservations import Limits, LimitSettings, MemberLimits, Reservations
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
from gpulse.config.store import Store, database_url
from gpulse.config.thresholds import Thresholds
from gpulse.config.tls import Tls

__all__ = [
    "Access",
    "Config",
    "ConsulTable",
    "DnsTable",
    "DropFolderTable",
    "HostFileTable",
    "Hub",
    "IniFileTable",
    "LimitSettings",
    "Limits",
    "MemberLimits",
    "Nodes",
    "Oidc",
    "Privacy",
    "Proxy",
    "Reach",
    "Record",
    "Reservations",
    "Roles",
    "Ssh",
    "Store",
    "Thresholds",
    "Tls",
    "Transport",
    "Web",
    "database_url",
    "load",
]
