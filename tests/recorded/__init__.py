"""Machines written down by us: for each a tree of the files the collectors read, and expected.json beside it.

`statvfs` in a tree holds sizes (total, free and available bytes, mount point), `netlink/addresses` the
kernel's answer about addresses, `proc/sys/kernel/arch` the machine type.
"""

import json
from pathlib import Path
from typing import Any

from gpulse_probe.system import System

FOLDER = Path(__file__).resolve().parent
MACHINES = sorted(path.parent.name for path in FOLDER.glob("*/expected.json"))


def machine(name: str) -> System:
    return System(str(FOLDER / name / "root"))


def expected(name: str, collector: str) -> Any:
    return json.loads((FOLDER / name / "expected.json").read_text())[collector]
