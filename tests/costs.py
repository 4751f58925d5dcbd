"""How the cost of something grows with its input, by the CPU time of this thread: a busy machine changes nothing."""

import gc
import time
from collections.abc import Callable

DOUBLINGS = 3
# Linear is 8 after three doublings, quadratic 64. Half-way between them by ratio there is room for caches and luck.
MOST_GROWTH = 24.0
_ROUNDS = 3


def growth(work: Callable[[int], object], start: int) -> float:
    """Return how many times as long `work` takes for eight times as much; the best of some rounds each."""
    return _seconds(work, start << DOUBLINGS) / max(_seconds(work, start), 1e-6)


def _seconds(work: Callable[[int], object], size: int) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        gc.collect()
        began = time.thread_time()
        work(size)
        best = min(best, time.thread_time() - began)
    return best
