"""Hosts as people type them: `me@gpu[01-16,20]:2222 @rack1 [fe80::1]`, with ranges and groups of ClusterShell."""

import configparser
import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ClusterShell.Defaults import config_paths  # type: ignore[import-untyped] # it has no types
from ClusterShell.NodeSet import (  # type: ignore[import-untyped] # it has no types
    ILLEGAL_GROUP_CHARS,
    RESOLVER_NOGROUP,
    NodeSet,
    NodeSetException,
)
from ClusterShell.NodeUtils import (  # type: ignore[import-untyped] # it has no types
    GroupResolverConfig,
    GroupResolverError,
    GroupResolverSourceError,
    GroupSourceError,
)

from gpulse.clean_text import clean
from gpulse.errors import HostsError

# Far more than the fleets we are built for; a slip such as gpu[1-1000000000] must not eat the memory.
MOST_HOSTS = 200_000

_OPERATORS = "!&^"
# A broken groups.conf or file of groups comes as it is from the library that read it.
_GROUP_ERRORS = (
    GroupResolverError,
    GroupSourceError,
    configparser.Error,
    UnicodeDecodeError,
    OSError,
)
_HOST = re.compile(r"\w[\w.-]{0,252}")
_USER = re.compile(r"\w[\w.@\\+-]{0,63}")
_IPV6 = re.compile(r"\[([^\[\]]*:[^\[\]]*)\](?::(.*))?")
_STRANGE = re.compile(r"[^\w.\-\[\],/*?]")
_STRANGE_IN_GROUP = re.compile(r"[^\w.\-\[\],/*?:@+]")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(-?[0-9]{1,18})(?:-(-?[0-9]{1,18})(?:/([0-9]{1,18}))?)?")


class Address(NamedTuple):
    """Where a host is reached; None is left to what stands elsewhere: the table, the section, ssh_config."""

    host: str
    port: int | None = None
    user: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")


_Hosts = dict[tuple[str, int | None], Address]


def parse(text: str) -> list[Address]:
    """All hosts the text names, in its order, each once; HostsError where it names none or cannot be read.

    Commas and blanks join; `!` takes away, `&` keeps what is in both, `^` what is in one; from left to right.
    """
    found: _Hosts = {}
    for operator, operand in _operands(text):
        hosts = {(address.host, address.port): address for address in _expand(operand, text)}
        if operator == ",":
            _join(found, hosts, text)
        else:
            keep = operator == "&"
            kept = {key: address for key, address in found.items() if _named(key, hosts) == keep}
            if operator == "^":
                kept.update((key, address) for key, address in hosts.items() if key not in found)
            found = kept
        if len(found) > MOST_HOSTS:
            raise HostsError(f"{_quoted(text)} names more than {MOST_HOSTS} hosts")
    if not found:
        raise HostsError(f"{_quoted(text)} names no host")
    return list(found.values())


def is_host(text: str) -> bool:
    """Whether this is the name or the address of one host, and nothing else."""
    if _HOST.fullmatch(text):
        return True
    try:
        _ipv6(text, text)
    except HostsError:
        return False
    return True


def _named(key: tuple[str, int | None], hosts: _Hosts) -> bool:
    """An operand without a port speaks of the host, on whatever port."""
    return key in hosts or (key[0], None) in hosts


def _join(found: _Hosts, hosts: _Hosts, text: str) -> None:
    for key, address in hosts.items():
        known = found.setdefault(key, address)
        if known.user != address.user:
            raise HostsError(f"{_quoted(text)} names {address.host} twice, as {known} and as {address}")


def _operands(text: str) -> Iterator[tuple[str, str]]:
    """Each operand with the operator before it; blanks within brackets mean nothing."""
    operator, word, depth = ",", "", 0
    for letter in text:
        if depth == 0 and (letter == "," or letter.isspace() or letter in _OPERATORS):
            if word:
                yield operator, word
                operator, word = ",", ""
            if letter in _OPERATORS:
                if operator != ",":
                    raise HostsError(f'{_quoted(text)} has nothing between "{operator}" and "{letter}"')
                operator = letter
            elif letter == "," and operator != ",":
                raise HostsError(f'{_quoted(text)} has nothing after "{operator}"')
            continue
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise HostsError(f'{_quoted(text)} has a "{letter}" too many')
        if not letter.isspace():
            word += letter
    if depth:
        raise HostsError(f'{_quoted(text)} has a "[" without its "]"')
    if word:
        yield operator, word
    elif operator != ",":
        raise HostsError(f'{_quoted(text)} has nothing after "{operator}"')


def _expand(operand: str, text: str) -> list[Address]:
    user, at, rest = operand.rpartition("@")
    if at and (not user or user.endswith("@")):
        # What is left of the last @ is a user, unless it is the @ of a group: @rack1, me@@rack1.
        user, rest = user.removesuffix("@"), "@" + rest
    if (at and not user and not rest.startswith("@")) or (user and not _USER.fullmatch(user)):
        raise HostsError(f"{_quoted(text)}: {_quoted(user)} is no user name")
    login = user or None
    address = _IPV6.fullmatch(rest)
    if address:
        return [Address(_ipv6(address[1], text), _port(address[2], text), login)]
    if rest.count(":") > 1 and not rest.startswith("@"):
        return [Address(_ipv6(rest, text), None, login)]
    # The first colon of a group stands between the group's source and its name: @slurm:gpu.
    pattern, port = rest, None
    if rest.count(":") > rest.startswith("@"):
        pattern, _, digits = rest.rpartition(":")
        port = _port(digits, text)
    return [Address(host, port, login) for host in _nodes(pattern, text)]


