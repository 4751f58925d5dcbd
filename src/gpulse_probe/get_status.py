"""A Snapshot in the shape that `POST /get-status` has always had: whole cards, MiB, percent, null where unknown."""

import time

_MIB = 1 << 20


def get_status(snapshot):
    gpus = snapshot.get("gpus", [])
    cards = [gpu for gpu in gpus if "parent_uuid" not in gpu]
    # What runs on an instance runs on its card.
    card_of = {gpu.get("uuid"): gpu.get("parent_uuid", gpu.get("uuid")) for gpu in gpus}
    users = {}
    for process in snapshot.get("processes", []):
        for uuid, memory in _held(process, card_of).items():
            users.setdefault(uuid, []).append(_user(process, memory))
    host = snapshot.get("host", {})
    return {
        "hostname": snapshot["node"],
        "last_update": _local(snapshot["time"]),
        "ips": [
            [network["interface"], address]
            for network in host.get("networks", [])
            for address in network.get("addresses", [])
        ],
        "gpus": [_card(gpu, users.get(gpu.get("uuid"), [])) for gpu in cards],
        # Those who read it look here first: whether the node answers, and the model that it has.
        "status": True,
        "version": cards[0].get("name", "") if cards else "",
    }


def _card(gpu, users):
    # A card that hangs keeps its last values for a while: they are not those of now.
    failed = gpu.get("failed_fields", ())
    utilization, used = (
        None if name in failed else gpu.get(name) for name in ("utilization_ratio", "memory_used_bytes")
    )
    return {
        "index": gpu.get("index"),
        "name": gpu.get("name"),
        "use_mem": _mib(used),
        "tot_mem": _mib(gpu.get("memory_total_bytes")),
        "utilize": None if utilization is None else round(100 * utilization),
        "temp": gpu.get("temperature_celsius"),
        "users": users,
    }


def _held(process, card_of):
    """The memory of a process on each card, None where it is not known."""
    held = {}
    for use in process.get("gpus", []):
        card = card_of.get(use["uuid"], use["uuid"])
        known = [size for size in (held.get(card), use.get("memory_bytes")) if size is not None]
        held[card] = sum(known) if known else None
    return held


def _user(process, memory):
    return {
        "pid": process["pid"],
        "username": process.get("user"),
        "mem(MiB)": _mib(memory),
        "command": process.get("command", process.get("name")),
    }


def _mib(size):
    return None if size is None else round(size / _MIB)


def _local(moment):
    """ISO, by the node's own clock and without a zone: readers compare it with theirs as it stands."""
    return "%s.%06d" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment)), moment % 1 * 1000000)
