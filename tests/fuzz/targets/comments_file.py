"""Files of other monitors that admins import."""

from datetime import datetime
from zoneinfo import ZoneInfo

from gpulse.errors import RequestError
from gpulse.reservations.comments import decode, read
from gpulse.reservations.moving_in import plan

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=ZoneInfo("Europe/Berlin"))
SEEDS = [
    b'{"gpu1": [ // all\n{"name": "ann", "date": "2026-12-01 18:00", "comment": "http://x"}, {}, null], "gpu2": []}',
    b'{"gpu2": {"23": {"name": "P\xe8re", "date": "2018-07-01", "comment": "\\ud800"}, "0": {"name": 1}},}',
    b'{"gpu1": {"%s": {"name": "ann", "date": "2026-12-01 18:00"}}}' % (b"9" * 5000),
    b'{"gpu1": {"0": {"name": "a", "name": "b"}, "0.2": "x"}} /* end */',
]
WORDS = ["//", "/*", "*/", '\\"name\\"', '\\"date\\"', "null", "\\\\u0000"]


def fuzz(data: bytes) -> None:
    try:
        entries = read(decode(data))
    except RequestError as refused:
        assert refused.message.startswith("line ")
        return
    steps = plan(entries, {"gpu1": ["0", "0.2"], "gpu2": ["23"]}, (), NOW, {})
    assert [step.entry for step in steps] == entries
    assert all(step.message or step.outcome == "empty" for step in steps)
