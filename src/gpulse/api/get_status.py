"""All nodes in the shape that `POST /get-status` has always had: whole cards, MiB, percent, null where unknown."""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import OfPeople
from gpulse.api.selection import each_node
from gpulse.fleet.views import GpuState, GpuView, NodeView, ProcessView

_MIB = 1 << 20


class StatusRequest(msgspec.Struct, kw_only=True):
    """Who asks: a key stands for the password. Where everybody may read, what it says makes no difference."""

    passwd: str = ""


class CardUser(msgspec.Struct, kw_only=True):
    """A process on a card."""

    pid: int | None
    username: str | None
    memory: int | None = msgspec.field(name="mem(MiB)")
    command: str | None


class CardStatus(msgspec.Struct, kw_only=True):
    """A whole card; its figures are null while its node is not up, its `users` where nobody knows who is on it."""

    index: int | None
    name: str | None
    use_mem: int | None
    tot_mem: int | None
    utilize: int | None
    temp: int | None
    users: list[CardUser] | None
    # As in the rest of the API; null for a card that is split, or that another node of the same machine counts.
    state: GpuState | None


class NodeStatus(msgspec.Struct, kw_only=True):
    """A node: `status` says whether it is up, `reason` why not, `version` which cards it has."""

    hostname: str
    last_update: str | None
    ips: list[tuple[str, str]]
    gpus: list[CardStatus]
    status: bool
    version: str
    reason: str


class ClusterStatus(msgspec.Struct, kw_only=True):
    """All nodes."""

    nodes: list[NodeStatus] = msgspec.field(name="Nodes")


async def get_status(
    hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming
) -> dict[str, list[msgspec.Raw]]:
    del query, path
    encode = msgspec.json.Encoder().encode
    # A node at a time, so that a large fleet does not keep the loop at the end.
    nodes = each_node(hub.fleet, hub.fleet.names(), incoming.sight, True)
    return {"Nodes": [msgspec.Raw(encode(_node(node))) async for node in nodes]}


def _node(node: NodeView) -> NodeStatus:
    cards = [gpu for gpu in node.gpus if gpu.parent_uuid is None]
    up = node.state == "up"
    users = _users(node.gpus, node.processes or ()) if up else {}
    # What runs on an instance runs on its card.
    unknown = {gpu.parent_uuid or gpu.uuid for gpu in node.gpus if gpu.people is None}
    networks = (node.host.networks if node.host is not None else None) or ()
    return NodeStatus(
        hostname=node.name,
        last_update=_moment(node.age_seconds),
        ips=[(network.interface or "", address) for network in networks for address in network.addresses or ()],
        gpus=[_card(gpu, up, users.get(gpu.uuid, None if up and gpu.uuid in unknown else [])) for gpu in cards],
        status=up,
        version=(cards[0].name or "") if cards else "",
        reason=node.reason,
    )


def _card(gpu: GpuView, up: bool, users: list[CardUser] | None) -> CardStatus:
    # A card that hangs keeps its last values for a while: they are not those of now.
    failed = gpu.failed_fields or ()
    return CardStatus(
        index=gpu.index,
        name=gpu.name,
        use_mem=_mib(gpu.memory_used_bytes) if up and "memory_used_bytes" not in failed else None,
        tot_mem=_mib(gpu.memory_total_bytes),
        utilize=_percent(gpu.utilization_ratio) if up and "utilization_ratio" not in failed else None,
        temp=gpu.temperature_celsius if up else None,
        users=users,
        state=gpu.state,
    )


def _users(gpus: Iterable[GpuView], processes: Iterable[ProcessView]) -> dict[str | None, list[CardUser]]:
    """By card; what runs on an instance runs on its card."""
    card_of = {gpu.uuid: gpu.parent_uuid or gpu.uuid for gpu in gpus}
    found: dict[str | None, list[CardUser]] = {}
    for process in processes:
        held: dict[str | None, int | None] = {}
        for use in process.gpus or ():
            if use.uuid not in card_of:
                continue
            card = card_of[use.uuid]
            known = [size for size in (held.get(card), use.memory_bytes) if size is not None]
            held[card] = sum(known) if known else None
        for card, size in held.items():
            command = process.command or process.name
            user = CardUser(pid=process.pid, username=process.user, memory=_mib(size), command=command)
            found.setdefault(card, []).append(user)
    return found


def _percent(ratio: float | None) -> int | None:
    # A node may send any number; a hundred times it may be none.
    return None if ratio is None or not abs(ratio) < 1e300 else round(100 * ratio)


def _mib(size: int | None) -> int | None:
    # In whole numbers: a node may send any, also larger than a float can be.
    return None if size is None else (size + _MIB // 2) // _MIB


def _moment(age: float | None) -> str | None:
    """ISO by the hub's clock and without a zone: readers compare it with their own as it stands."""
    return None if age is None else datetime.fromtimestamp(time.time() - age).isoformat(timespec="microseconds")


ENDPOINTS = (
    Endpoint(
        path="/get-status",
        name="getStatus",
        summary="All nodes in the shape that older monitors read; the password is a key.",
        answer=ClusterStatus,
        handle=get_status,
        may="read",
        query=OfPeople,
        of_people=True,
        method="POST",
        body=StatusRequest,
        same_for_all=True,
        key_in_body=lambda told: told.passwd,
        errors=(400, 406, 408, 413, 415),
    ),
)
