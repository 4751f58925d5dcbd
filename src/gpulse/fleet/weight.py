"""What a line may weigh before it is decoded: a record of two bytes on the wire takes hundreds in memory."""

from gpulse.errors import BadLine
from gpulse.fleet.updates import UPDATE

# A text with no more bytes than this cannot hold too much of anything.
_LIGHT = 64 * 1024
# The largest node that is believed has less: its GPUs, and its processes with what each holds.
_MOST_RECORDS = 20_000
# An update names columns, and the fields of disks and networks.
_MOST_NAMES = 20_000
# Of a GPU or process; most have one, lists of texts have some.
_MOST_VALUES = 100


def check_weight(line: bytes) -> None:
    """BadLine where the line would take far more memory and time than a node can have to tell."""
    if len(line) <= _LIGHT:
        return
    # What is within texts counts too; it would take thousands of such texts.
    records = line.count(b"{")
    if records > _MOST_RECORDS:
        raise BadLine(f"{records:,} records in one line are not believed; at most {_MOST_RECORDS:,} are read")
    if line.startswith(UPDATE):
        names = line.count(b":")
        if names > _MOST_NAMES:
            raise BadLine(f"{names:,} names in an update are not believed; at most {_MOST_NAMES:,} are read")


def is_too_heavy(column: bytes, count: int) -> bool:
    """Whether a column has far more than a value for each of so many."""
    return len(column) > _LIGHT and column.count(b",") > count * _MOST_VALUES
