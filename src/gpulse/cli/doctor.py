"""gpulse doctor: why a node is not green, one line a check, and what helps."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpulse.cli import terminal
from gpulse.cli.options import AsJson
from gpulse.cli.up import ConfigPath, read_config
from gpulse.config import Config
from gpulse.errors import HostsError

if TYPE_CHECKING:
    from gpulse.transport.checks import Check, Examination, Finding
    from gpulse.transport.ssh import Ssh, SshSettings, SshTarget

AT_ONCE = 32
# Behind a jump host that becomes known there may be others that are not.
MOST_ROUNDS = 4
SIGNS = {"passed": "✓", "failed": "✗", "skipped": "–"}


def doctor(
    hosts: Annotated[
        list[str] | None, typer.Argument(metavar="HOSTS", help="Nodes to look at (default: those of the settings).")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Show host keys that are not known yet, and ask once whether to add them.")
    ] = False,
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Say why nodes over SSH are not green, and what helps."""
    from gpulse.transport.ssh import Ssh

    settings, targets = ssh_targets(hosts or [], *read_config(config), "doctor", also_others=False)

    async def examine_all() -> bool:
        ssh = Ssh(settings)
        try:
            trusted = await _trust(ssh, targets) if trust else {}
            return await _report(ssh, targets, trusted, as_json)
        finally:
            await ssh.close()

    if not asyncio.run(examine_all()):
        raise typer.Exit(1)


def ssh_targets(
    hosts: list[str], config: Config, path: Path | None, command: str, *, also_others: bool = True
) -> tuple["SshSettings", list["SshTarget"]]:
    """How nodes are reached by SSH, and which: those that are named, or without names those of the settings.

    `also_others`: also those that the hub reads another way.
    """
    from gpulse.discovery import sources
    from gpulse.discovery.targets import unique
    from gpulse.hub_side import ssh_settings, ssh_target

    def tell(words: str) -> None:
        terminal.warn(words)

    # Hosts that are named are meant alone.
    listed = sources(hosts, None if hosts else path, config)
    try:
        found = unique([target for source in listed for target in source.targets(tell)], tell, config.names)
    finally:
        for source in listed:
            source.close()
    if not also_others:
        others = [target.name for target in found if target.transport != "ssh"]
        found = [target for target in found if target.transport == "ssh"]
        if others:
            tell(f"{len(others)} nodes have an agent, such as {others[0]}: for these, run gpulse agent status")
    if not found:
        raise HostsError(f"there are no nodes to look at; name some: gpulse {command} 'gpu[01-16]'")
    return ssh_settings(config), [ssh_target(config, target) for target in found]


async def _report(ssh: "Ssh", targets: list["SshTarget"], known: Mapping[str, "Finding"], as_json: bool) -> bool:
    """Tell of every node; `known` has what was found already. Whether all is well."""
    good, told = True, []
    async for finding in _examined(ssh, targets, known):
        good &= finding.examination.passed
        if as_json:
            told.append(finding.examination)
            continue
        for line in lines(finding.examination):
            terminal.tell(line)
    if as_json:
        terminal.tell_record(told)
    return good


async def _examined(ssh: "Ssh", targets: list["SshTarget"], known: Mapping[str, "Finding"]) -> AsyncIterator["Finding"]:
    """Many at once, told in the order they are listed in."""
    from gpulse.transport.checks import examine

    places = asyncio.Semaphore(AT_ONCE)

    async def one(target: "SshTarget") -> "Finding":
        if target.name in known:
            return known[target.name]
        async with places:
            return await examine(ssh, target)

    tasks = [asyncio.create_task(one(target)) for target in targets]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()


async def _trust(ssh: "Ssh", targets: list["SshTarget"]) -> dict[str, "Finding"]:
    """Show every unknown key, ask once, and add them all; what was found of the nodes, as far as it still holds."""
    from gpulse.transport import host_keys

    found: dict[str, Finding] = {}
    for _round in range(MOST_ROUNDS):
        async for finding in _examined(ssh, targets, dict(found)):
            found[finding.examination.node] = finding
        unknown = {one.unknown.place.known_as(): one.unknown for one in found.values() if one.unknown}
        if not unknown:
            break
        terminal.tell("These hosts are not in known_hosts:", err=True)
        for name, host in unknown.items():
            terminal.tell(f"  {name}  {host_keys.fingerprint(host.key)}", err=True)
        terminal.tell(
            "Compare them with what the administrators publish, or with ssh-keygen -lf on the node.", err=True
        )
        if not await asyncio.to_thread(typer.confirm, f"Add all {len(unknown)}?", err=True):
            break
        for name, host in unknown.items():
            host_keys.add(host.file, name, host.key)
        found = {name: finding for name, finding in found.items() if not finding.unknown}
    return found


def lines(examination: "Examination") -> Iterator[str]:
    """What people read of a node."""
    yield f"{examination.node} ({examination.address})"
    for check in examination.checks:
        yield _line(check)
        if check.fix:
            yield f"      → {check.fix}"


def _line(check: "Check") -> str:
    from gpulse.transport.checks import TITLES

    took = f"{check.seconds * 1e3:.0f} ms" if check.seconds is not None else ""
    return f"  {SIGNS[check.outcome]} {TITLES[check.name]:14} {took:>8}  {check.detail}".rstrip()
