"""What a file in a drop folder says: a Snapshot of the node it is named after, or what gpustat prints there."""

from collections.abc import Collection
from pathlib import Path

import msgspec

from gpulse.config.hosts import is_host
from gpulse.errors import BadLine
from gpulse.fleet import gpustat
from gpulse.transport import folder
from gpulse.transport.folder import Content, Mark
from gpulse.transport.snapshot_head import read_head


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


def read(path: Path, names: Collection[str]) -> list[Dropped]:
    """These files of the folder; those that are gone are left out. It blocks."""
    return [parsed(content) for content in folder.read(path, names)]


def parsed(content: Content) -> Dropped:
    seen = Dropped(content.name, content.mark, content.written_at)
    if not is_host(content.name):
        words = f"{content.name!r:.100} is no name of a node; call the file by its node's name, such as gpu01"
        return msgspec.structs.replace(seen, trouble=f"{words}{folder.ENDING}")
    if content.trouble:
        return msgspec.structs.replace(seen, trouble=content.trouble, unfinished=content.passing)
    try:
        head = read_head(content.data)
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
        interval_seconds=head.interval_seconds,
        boot_id=head.boot_id,
    )
