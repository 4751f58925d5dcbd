"""The floor: the NVML calls of one snapshot, recorded once and then made again every second with nothing around."""

import time

from gpulse_probe.collectors.nvidia_nvml import NvidiaNvml
from gpulse_probe.nvidia.library import Library
from gpulse_probe.page import Page
from gpulse_probe.system import System


def record() -> list[tuple[object, tuple[object, ...]]]:
    """The calls of a warm tick, as (function of the library, arguments)."""
    calls: list[tuple[object, tuple[object, ...]]] = []
    original = Library.function

    def function(library: Library, name: str, gpu: int | None = None) -> object:
        call = original(library, name, gpu)
        bare = getattr(library._library, name)

        def recorded(*arguments: object) -> None:
            calls.append((bare, arguments))
            call(*arguments)

        return recorded

    Library.function = function
    collector = NvidiaNvml(System(), Page())
    for _ in range(2):
        calls.clear()
        time.sleep(0.2)
        collector.collect(time.monotonic(), print)
    keep_alive.append(collector)
    return list(calls)


keep_alive: list[object] = []

if __name__ == "__main__":
    recorded = record()
    due = time.monotonic()
    while True:
        for bare, arguments in recorded:
            bare(*arguments)
        due += 1
        time.sleep(max(0, due - time.monotonic()))
