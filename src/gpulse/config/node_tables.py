"""What can be wrong with the node tables beyond one key: no host, a host named twice, keys that do not go together."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from gpulse.config import lines
from gpulse.config.checks import Tell, shown
from gpulse.config.hosts import parse
from gpulse.errors import HostsError

_NAME = "{name}"
# What is told of a node only where it is reached in one of these ways.
_GOES_WITH = {
    "user": ("ssh",),
    "port": ("ssh", "pull"),
    "identity_files": ("ssh",),
    "python": ("ssh",),
    "token_file": ("pull",),
    "tls": ("pull",),
}


def check_nodes(tables: dict[str, Any], places: dict[lines.Path, int], tell: Tell) -> None:
    """Tell of mistakes in what TOML gave; what is of a wrong type there was told of before."""
    seen: dict[tuple[str, int | None], lines.Path] = {}
    for number, table in _tables(tables, "nodes"):
        count = 0
        port = table["port"] if isinstance(table.get("port"), int) else None
        for where, text in _texts(table.get("hosts"), ("nodes", number, "hosts")):
            try:
                addresses = parse(text)
            except HostsError as error:
                tell(where, f'{error}; allowed: hosts, ranges and groups such as "gpu[01-16] me@gpu40:2222 @rack1"')
                continue
            count += len(addresses)
            twice: dict[lines.Path, list[str]] = {}
            for address in addresses:
                key = (address.host, address.port or port)
                first = seen.setdefault(key, where)
                if first != where:
                    twice.setdefault(first, []).append(address.host)
            for first, hosts in twice.items():
                line = f" on line {places[first]}" if first in places else ""
                more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
                tell(where, f"{hosts[0]}{more} stands{line} already; allowed: each host once")
        if count == 0 and table.get("hosts") == []:
            tell(("nodes", number, "hosts"), "the list is empty; allowed: one host or more")
        _check_display_name(("nodes", number), table, count > 1, tell)
    for section, kind in (("host_files", "file"), ("ini_files", "file"), ("drop_folders", "folder")):
        paths: set[str] = set()
        for number, table in _tables(tables, section):
            path = table.get("path")
            if isinstance(path, str) and path in paths:
                where = (section, number, "path")
                tell(where, f"{shown(path)} stands in a table above already; allowed: each {kind} once")
            elif isinstance(path, str):
                paths.add(path)
    for section in ("host_files", "ini_files", "drop_folders", "consul", "dns"):
        for number, table in _tables(tables, section):
            _check_display_name((section, number), table, True, tell)
    for section in ("nodes", "host_files", "ini_files", "consul", "dns"):
        for number, table in _tables(tables, section):
            _check_transport((section, number), table, tell)
    for number, table in _tables(tables, "consul"):
        _check_url(("consul", number, "url"), table.get("url"), tell)
    for number, table in _tables(tables, "dns"):
        _check_dns(("dns", number), table, tell)


def _tables(tables: dict[str, Any], section: str) -> list[tuple[int, dict[str, Any]]]:
    found = tables.get(section)
    return [
        (number, table)
        for number, table in enumerate(found if isinstance(found, list) else [])
        if isinstance(table, dict)
    ]


def _texts(hosts: object, where: lines.Path) -> list[tuple[lines.Path, str]]:
    if isinstance(hosts, str):
        return [(where, hosts)]
    items = hosts if isinstance(hosts, list) else []
    return [((*where, number), text) for number, text in enumerate(items) if isinstance(text, str)]


def _check_display_name(where: lines.Path, table: dict[str, Any], several: bool, tell: Tell) -> None:
    """Nodes that all have one name cannot be told apart."""
    name = table.get("display_name")
    if several and isinstance(name, str) and _NAME not in name:
        tell(
            (*where, "display_name"), f"{shown(name)} would name several nodes alike; allowed: text with {_NAME} in it"
        )


def _check_transport(where: lines.Path, table: dict[str, Any], tell: Tell) -> None:
    """A token without "pull" is a node that will be asked for a login instead: rather say so at once."""
    transport = table.get("transport", "ssh")
    for key, transports in _GOES_WITH.items():
        if key in table and transport in ("ssh", "pull", "push") and transport not in transports:
            wanted = " or ".join(f'"{word}"' for word in transports)
            tell((*where, key), f'means nothing with transport = "{transport}"; allowed: with transport = {wanted}')


def _check_url(where: lines.Path, url: object, tell: Tell) -> None:
    try:
        port = urlsplit(url).port if isinstance(url, str) else None
    except ValueError:
        port = 0
    if port == 0:
        tell(where, "has no port of 1 to 65535; allowed: such as http://127.0.0.1:8500")


def _check_dns(where: lines.Path, table: dict[str, Any], tell: Tell) -> None:
    if table.get("record") == []:
        tell((*where, "record"), "the list is empty; allowed: one record or more")
    server = table.get("server")
    if isinstance(server, str) and server and not _is_server(server):
        tell((*where, "server"), f'cannot be {shown(server)}; allowed: an address such as "10.0.0.2" or "[::1]:5353"')


def _is_server(text: str) -> bool:
    try:
        addresses = parse(text)
        ipaddress.ip_address(addresses[0].host)
    except (ValueError, HostsError):
        return False
    return len(addresses) == 1 and addresses[0].user is None
