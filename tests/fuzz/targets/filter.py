"""The filter language."""

from gpulse.errors import FilterError
from gpulse.fleet import filter as filters
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from tests.fleet.lines import gpu, process, snapshot

filters.MOST_NODES = 500
SEEDS = [
    b'free model:H100 mem>40G -user:alice "two words"',
    b"node:gpu[01-16,20]b[1-3] util>=10% temp<80c power=5w free_mem<=1.5GiB",
    b"mine job:12 rack:r1 group:g state:busy node:gpu*",
]
WORDS = ["node:", "user:", "mem>", '"', "-", "[1-9/2]", "*", "?", "state:", "free_mem>="]
_FLEET = Fleet()
_FLEET.place(Place(name="gpu1", group="g"))
_FLEET.line("gpu1", snapshot(gpu(), processes=[process(7, "GPU-0", cgroup="job_12")]))
_NODE = _FLEET.node("gpu1", detail=True)
assert _NODE is not None


def fuzz(data: bytes) -> None:
    try:
        found = filters.parse(data.decode("utf-8", "surrogateescape"), "alice")
    except FilterError as refused:
        assert str(refused)
        return
    found.matching(_NODE, _NODE.processes or ())
