"""gpulse probe: one node's Snapshot on standard output."""

from gpulse_probe.__main__ import main


def run(arguments: list[str]) -> int:
    # The probe has no annotations: they would cost every node memory.
    return int(main(arguments, program="gpulse probe"))  # type: ignore[no-untyped-call]
