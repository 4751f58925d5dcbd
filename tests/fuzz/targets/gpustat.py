"""What gpustat prints."""

import msgspec

from gpulse.fleet.fleet import BadLine
from gpulse.fleet.gpustat import to_line
from tests.fuzz.looking import Looking

SEEDS = [
    msgspec.json.encode(document)
    for document in (
        {"gpus": []},
        {
            "hostname": "x",
            "driver_version": "535",
            "query_time": "2024-05-17T14:00:01.250000",
            "gpus": [
                {
                    "index": 0,
                    "uuid": "GPU-0",
                    "name": "A",
                    "temperature.gpu": 50,
                    "fan.speed": None,
                    "utilization.gpu": "Not Supported",
                    "power.draw": 1.5,
                    "enforced.power.limit": "300",
                    "memory.used": 10,
                    "memory.total": 100,
                    "processes": [
                        {
                            "pid": 1,
                            "username": "a",
                            "command": "python",
                            "full_command": ["python", "--token", "abc"],
                            "gpu_memory_usage": 5,
                            "cpu_percent": 1.0,
                            "cpu_memory_usage": 10,
                        }
                    ],
                },
                {"index": 1, "name": "((GPU is lost))", "processes": None},
            ],
        },
    )
]
WORDS = ['"memory.used":', '"processes":', '"full_command":', '"\\udce9"', "1e308", "+02:00", "99999999999999999999"]


def fuzz(data: bytes) -> None:
    try:
        line = to_line(data, "x", now=1000.0)
    except BadLine as refused:
        assert str(refused)
        return
    looking = Looking()
    # What was made is a Snapshot, and nothing else.
    assert looking.take(line)
    looking.look()
    looking.recover()
