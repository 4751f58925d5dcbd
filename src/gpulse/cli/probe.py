"""gpulse probe and gpulse agent push|serve|drop: what runs on a node."""

from gpulse_probe.__main__ import main


def run(arguments: list[str]) -> int:
    # The probe has no annotations: they would cost every node memory.
    return int(main(arguments, program="gpulse probe"))  # type: ignore[no-untyped-call]


def run_agent(arguments: list[str]) -> int:
    return int(main(arguments, program="gpulse agent"))  # type: ignore[no-untyped-call] # as above
