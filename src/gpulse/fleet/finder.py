"""Finds free GPUs that fit a wish, and says in words what is missing when they do not suffice."""

import shlex
from collections.abc import Collection, Sequence

import msgspec

from gpulse.fleet.booked import NOTHING_BOOKED, Bookings, index_of, spot_of
from gpulse.fleet.names import is_model
from gpulse.fleet.sizes import gibibytes
from gpulse.fleet.views import GpuView


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How many GPUs, and what each must be."""

    n: int = 1
    # Of the card, not what is free on it: a free card has all of it free.
    memory_bytes: int | None = None
    model: str | None = None
    same_node: bool = False
    # For how long, and the login of who wants them: what others have reserved within that time is not free.
    for_seconds: float = 0.0
    me: str | None = None


class Answer(msgspec.Struct, kw_only=True):
    """The GPUs chosen, or why there are not enough."""

    found: bool
    gpus: list[GpuView]
    explanation: str
    # What to set before a program starts; null unless all GPUs are on one node.
    export: str | None = None
    node: str | None = None


def find(
    gpus: Sequence[GpuView],
    wish: Wish,
    ids: Collection[str] | None = None,
    there: int | None = None,
    bookings: Bookings = NOTHING_BOOKED,
    now: float = 0.0,
) -> Answer:
    """Choose from `gpus`, given in natural order, and of them only those in `ids`, where it is given.

    All GPUs of a node are needed to see whether it is partly used already. `there` is how many there are, where not
    all are given. What is reserved for who wants them comes first.
    """
    fitting = [gpu for gpu in gpus if gpu.counted and (ids is None or gpu.id in ids) and fits(gpu, wish)]
    free: dict[str, list[GpuView]] = {}
    own: dict[str, int] = {}
    for gpu in fitting:
        if _is_free(gpu, wish, bookings, now):
            free.setdefault(gpu.node, []).append(gpu)
            own[gpu.node] = own.get(gpu.node, 0) + (gpu.state == "reserved")
    used = {gpu.node for gpu in gpus if gpu.counted and gpu.state != "free"}
    order = {node: place for place, node in enumerate(free)}

    enough = [node for node, there in free.items() if len(there) >= wish.n]
    if enough:
        # Whole nodes stay whole, and big gaps stay big, for those who need them.
        best = min(enough, key=lambda node: (-min(own[node], wish.n), node not in used, len(free[node]), order[node]))
        return _chosen(_first(free[best], wish.n), gpus)
    if not wish.same_node and sum(map(len, free.values())) >= wish.n:
        chosen: list[GpuView] = []
        for node in sorted(free, key=lambda node: (-own[node], -len(free[node]), node not in used, order[node])):
            chosen += _first(free[node], wish.n - len(chosen))
        return _chosen(chosen, gpus)
    return Answer(
        found=False, gpus=[], explanation=_missing(len(gpus) if there is None else there, fitting, free, wish)
    )


def _is_free(gpu: GpuView, wish: Wish, bookings: Bookings, now: float) -> bool:
    if gpu.state not in ("free", "reserved"):
        return False
    spot = spot_of(gpu.node, gpu)
    if gpu.state == "reserved" and not bookings.own(spot, wish.me):
        return False
    return not bookings.kept(spot, wish.me, now + wish.for_seconds)


def _first(gpus: list[GpuView], count: int) -> list[GpuView]:
    """So many of a node's, those that are reserved for who wants them before others, in their order."""
    taken = {gpu.id for gpu in sorted(gpus, key=lambda gpu: gpu.state != "reserved")[:count]}
    return [gpu for gpu in gpus if gpu.id in taken]


def place_of(gpu: GpuView) -> str:
    """A GPU as people write it: gpu03:0, of a MIG instance gpu03:0.2."""
    return f"{gpu.node}:{index_of(gpu) or '?'}"


def describe(gpu: GpuView) -> str:
    """One line: where, what, how much memory."""
    memory = free_memory(gpu)
    words = [place_of(gpu), gpu.model or gpu.name or "unknown model"]
    if gpu.mig_profile:
        words.append(f"MIG {gpu.mig_profile}")
    if memory is not None:
        words.append(f"{gibibytes(memory)} free")
    return "  ".join(words)


