"""What may stand in gpulse.toml: every section, key, default and limit."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from gpulse.config.access import Access, Privacy
from gpulse.config.kinds import Deadline, Interval, Origin, Port, Word
from gpulse.config.reservations import Reservations
from gpulse.config.store import Store
from gpulse.config.thresholds import Thresholds
from gpulse.config.tls import Tls

# How the hub gets a node's snapshots.
Transport = Literal["ssh", "pull", "push"]
Record = Literal["A", "AAAA", "SRV"]

_URL = r"^https?://([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?(/[\w.~%-]+)*/?\Z"
_NAME = r"^[\w-]+(\.[\w-]+)*\.?\Z"


class Hub(msgspec.Struct, frozen=True):
    """[hub]: where gpulse listens and keeps its data."""

    host: Word = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="a port, 1 to 65535, or 0 for any free one")] = 7070
    data: Path = field(default_factory=lambda: Path("~/.local/share/gpulse").expanduser())
    interval_seconds: Interval = 1.0
    local: bool = True


class Web(msgspec.Struct, frozen=True):
    """[web]: what a site makes its own of the page, and where else the page may be."""

    title: Word = "gpulse"
    logo: Annotated[Path, Meta(description="the path of an .svg or .png file")] | None = None
    custom_css: Path | None = None
    base_path: Annotated[str, Meta(pattern=r"^(/[\w.~-]+)*\Z", description='"" or a path such as "/gpulse"')] = ""
    origins: tuple[Origin, ...] = ()


class Ssh(msgspec.Struct, frozen=True):
    """[ssh]: how nodes are reached, unless a node's own table says otherwise."""

    user: Word | None = None
    port: Port | None = None
    identity_files: tuple[Path, ...] = ()
    host_keys: Literal["strict", "accept-new"] = "strict"
    known_hosts: tuple[Path, ...] = ()
    config_files: tuple[Path, ...] = field(
        default_factory=lambda: (Path("~/.ssh/config").expanduser(), Path("/etc/ssh/ssh_config"))
    )
    connect_timeout_seconds: Deadline = 15.0
    login_timeout_seconds: Deadline = 30.0
    keepalive_seconds: Deadline = 15.0
    simultaneous_connects: Annotated[int, Meta(ge=1, le=10000, description="a number, 1 to 10000")] = 32
    python: Word = "python3"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where nodes stand and what people call them."""

    group: Word | None = None
    rack: Word | None = None
    display_name: Word | None = None


class Reach(Standing, frozen=True, kw_only=True):
    """What a table of nodes may say about all of them; what stands with a host itself wins."""

    transport: Transport = "ssh"
    user: Word | None = None
    port: Port | None = None
    identity_files: tuple[Path, ...] = ()
    interval_seconds: Interval | None = None
    python: Word | None = None
    token_file: Path | None = None
    tls: bool = False


class Nodes(Reach, frozen=True, kw_only=True):
    """[[nodes]]: hosts by name."""

    hosts: str | tuple[str, ...]

    def texts(self) -> tuple[str, ...]:
        return (self.hosts,) if isinstance(self.hosts, str) else self.hosts


class HostFileTable(Reach, frozen=True, kw_only=True):
    """[[host_files]]: a file with one host a line."""

    path: Path


class IniFileTable(Reach, frozen=True, kw_only=True):
    """[[ini_files]]: a config.ini with user, hosts and key_filename in [common]."""

    path: Path


class DropFolderTable(Standing, frozen=True, kw_only=True):
    """[[drop_folders]]: a folder that nodes write their snapshots into."""

    path: Path


class ConsulTable(Reach, frozen=True, kw_only=True):
    """[[consul]]: the nodes of a service in Consul."""

    service: Word
    url: Annotated[str, Meta(pattern=_URL, description='a URL such as "http://127.0.0.1:8500"')] = (
        "http://127.0.0.1:8500"
    )
    tag: Word | tuple[Word, ...] = ()
    passing_only: bool = True
    datacenter: Word | None = None
    namespace: Word | None = None
    acl_token_file: Path | None = None
    ca_file: Path | None = None
    wait_seconds: Deadline = 60.0
    refresh_seconds: Interval = 5.0

    def tags(self) -> tuple[str, ...]:
        return (self.tag,) if isinstance(self.tag, str) else self.tag


class DnsTable(Reach, frozen=True, kw_only=True):
    """[[dns]]: the addresses of a name, or the hosts of its SRV records."""

    name: Annotated[str, Meta(pattern=_NAME, description='a name such as "gpu.example.org"')]
    record: Record | tuple[Record, ...] = ("A", "AAAA")
    server: Word | None = None
    refresh_seconds: Interval = 30.0

    def records(self) -> tuple[Record, ...]:
        return (self.record,) if isinstance(self.record, str) else self.record


class Config(msgspec.Struct, frozen=True):
    """gpulse.toml."""

    hub: Hub = Hub()
    store: Store = Store()
    web: Web = Web()
    access: Access = Access()
    privacy: Privacy = Privacy()
    reservations: Reservations = Reservations()
    tls: Tls = Tls()
    ssh: Ssh = Ssh()
    nodes: tuple[Nodes, ...] = ()
    host_files: tuple[HostFileTable, ...] = ()
    ini_files: tuple[IniFileTable, ...] = ()
    drop_folders: tuple[DropFolderTable, ...] = ()
    consul: tuple[ConsulTable, ...] = ()
    dns: tuple[DnsTable, ...] = ()
    names: dict[str, Word] = {}
    people: dict[str, Word] = {}
    models: dict[str, Word] = {}
    thresholds: Thresholds = Thresholds()