def _nodes(pattern: str, text: str) -> list[str]:
    group = pattern.startswith("@")
    strange = (_STRANGE_IN_GROUP if group else _STRANGE).search(pattern)
    if strange:
        raise HostsError(f"{_quoted(text)}: {_quoted(strange[0])} cannot be part of a host's name")
    _limit(pattern, text)
    # ClusterShell wants both ends of a range with zeros to be equally long.
    pattern = _BRACKETS.sub(lambda found: "[" + ",".join(map(_even, found[1].split(","))) + "]", pattern)
    known = group or "*" in pattern or "?" in pattern
    try:
        if known or "[" in pattern:
            hosts = [str(host) for host in NodeSet(pattern, resolver=_groups() if known else RESOLVER_NOGROUP)]
        else:
            hosts = [pattern] if pattern else []
    except (NodeSetException, ValueError, AssertionError, *_GROUP_ERRORS) as error:
        # Assertions: of ranges it takes for too large, though they are not by our count.
        raise HostsError(f"{_quoted(text)}: {_reason(error, known)}") from error
    if not hosts:
        what = f"ClusterShell knows no group {pattern}" if group else "a host is missing"
        raise HostsError(f"{_quoted(text)}: {what}")
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise HostsError(f"{_quoted(text)}: {_quoted(host)} is no host name")
    return hosts


def _reason(error: Exception, groups: bool) -> str:
    words = str(error).replace('"', "") or "cannot be read"
    if isinstance(error, GroupResolverSourceError):
        what = "has no groups" if words == "<default>" else f'has no group source "{words}"'
        return f"ClusterShell {what} here; they are set up in /etc/clustershell/groups.conf"
    return f"ClusterShell's groups cannot be read: {words}" if groups else words


def _groups() -> GroupResolverConfig:
    """The site's groups and the person's; not those that ClusterShell's own package brings as an example."""
    files = [Path(name) for name in config_paths("groups.conf")]
    # The order is ClusterShell's: system, pip --user, virtual environment, person, environment variable.
    return GroupResolverConfig([str(name) for name in (files[0], *files[3:])], ILLEGAL_GROUP_CHARS)


def _limit(pattern: str, text: str) -> None:
    """Count before expanding."""
    count = 1
    for brackets in _BRACKETS.finditer(pattern):
        size = 0
        start, end = brackets.span()
        joined = pattern[max(start - 1, 0) : start].isdigit() or pattern[end : end + 1].isdigit()
        for part in brackets[1].split(","):
            match = _RANGE.fullmatch(part)
            # ClusterShell puts digits beside a bracket into its range: a99[-1-3] would be far more than five.
            if match is None or (joined and "-" in (match[1][0], (match[2] or "0")[0])):
                raise HostsError(f"{_quoted(text)}: {_quoted(part)} is no range; allowed: such as 01-16 or 1-9/2")
            size += abs(int(match[2] or match[1]) - int(match[1])) // max(int(match[3] or 1), 1) + 1
        count *= size
        # At once: of many brackets it would become a number of thousands of digits.
        if count > MOST_HOSTS:
            raise HostsError(f"{_quoted(text)} names more than {MOST_HOSTS} hosts")


def _even(part: str) -> str:
    """0001-12500 as 0001-9999,10000-12500: where the zeros are used up, numbers grow longer."""
    match = _RANGE.fullmatch(part)
    if match is None or not match[2] or not match[1].startswith("0") or match[2][0] in "-0":
        return part
    first, last, step, width = int(match[1]), int(match[2]), max(int(match[3] or 1), 1), len(match[1])
    if len(match[2]) <= width:
        return part
    parts = []
    while first <= last:
        end = min(last, 10**width - 1)
        if first <= end:
            parts.append(f"{first:0{width}}-{end:0{width}}" + (f"/{step}" if match[3] else ""))
            first += ((end - first) // step + 1) * step
        width += 1
    return ",".join(parts)


def _port(digits: str | None, text: str) -> int | None:
    if digits is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 1 <= int(digits) <= 65535:
        raise HostsError(f"{_quoted(text)}: {_quoted(digits)} is no port; allowed: 1 to 65535")
    return int(digits)


def _ipv6(written: str, text: str) -> str:
    try:
        address = ipaddress.IPv6Address(written)
    except ValueError as error:
        raise HostsError(f"{_quoted(text)}: {_quoted(written)} is no IPv6 address") from error
    if address.scope_id and not re.fullmatch(r"[\w.-]+", address.scope_id):
        raise HostsError(f"{_quoted(text)}: {_quoted(written)} is no IPv6 address")
    return written


def _quoted(text: str) -> str:
    """On one line, and not for ever: a host file may hold anything."""
    shown = clean(text)
    return f'"{shown}"' if len(shown) <= 80 else f'"{shown[:77]}…"'
