"""Lines of a time when the hub was away."""

from gpulse.errors import BadLine
from gpulse.fleet.late import Late
from tests.fuzz.targets import fleet_lines

SEEDS = fleet_lines.SEEDS
WORDS = fleet_lines.WORDS


def fuzz(data: bytes) -> None:
    late = Late("x")
    for line in data.split(b"\n"):
        try:
            late.take(line)
        except BadLine as refused:
            assert str(refused)
