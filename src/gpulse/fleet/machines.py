"""Machines listed under more than one name: the name that reported first counts, the others are its doubles.

Two nodes are the same machine if the kernel's id of this boot is the same, and they share a GPU, or have the same
hostname and no GPUs. Containers of one machine that have different GPUs are not the same.
"""

from collections.abc import Callable

from gpulse.fleet.booked import Spot, spot_of
from gpulse.fleet.node import Node

# The kernel's ids have 36 characters; a longer one is nonsense.
_LONGEST_ID = 64
_Key = tuple[str, str]


class Machines:
    """Nodes without GPUs by machine, and how many nodes are doubles; identities.py knows who shares a GPU."""

    def __init__(self) -> None:
        self._without_gpus: dict[_Key, list[Node]] = {}
        self._doubles: set[Node] = set()

    @property
    def doubles(self) -> int:
        return len(self._doubles)

    def set_double(self, node: Node, other: Node | None) -> bool:
        """Note which node this one is a double of; return whether that changed."""
        name = other.place.name if other is not None else None
        if name == node.same_machine_as:
            return False
        node.same_machine_as = name
        if name is None:
            self._doubles.discard(node)
        else:
            self._doubles.add(node)
        return True

    def release(self, node: Node) -> list[Node]:
        """Forget the node; return its doubles, one of which counts from now on."""
        self.set_double(node, None)
        self._leave(node)
        return [double for double in self._doubles if double.same_machine_as == node.place.name]

    def twin(self, node: Node, is_there: Callable[[Node], bool]) -> Node | None:
        """Find the node without GPUs that is the same machine as this one, and was there first."""
        key = None if node.count else _key(node)
        if key != node.machine_key:
            self._leave(node)
            node.machine_key = key
            if key is not None:
                self._without_gpus.setdefault(key, []).append(node)
        if key is None:
            return None
        same = self._without_gpus[key]
        if same[0] is not node and not is_there(same[0]):
            # Whoever counted is gone: this one counts from now on, also when the other returns.
            same.remove(node)
            same.insert(0, node)
        return None if same[0] is node else same[0]

    def counted_places(self, owner: Callable[[str], Node | None]) -> dict[Spot, Spot]:
        """Map the place of each GPU that is not counted under its name to its place under the name that counts it."""
        found: dict[Spot, Spot] = {}
        places: dict[Node, dict[str | None, Spot]] = {}
        for double in self._doubles:
            for gpu, elsewhere in zip(double.gpus, double.elsewhere, strict=False):
                counts = owner(gpu.uuid) if elsewhere and gpu.uuid else None
                if counts is None:
                    continue
                if counts not in places:
                    places[counts] = {one.uuid: spot_of(counts.place.name, one) for one in counts.gpus}
                place = places[counts].get(gpu.uuid)
                if place is not None:
                    found[spot_of(double.place.name, gpu)] = place
        return found

    def _leave(self, node: Node) -> None:
        if node.machine_key is None:
            return
        others = self._without_gpus[node.machine_key]
        others.remove(node)
        if not others:
            del self._without_gpus[node.machine_key]
        node.machine_key = None


def boot_of(node: Node) -> str | None:
    boot = node.snapshot.boot_id if node.snapshot is not None else None
    return boot if boot and len(boot) <= _LONGEST_ID else None


def _key(node: Node) -> _Key | None:
    boot = boot_of(node)
    hostname = node.snapshot.host.hostname if node.snapshot is not None and node.snapshot.host is not None else None
    return (boot, hostname) if boot and hostname else None
