"""Lines of a node, Snapshots and updates, one after another."""

from gpulse_probe.schema import RECORDS
from tests.fleet.lines import gpu, process, snapshot, update
from tests.fuzz.looking import BASE, Looking

SEEDS = [
    BASE,
    BASE + b"\n" + update(0, 1, 1001.0, gpus={"utilization_ratio": [0.5, None]}, host={"load_1m": 2.0}),
    snapshot(
        gpu(xid_events=[{"time": 999.0, "xid": 79}], throttle_reasons=["hw_slowdown"], fault="GPU is lost"),
        gpu(1, mig_enabled=True),
        gpu(2, parent_uuid="GPU-1", mig_index=0),
        processes=[process(7, "GPU-0", vanished=True, children=[8], cgroup="job_12")],
        host={"disks": [{"mount": "/"}], "networks": [{"addresses": ["::1"], "received_bytes_total": 1}]},
        reports=[{"collector": "a", "message": "b"}],
    ),
    update(0, 1, 1001.0, processes={"state": ["R", "S"]}, uses={"memory_bytes": [1, None]})
    + b"\n"
    + update(0, 2, 1002.0, reports=[{"collector": "x"}], devices_age_seconds=1),
]
WORDS = [f'"{field.name}":' for record in RECORDS.values() for field in record]
WORDS += ["null", "1e308", "-1", "18446744073709551616", '"\\ud800"', "[null,null]", "true", '{"update":0,']
MOST_LINES = 6


def fuzz(data: bytes) -> None:
    looking = Looking()
    for line in data.split(b"\n")[:MOST_LINES]:
        if looking.take(line):
            looking.look()
    looking.look()
    looking.recover()
