"""Which nodes the fleet has and the one way each is read: lists, tokens and folders, put together."""

import shlex
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from gpulse.config import Config, DropFolderTable
from gpulse.config.hosts import Address
from gpulse.discovery import Target
from gpulse.errors import RequestError
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.names import natural
from gpulse.fleet.places import Place
from gpulse.hub_side import hub_side_target, ssh_target
from gpulse.transport.local import LocalTarget
from gpulse.transport.push import OTHER_WAY, REVOKED, Push
from gpulse.transport.sink import Sink
from gpulse.transport.ssh import SshTarget
from gpulse.transport.supervisor import Supervisor

MOST_NAMES_TOLD = 5


class Membership:
    """A node is what a list says; else one that pushes with its token; else one whose file lies in a folder.

    Whoever finds out something new tells it here (listed, holders, claim), and the parts that read nodes are told
    what changed for them.
    """

    def __init__(
        self,
        config: Config,
        fleet: Fleet,
        supervisor: Supervisor,
        sink: Sink | None = None,
        say: Callable[[str], None] = lambda _: None,
    ):
        """`sink` takes what pushed nodes tell, if not the fleet itself; `say` tells whoever started the hub."""
        self._config = config
        self._fleet = fleet
        self._supervisor = supervisor
        self._say = say
        self.push = Push(fleet, self._admit, sink)
        self._own = socket.gethostname() if config.hub.local else None
        self._listed: dict[str, Target] = {}
        self._holders: frozenset[str] = frozenset()
        # Of those that have no token any more: whose has come to its end by itself.
        self._expired: frozenset[str] = frozenset()
        # Those that came with a token of which holders() has not told yet.
        self._admitted: set[str] = set()
        # By name, the folder its file lies in.
        self._dropped: dict[str, Path] = {}
        # Whether the lists of nodes have been read.
        self.ready = False

    # What is found out.

    def listed(self, targets: Iterable[Target]) -> None:
        """The nodes of all lists, as of now."""
        self._listed = {target.name: target for target in targets}
        self.ready = True
        self._arrange()

    def holders(self, names: frozenset[str], expired: frozenset[str] = frozenset()) -> None:
        """The nodes that have a token, as of now; `expired`: those that have none because it came to its end."""
        before, self._holders = self._holders, names
        self._admitted.clear()
        self._expired = expired
        # Before the lists are known nobody can say who of them is to push.
        self._apply(added=names - before if self.ready else frozenset())
        self._tell_ended(before - names)

    def _apply(self, added: frozenset[str]) -> None:
        """What changes with the tokens alone: all others stay as they are, and there may be thousands."""
        for name in self.push.names() - self._holders:
            if name in self._listed:
                # It stays in a list, but its agent has no token any more.
                self.push.disconnect(name, *self._why_gone(name))
            else:
                self.push.forget(name, *self._why_gone(name))
        for name in added:
            if self._read_by_hub(name) is None:
                self._dropped.pop(name, None)
                self.push.expect(self._place_of_pusher(name))

    def _tell_ended(self, names: frozenset[str]) -> None:
        for ended, how in ((names & self._expired, "came to its end"), (names - self._expired, "was revoked")):
            if ended:
                some = sorted(ended, key=natural)[:MOST_NAMES_TOLD]
                more = f" and {len(ended) - len(some):,} more" if len(ended) > len(some) else ""
                again = "gpulse token create" + (f" {shlex.quote(some[0])}" if len(ended) == 1 else "")
                self._say(f"the token of {', '.join(some)}{more} {how}: without one a node cannot push; {again}")

    def claim(self, folder: Path, name: str) -> bool:
        """Whether a node may be read from its file in this folder: no other way has it, and no other folder."""
        if self._read_by_hub(name) is not None or self._pushes(name):
            self._dropped.pop(name, None)
            return False
        if self._dropped.get(name, folder) != folder and name in self._fleet.names():
            return False
        self._dropped[name] = folder
        return True

    def over_ssh(self, name: str) -> SshTarget | None:
        """How a node is reached that the hub reads over SSH."""
        target = self._listed.get(name)
        if target is None or target.transport != "ssh" or name == self._own:
            return None
        return ssh_target(self._config, target)

    def place_of_file(self, table: DropFolderTable, name: str) -> Place:
        """Where a node stands whose file lies in this folder."""
        display_name = self._config.names.get(name) or (table.display_name or "").replace("{name}", name)
        return Place(name=name, display_name=display_name or None, group=table.group, rack=table.rack)

    # What follows from it.

    def _arrange(self) -> None:
        read = {
            name: target for name, target in self._listed.items() if target.transport != "push" and name != self._own
        }
        pushers = self._pushers()
        # First of all, as a node that does not push any more leaves the fleet with it.
        self.push.set_nodes({name: self._place_of_pusher(name) for name in pushers}, self._why_gone)
        own = [LocalTarget(self._own, self._config.hub.interval_seconds)] if self._own else []
        for one in own:
            # It may be listed as well: then its group and its name for people are told there.
            place = self._place(self._listed.get(one.name) or Target(one.name, one.name))
            self._fleet.place(msgspec.structs.replace(place, address="this machine"))
        for target in read.values():
            self._fleet.place(self._place(target))
        self._supervisor.set_targets([*own, *(hub_side_target(self._config, target) for target in read.values())])
        others = read.keys() | pushers | {one.name for one in own}
        self._dropped = {name: folder for name, folder in self._dropped.items() if name not in others}
        kept = others | self._dropped.keys()
        for name in set(self._fleet.names()) - kept:
            self._fleet.remove(name)

    def _pushers(self) -> set[str]:
        listed = {name for name, target in self._listed.items() if target.transport == "push"}
        return {name for name in self._holders | self._admitted | listed if self._read_by_hub(name) is None}

    def _pushes(self, name: str) -> bool:
        """Whether it may push, if the hub does not read it itself."""
        return name in self._holders or name in self._admitted or name in self._listed

    def _read_by_hub(self, name: str) -> str | None:
        """How the hub itself reads a node, in words; None where it does not."""
        if name == self._own:
            return "is the machine the hub runs on"
        target = self._listed.get(name)
        if target is None or target.transport == "push":
            return None
        return "is read over SSH" if target.transport == "ssh" else "is asked by the hub (pull)"

    def _admit(self, name: str) -> Place:
        """The place of a node that comes with a token of this moment."""
        place = self._place_of_pusher(name)
        self._admitted.add(name)
        return place

    def _place_of_pusher(self, name: str) -> Place:
        if how := self._read_by_hub(name):
            raise RequestError(
                409,
                "other_transport",
                f"{name} {how}, so its agent is not needed",
                'take it out of the list of nodes, or list it with transport = "push"',
            )
        place = self._place(self._listed.get(name) or Target(name, name, transport="push"))
        return msgspec.structs.replace(place, address="push")

    def _why_gone(self, name: str) -> tuple[int, str]:
        if how := self._read_by_hub(name):
            return OTHER_WAY, f"{name} {how} now"
        if name in self._expired:
            again = f"gpulse token create {shlex.quote(name)}"
            return REVOKED, f"the token of {name} came to its end; make another with: {again}"
        return REVOKED, f"the token of {name} was revoked"

    def _place(self, target: Target) -> Place:
        address = Address(target.host, target.port, target.user)
        return Place(
            name=target.name,
            display_name=target.display_name or self._config.names.get(target.name),
            group=target.group,
            rack=target.rack,
            address=f"{'http' if target.transport == 'pull' else target.transport} {address}",
            interval_seconds=target.interval_seconds or self._config.hub.interval_seconds,
        )
