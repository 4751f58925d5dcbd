"""What can be wrong with the node tables beyond one key: text that names no host, a host or a file named twice."""

from typing import Any

from gpulse.config import lines
from gpulse.config.checks import Tell, shown
from gpulse.config.hosts import parse
from gpulse.errors import HostsError

_NAME = "{name}"


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
    for section in ("host_files", "ini_files"):
        files: set[str] = set()
        for number, table in _tables(tables, section):
            path = table.get("path")
            if isinstance(path, str) and path in files:
                tell(
                    (section, number, "path"), f"{shown(path)} stands in a table above already; allowed: each file once"
                )
            elif isinstance(path, str):
                files.add(path)
            _check_display_name((section, number), table, True, tell)


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