def free_memory(gpu: GpuView) -> int | None:
    """Return the memory a new process could still take."""
    if gpu.memory_total_bytes is None or gpu.memory_used_bytes is None:
        return None
    return max(0, gpu.memory_total_bytes - gpu.memory_used_bytes - (gpu.memory_reserved_bytes or 0))


def fits(gpu: GpuView, wish: Wish) -> bool:
    """Whether it is such a GPU, free or not."""
    if wish.memory_bytes is not None and (gpu.memory_total_bytes or 0) < wish.memory_bytes:
        return False
    return wish.model is None or is_model(wish.model, gpu.model, gpu.name, gpu.mig_profile)


def _chosen(gpus: list[GpuView], there: Sequence[GpuView]) -> Answer:
    nodes = list(dict.fromkeys(gpu.node for gpu in gpus))
    where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes: {', '.join(nodes)}"
    return Answer(
        found=True,
        gpus=gpus,
        explanation=f"{len(gpus)} free on {where}",
        export=export_of(gpus, there) if len(nodes) == 1 else None,
        node=nodes[0] if len(nodes) == 1 else None,
    )


def export_of(gpus: list[GpuView], there: Sequence[GpuView]) -> str | None:
    # CUDA counts a MIG instance by its UUID only, and does not mix the two ways. Where a node has several models CUDA
    # counts the fastest first, so that an index may mean another card.
    models = {gpu.name or gpu.model for gpu in there if gpu.node == gpus[0].node}
    by_uuid = len(models) > 1 or any(gpu.parent_uuid or gpu.index is None for gpu in gpus)
    names = [_uuid(gpu) if by_uuid else str(gpu.index) for gpu in gpus]
    # Of two that have one name CUDA would take one, or none at all.
    told = {name: None for name in names if name is not None}
    # People give it to eval. Identities have an alphabet, and yet it is quoted: nobody has to rely on that.
    return f"CUDA_VISIBLE_DEVICES={shlex.quote(','.join(told))}" if len(told) == len(names) else None


def _uuid(gpu: GpuView) -> str | None:
    """As CUDA knows it: a card that has told none may go by its place."""
    return None if gpu.uuid and gpu.uuid.startswith(f"{gpu.node}/") else gpu.uuid


def _missing(gpus_there: int, fitting: list[GpuView], free: dict[str, list[GpuView]], wish: Wish) -> str:
    what = _wanted(wish)
    there = [gpu for on_node in free.values() for gpu in on_node]
    if not fitting:
        if not gpus_there:
            return "the fleet has no GPU yet"
        return f"no GPU{what} among the {gpus_there} there are; ask for less"
    if wish.same_node and len(there) >= wish.n:
        best = max(free, key=lambda node: len(free[node]))
        text = f"no node has {wish.n} free{what}: {best} has {len(free[best])}, {len(there)} are free on all nodes"
    else:
        text = f"{len(there)} of {wish.n} free{what}"
        if there:
            text += ": " + _few([place_of(gpu) for gpu in there])
    idle = [gpu for gpu in fitting if gpu.state == "idle"]
    if idle:
        holders = list(dict.fromkeys(use.person for gpu in idle for use in gpu.people or ()))
        text += f"; {len(idle)} more {'is' if len(idle) == 1 else 'are'} idle"
        text += f" but held by {_few(holders)}" if holders else " but hold memory"
    for_me = {gpu.id for gpu in there}
    reserved = sum(gpu.state == "reserved" and gpu.id not in for_me for gpu in fitting)
    if reserved:
        text += f"; {reserved} {'is' if reserved == 1 else 'are'} reserved"
    soon = sum(gpu.state == "free" and gpu.id not in for_me for gpu in fitting)
    if soon:
        text += f"; {soon} {'is' if soon == 1 else 'are'} free now but reserved within the time"
    unknown = sum(gpu.state == "unknown" for gpu in fitting)
    if unknown:
        text += f"; {unknown} {'is' if unknown == 1 else 'are'} unknown: whether somebody uses them could not be read"
    return text


def _wanted(wish: Wish) -> str:
    words = ""
    if wish.model is not None:
        words += f" {wish.model}"
    if wish.memory_bytes is not None:
        words += f" with {wish.memory_bytes / 1e9:g} GB"
    return words


def _few(words: list[str], most: int = 8) -> str:
    rest = len(words) - most
    return ", ".join(words[:most]) + (f" and {rest} more" if rest > 0 else "")
