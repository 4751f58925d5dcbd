"""The filter language."""

from gpulse.errors import FilterError
from gpulse.fleet.filter import parse
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search
from tests.fleet.lines import gpu, process, snapshot

SEEDS = [
    b'free model:H100 mem>40G -user:alice "two words"',
    b"node:gpu[01-16,20]b[1-3] util>=10% temp<80c power=5w free_mem<=1.5GiB",
    b"mine job:12 rack:r1 group:g state:busy node:gpu*",
    b"flag:hot,throttled -flag:vanished",
]
WORDS = ["node:", "user:", "mem>", '"', "-", "[1-9/2]", "*", "?", "state:", "flag:", "hot,", "free_mem>="]
_FLEET = Fleet()
_FLEET.place(Place(name="gpu1", group="g"))
_FLEET.line("gpu1", snapshot(gpu(), processes=[process(7, "GPU-0", cgroup="job_12")]))
_FLEET.place(Place(name="gpu2"))


def fuzz(data: bytes) -> None:
    try:
        found = parse(data.decode("utf-8", "surrogateescape"), "alice")
    except FilterError as refused:
        assert str(refused)
        return
    assert len(Search(_FLEET, found).all()) <= 2
