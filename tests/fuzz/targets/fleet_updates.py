"""What stands in an update: on arrival most of it is skipped, so that its nonsense is met when somebody reads it."""

from tests.fleet.lines import update
from tests.fuzz.looking import Looking
from tests.fuzz.targets.fleet_lines import WORDS as FIELDS

_HEAD = b'{"update":0,"seq":1,"time":1001.0,'
SEEDS = [
    update(0, 1, 1001.0, **parts)[len(_HEAD) :]
    for parts in (
        {"gpus": {"temperature_celsius": [50, 51], "fault": [None, "GPU is lost"]}},
        {"gpus": {"memory_used_bytes": [5, 6], "throttle_reasons": [["a"], []]}, "host": {"load_1m": 3.5}},
        {"processes": {"cpu_seconds_total": [1.5, None], "children": [[1], None]}, "uses": {"sm_ratio": [0.5, 1]}},
        {"host": {"networks": [{"interface": "e", "sent_bytes_total": 5}], "disks": None}, "reports": []},
    )
]
WORDS = FIELDS


def fuzz(data: bytes) -> None:
    looking = Looking()
    # Twice: rates are made of a line and the one before it.
    if looking.take(_HEAD + data) and looking.take(_HEAD + data):
        looking.look()
        looking.recover()
