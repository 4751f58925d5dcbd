"""A node without Python: `nvidia-smi -q -x` again and again on the same connection, made into Snapshots here."""

import asyncio
import time
from typing import Any

import asyncssh
import msgspec

import gpulse_probe
from gpulse.errors import NodeLost
from gpulse.transport import explain
from gpulse.transport.explain import Place
from gpulse.transport.feed import Feed
from gpulse.transport.remote import Remote
from gpulse_probe.nvidia_smi import document
from gpulse_probe.schema import SCHEMA

COMMAND = "nvidia-smi -q -x"
INTERVAL_SECONDS = 5.0
# A driver that wakes its cards for every question takes its time.
DEADLINE_SECONDS = 30.0


async def stream(connection: asyncssh.SSHClientConnection, node: str, feed: Feed, why: NodeLost, place: Place) -> None:
    """Feed Snapshots until the connection ends. Raises NodeLost with `why` where there is no nvidia-smi either."""
    feed.log(f"{why.what.partition(', and no')[0]}: it is read by nvidia-smi every {INTERVAL_SECONDS:g} s")
    feed.allow_silence(DEADLINE_SECONDS + INTERVAL_SECONDS)
    message = (
        f"{why.what.partition(', and no')[0]}, so it is read by nvidia-smi every {INTERVAL_SECONDS:g} s, "
        "without its host's values and the owners of processes; " + why.fix
    )
    seq = 0
    while True:
        feed.within(
            DEADLINE_SECONDS + INTERVAL_SECONDS,
            NodeLost(f"nvidia-smi did not answer within {DEADLINE_SECONDS:g} s", "see whether its driver hangs"),
        )
        printed, status, told = await _ask(connection)
        if explain.python_missing(status, told, "nvidia-smi"):
            raise why
        # The probe has no annotations: they would cost every node memory.
        # A document of some megabytes takes long to read, and others must not wait for it.
        reading = await asyncio.to_thread(document.read, printed)
        if reading.gpus is None and seq == 0 and status:
            raise explain.ended(status, None, told or printed[:2000].decode("utf-8", "replace"), "nvidia-smi", place)
        feed.line(msgspec.json.encode(snapshot(node, reading, message, seq, time.time())))
        seq += 1
        await asyncio.sleep(INTERVAL_SECONDS)


def snapshot(node: str, reading: document.Reading, message: str, seq: int, now: float) -> dict[str, Any]:
    """A Snapshot of what nvidia-smi told."""
    taken: dict[str, Any] = {
        "schema": SCHEMA,
        "node": node,
        "time": round(now, 3),
        "seq": seq,
        "probe": {
            "version": gpulse_probe.__version__,
            "interval_seconds": INTERVAL_SECONDS,
            "gpu_source": "nvidia-smi",
        },
        "reports": [{"collector": "python", "message": message}],
    }
    taken["reports"] += [{"collector": "nvidia_smi", "message": text} for text in reading.reports]
    if reading.gpus is not None:
        taken["gpus"] = reading.gpus
        if reading.uses is not None:
            taken["processes"] = _processes(reading.uses)
    return taken


def _processes(uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for use in uses:
        process = found.setdefault(use["pid"], {"pid": use["pid"], "gpus": []})
        if "name" in use:
            process["name"] = use["name"]
        process["gpus"].append({name: use[name] for name in ("uuid", "kinds", "memory_bytes") if name in use})
    return list(found.values())


async def _ask(connection: asyncssh.SSHClientConnection) -> tuple[bytes, int | None, str]:
    printed = bytearray()

    def take(data: bytes) -> None:
        printed.extend(data)
        if len(printed) > document.LARGEST_DOCUMENT:
            raise NodeLost("its nvidia-smi prints without end", "run it there by hand", explain.PROBE)

    ended = await Remote(take, lambda _text: None).run(connection, COMMAND)
    if ended.problem is not None:
        raise NodeLost(f"the connection was lost ({ended.problem})", "", explain.PROBE)
    return bytes(printed), ended.status, ended.told
