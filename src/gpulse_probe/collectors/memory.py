"""Main memory and swap, from /proc/meminfo."""

TOTAL, FREE, AVAILABLE = b"MemTotal:", b"MemFree:", b"MemAvailable:"
BUFFERS, CACHED, RECLAIMABLE = b"Buffers:", b"Cached:", b"SReclaimable:"
SWAP_TOTAL, SWAP_FREE = b"SwapTotal:", b"SwapFree:"


class Memory:
    name = "memory"

    def __init__(self, system):
        self._system = system

    def collect(self, _now, _report):
        return parse_meminfo(self._system.read_bytes("/proc/meminfo"))


def parse_meminfo(data):
    """The fields the text holds; one that cannot be read is left out."""
    data = b"\n" + data
    total = _size(data, TOTAL)
    available = _available(data)
    cached = [_size(data, key) for key in (CACHED, BUFFERS, RECLAIMABLE)]
    swap_total, swap_free = _size(data, SWAP_TOTAL), _size(data, SWAP_FREE)
    fields = {}
    if total is not None:
        fields["memory_total_bytes"] = total
    if available is not None:
        fields["memory_available_bytes"] = available
    if total is not None and available is not None:
        fields["memory_used_bytes"] = max(0, total - available)
    if cached[0] is not None:
        fields["memory_cached_bytes"] = sum(size or 0 for size in cached)
    if swap_total is not None:
        fields["swap_total_bytes"] = swap_total
        if swap_free is not None:
            fields["swap_used_bytes"] = max(0, swap_total - swap_free)
    return fields


def _available(data):
    available = _size(data, AVAILABLE)
    if available is not None:
        return available
    # Before Linux 3.14 the kernel gave no estimate; this is what free(1) took for it.
    free, buffers, cached = (_size(data, key) for key in (FREE, BUFFERS, CACHED))
    if free is None:
        return None
    return free + (buffers or 0) + (cached or 0)


def _size(data, key):
    """The bytes a line "Key:   123 kB" tells of, None where there is no such line."""
    start = data.find(b"\n" + key)
    if start < 0:
        return None
    start += 1 + len(key)
    end = data.find(b"\n", start)
    fields = data[start : end if end >= 0 else len(data)].split()
    if not fields or len(fields[0]) > 20 or not fields[0].isdigit():
        return None
    return int(fields[0]) * 1024
