"""The checker the other tests rely on must itself find what is wrong."""

import pytest

from tests.conform import conforms


def test_a_sound_record_has_no_complaints():
    gpu = {"index": 0, "uuid": "GPU-1", "power_watts": 70, "utilization_ratio": 0.5, "throttle_reasons": ["gpu_idle"]}
    assert conforms("Gpu", gpu) == []
    assert conforms("Snapshot", {"gpus": [gpu], "host": {"load_1m": 0.1}, "reports": []}) == []


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"colour": 1}, "Gpu.colour: not in the schema"),
        ({"index": 1.0}, "Gpu.index: 1.0 is not int"),
        ({"index": True}, "Gpu.index: True is not int"),
        ({"index": None}, "Gpu.index: None is not int"),
        ({"persistence": 1}, "Gpu.persistence: 1 is not bool"),
        ({"power_watts": None}, "Gpu.power_watts: None is not a finite number"),
        ({"power_watts": float("nan")}, "Gpu.power_watts: nan is not a finite number"),
        ({"memory_used_bytes": -1}, "Gpu.memory_used_bytes: -1 is negative"),
        ({"pcie_sent_bytes_per_second": -0.5}, "Gpu.pcie_sent_bytes_per_second: -0.5 is negative"),
        ({"fan_ratio": 30.0}, "Gpu.fan_ratio: 30.0 is no ratio"),
        ({"throttle_reasons": "gpu_idle"}, "Gpu.throttle_reasons: is str, not a list"),
        ({"throttle_reasons": [1]}, "Gpu.throttle_reasons: 1 is not str"),
        ({"xid_events": [{"xid": "79"}]}, "Gpu.xid_events: XidEvent.xid: '79' is not int"),
    ],
)
def test_what_is_wrong_is_found(record, complaint):
    assert conforms("Gpu", record) == [complaint]
