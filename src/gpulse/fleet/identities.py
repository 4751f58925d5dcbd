"""The ids of GPUs, each once in the fleet: a UUID belongs to the node that told it first."""

from collections.abc import Callable
from typing import NamedTuple

from gpulse.fleet.node import Node


class Claim(NamedTuple):
    """The ids of a node's GPUs, in their order."""

    ids: list[str]
    # By the node that has it, a UUID that this one told too.
    clashes: dict[Node, str]
    # Nodes that were not there any more and lost a UUID to this one.
    robbed: list[Node]
    # By GPU, the node that has its UUID, where that is not this one.
    owners: list[Node | None]


class Identities:
    def __init__(self) -> None:
        self._owners: dict[str, Node] = {}

    def owner(self, identity: str) -> Node | None:
        return self._owners.get(identity)

    def release(self, node: Node) -> None:
        for identity in node.ids:
            if self._owners.get(identity) is node:
                del self._owners[identity]

    def claim(self, node: Node, is_there: Callable[[Node], bool]) -> Claim:
        """Ids for the GPUs the node has now: their UUIDs, but for those of others that are there still.

        Whoever has told no UUID, or that of another, is known by its place: node/index.
        """
        self.release(node)
        claim = Claim([], {}, [], [])
        own = f"{node.place.name}/"
        for place, gpu in enumerate(node.gpus):
            identity, other = gpu.uuid, None
            # Places are nodes' own: nobody else's UUID may look like one. Old drivers write MIG-GPU-…/1/0.
            if not identity or ("/" in identity and not identity.startswith((own, "MIG-"))):
                identity = None
            elif (owner := self._owners.get(identity)) is not None:
                if owner is node:
                    identity = None
                elif is_there(owner):
                    claim.clashes.setdefault(owner, identity)
                    identity, other = None, owner
                else:
                    claim.robbed.append(owner)
            if identity is None:
                identity = f"{own}{gpu.index}"
                while identity in self._owners:
                    identity += f"/{place}"
            self._owners[identity] = node
            claim.ids.append(identity)
            claim.owners.append(other)
        return claim
