"""What a file in a drop folder says: a Snapshot of the node it is named after, or what gpustat prints there."""

from collections.abc import Collection
from pathlib import Path

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet import gpustat
from gpulse.transport import folder
from gpulse.transport.folder import Content, Mark


class Dropped(msgspec.Struct, frozen=True):
    """One file: a line for the fleet, or why it is none.

    `unfinished`: it may become one, as somebody may still be writing it.
    """

    name: str
    mark: Mark
    written_at: float
    line: bytes = b""
    interval_seconds: float | None = None
    boot_id: str | None = None
    trouble: str = ""
    unfinished: bool = False


class _Probe(msgspec.Struct):
    interval_seconds: float | None = None


class _Head(msgspec.Struct):
    schema: int | None = None
    node: str | None = None
    boot_id: str | None = None
    probe: _Probe | None = None


_decode = msgspec.json.Decoder(_Head).decode


def read(path: Path, names: Collection[str]) -> list[Dropped]:
    """These files of the folder; those that are gone are left out. It blocks."""
    return [parsed(content) for content in folder.read(path, names)]


def parsed(content: Content) -> Dropped:
    seen = Dropped(content.name, content.mark, content.written_at)
    if content.trouble:
        return msgspec.structs.replace(seen, trouble=content.trouble, unfinished=content.passing)
    try:
        head = _decode(content.data)
    except msgspec.ValidationError as problem:
        return msgspec.structs.replace(seen, trouble=f"it is no snapshot: {problem}")
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return msgspec.structs.replace(seen, trouble=f"it is not JSON: {problem}", unfinished=True)
    except RecursionError:
        return msgspec.structs.replace(seen, trouble="it is nested too deeply")
    if head.schema is None and head.node is None:
        try:
            return msgspec.structs.replace(seen, line=gpustat.to_line(content.data, content.name))
        except BadLine as problem:
            words = f"it is neither a snapshot nor what gpustat --json prints: {problem}"
            return msgspec.structs.replace(seen, trouble=words)
    if head.node != content.name:
        words = (
            f"it is of the node {head.node!r:.100}, and a file must have its node's name: start its agent with --node"
        )
        return msgspec.structs.replace(seen, trouble=f"{words} {content.name}, or let it write another file")
    return msgspec.structs.replace(
        seen,
        line=content.data,
        interval_seconds=head.probe.interval_seconds if head.probe else None,
        boot_id=head.boot_id,
    )
