"""What a set of processes costs, as the kernel counts it."""

from pathlib import Path


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for parent in found:
        for task in _names(f"/proc/{parent}/task"):
            children = _read(f"/proc/{parent}/task/{task}/children")
            found += [int(child) for child in children.split()]
    return found


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of all their threads; schedstat counts nanoseconds where stat counts hundredths of a second."""
    spent = 0
    for pid in pids:
        for task in _names(f"/proc/{pid}/task"):
            spent += int(_read(f"/proc/{pid}/task/{task}/schedstat").split()[0])
    return spent / 1e9


def pss_bytes(pids: list[int]) -> int:
    """Memory they hold, each shared page counted once."""
    return _memory(pids, "Pss:")


def anonymous_bytes(pids: list[int]) -> int:
    """Memory they made themselves: what a leak grows, and other programs on the machine do not change."""
    return _memory(pids, "Anonymous:")


def _memory(pids: list[int], kind: str) -> int:
    total = 0
    for pid in pids:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(kind):
                total += int(line.split()[1]) * 1024
    return total


def _names(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def _read(path: str) -> str:
    return Path(path).read_text("ascii")
