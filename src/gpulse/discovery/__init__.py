"""Which nodes there are: from the command line, from gpulse.toml, the files it names, Consul and DNS."""

from gpulse.discovery.config_file import ConfigFile
from gpulse.discovery.hostfile import HostFile
from gpulse.discovery.ini import IniFile
from gpulse.discovery.static import Static
from gpulse.discovery.targets import Problem, Source, Target, expand, unique
from gpulse.discovery.watching import sources, watch

__all__ = [
    "ConfigFile",
    "HostFile",
    "IniFile",
    "Problem",
    "Source",
    "Static",
    "Target",
    "expand",
    "sources",
    "unique",
    "watch",
]
