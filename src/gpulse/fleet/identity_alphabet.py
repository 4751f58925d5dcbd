"""The characters an identity may have, checked where a snapshot enters the fleet.

An identity is what people type and paste: the UUID of a GPU or of its card, a PCI bus id, a serial number, a MIG
profile, the id of an NVLink domain or of a boot. Vendors write GPU-5a…, MIG-GPU-5a…/1/0, 0x1f2e…, 00000000-0000-…,
0000:17:00.0, 1g.10gb+me or PCB052022-0079. Everything else is dropped and reported; the rest of the snapshot stays. So
is the number of a GPU that another one has already: a reservation of that number, or CUDA, would mean either.
"""

import re
from collections.abc import Callable
from operator import attrgetter
from typing import cast

from gpulse.clean_text import clean
from gpulse.fleet.model import Gpu, Snapshot

LONGEST_IDENTITY = 256
# A dash in front would make it an option of the program it is given to.
_IDENTITY = re.compile(r"[A-Za-z0-9][\w.:/+-]*", re.ASCII)
_IDENTITIES = re.compile(rf"(?:[A-Za-z0-9][\w.:/+-]{{0,{LONGEST_IDENTITY - 1}}}\n)*", re.ASCII)
_MOST_REPORTED = 8
_FIELDS = ("pci_bus_id", "serial", "mig_profile", "fabric_cluster_uuid")
_all_fields = attrgetter("uuid", "parent_uuid", *_FIELDS)


def is_identity(text: str) -> bool:
    """Whether the text can be an identity."""
    return len(text) <= LONGEST_IDENTITY and _IDENTITY.fullmatch(text) is not None


def _is_uuid(text: str, node: str) -> bool:
    """Whether it is a UUID, or the place that a GPU without one goes by; node names have an alphabet of their own."""
    return is_identity(text) or (len(text) <= LONGEST_IDENTITY and is_identity(text.removeprefix(f"{node}/")))


def check_identities(node: str, snapshot: Snapshot) -> list[str]:
    """Drop every identity that cannot be one; return a sentence about each for the node's reports.

    A GPU that loses its UUID goes by its place, node/index, and so do the processes on it and its MIG instances.
    """
    if _all_good(snapshot):
        return []
    refused: list[str] = []
    if snapshot.boot_id is not None and not is_identity(snapshot.boot_id):
        refused.append(_refusal("boot_id", snapshot.boot_id))
        snapshot.boot_id = None
    places: dict[str, str] = {}
    for at, gpu in enumerate(snapshot.gpus or ()):
        tell = _teller(refused, gpu, at)
        if gpu.uuid is not None and not _is_uuid(gpu.uuid, node):
            tell("uuid", gpu.uuid)
            place = f"{node}/{at if gpu.index is None else gpu.index}"
            if gpu.mig_index is not None:
                place += f".{gpu.mig_index}"
            places.setdefault(gpu.uuid, place)
            gpu.uuid = place
        for field in _FIELDS:
            text = getattr(gpu, field)
            if text is not None and not is_identity(text):
                tell(field, text)
                setattr(gpu, field, None)
    _check_numbers(snapshot, refused)
    _check_parents(node, snapshot, places, refused)
    for process in snapshot.processes or ():
        for use in process.gpus or ():
            if use.uuid is not None and not _is_uuid(use.uuid, node):
                # It stays in its row, as updates count the uses of a snapshot. Of no card: it is on one without a UUID.
                use.uuid = places.get(use.uuid)
    if len(refused) > _MOST_REPORTED:
        refused[_MOST_REPORTED:] = [f"{len(refused) - _MOST_REPORTED} more identities are left out"]
    return refused


def _all_good(snapshot: Snapshot) -> bool:
    """Whether all identities are some. Those of most snapshots are, and one look at all of them costs least."""
    texts = {use.uuid for process in snapshot.processes or () for use in process.gpus or ()}
    texts.add(snapshot.boot_id)
    for gpu in snapshot.gpus or ():
        texts.update(_all_fields(gpu))
    texts.discard(None)
    numbers = [number for gpu in snapshot.gpus or () if (number := _number(gpu)) is not None]
    if len(set(numbers)) < len(numbers):
        return False
    lines = "\n".join([*cast(set[str], texts), ""])
    # A line break of somebody else's would make one text look like two.
    return _IDENTITIES.fullmatch(lines) is not None and lines.count("\n") == len(texts)


def _number(gpu: Gpu) -> tuple[int, int | None] | None:
    """Return what people call it on its node; None for one that has no number, or shares that of its card."""
    if gpu.index is None or (gpu.parent_uuid is not None and gpu.mig_index is None):
        return None
    return gpu.index, None if gpu.parent_uuid is None else gpu.mig_index


def _check_numbers(snapshot: Snapshot, refused: list[str]) -> None:
    seen: set[tuple[int, int | None]] = set()
    for gpu in snapshot.gpus or ():
        number = _number(gpu)
        if number is None:
            continue
        if number in seen:
            refused.append(f"GPU {gpu.index}: another GPU has this number already, so this one has none")
            gpu.index = None
        seen.add(number)


def _check_parents(node: str, snapshot: Snapshot, places: dict[str, str], refused: list[str]) -> None:
    gpus = snapshot.gpus or []
    for at, gpu in enumerate(gpus):
        if gpu.parent_uuid is None or _is_uuid(gpu.parent_uuid, node):
            continue
        if gpu.parent_uuid not in places:
            _teller(refused, gpu, at)("parent_uuid", gpu.parent_uuid)
            # An instance has the number of its card.
            cards = (one.uuid for one in gpus if one.index == gpu.index and one.parent_uuid is None)
            places[gpu.parent_uuid] = next(cards, None) or f"{node}/{gpu.index}"
        gpu.parent_uuid = places[gpu.parent_uuid]


def _teller(refused: list[str], gpu: Gpu, at: int) -> Callable[[str, str], None]:
    called = f"GPU {at if gpu.index is None else gpu.index}"
    return lambda field, text: refused.append(f"{called}: {_refusal(field, text)}")


def _refusal(field: str, text: str) -> str:
    shown = clean(text[:80]) + ("…" if len(text) > 80 else "")
    return f'{field} "{shown}" is left out: it is too long, or has characters no identity has; see what sends it'
