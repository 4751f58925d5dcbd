"""Files in a drop folder."""

from gpulse.transport.dropped import parsed
from gpulse.transport.folder import Content
from tests.fuzz.looking import Looking
from tests.fuzz.targets import fleet_lines, gpustat

SEEDS = [fleet_lines.SEEDS[0], gpustat.SEEDS[1], fleet_lines.SEEDS[3], fleet_lines.SEEDS[0][:500]]
WORDS = [*fleet_lines.WORDS, *gpustat.WORDS]


def fuzz(data: bytes) -> None:
    one = parsed(Content(name="x", mark=(0, 0, 0), written_at=1000.0, data=data))
    assert bool(one.trouble) != bool(one.line)
    looking = Looking()
    looking.take(one.line)
    looking.look()
    looking.recover()
