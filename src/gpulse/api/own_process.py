"""What the hub itself takes of its machine, from /proc."""

import os
import time
from contextlib import suppress
from pathlib import Path

from gpulse import descriptors
from gpulse.api import metric_families as families
from gpulse.api.exposition import Sheet

_PROC = Path("/proc")


def add_process(sheet: Sheet) -> None:
    sheet.add(families.CPU, "", time.process_time())
    # A hub that can open no more files still tells the rest.
    with suppress(OSError):
        pages = (_PROC / "self/statm").read_text("ascii").split()
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        sheet.add(families.RESIDENT, "", int(pages[1]) * page_bytes)
        sheet.add(families.VIRTUAL, "", int(pages[0]) * page_bytes)
        sheet.add(families.OPEN_FILES, "", descriptors.open_now())
        sheet.add(families.STARTED, "", _started())
    sheet.add(families.MOST_FILES, "", descriptors.allowed())


def _started() -> float:
    """Since 1970; the kernel counts from its own start."""
    ticks = int((_PROC / "self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19])
    boot = next(line for line in (_PROC / "stat").read_text("ascii").splitlines() if line.startswith("btime"))
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
