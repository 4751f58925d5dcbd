"""The health of the NVSwitch fabric, by NVML and from documents of nvidia-smi."""

import json
import subprocess
import sys

import pytest

from gpulse_probe.nvidia_smi.document import read
from tests.fake_nvml import h100_node
from tests.probe.collecting import Collecting
from tests.probe.test_nvidia_smi import ALIVE, document, gpu

CLUSTER = "01234567-89ab-cdef-0123-456789abcdef"
# Each false, and no wrong configuration.
WELL = 0b0001_10_10_10_10


def by_nvml(fake, line):
    fake.describe("gpu\n" + line)
    with Collecting(fake) as collector:
        (card,) = collector.after().gpus
    return {name: value for name, value in card.items() if name.startswith("fabric_")}


def test_a_healthy_card_of_a_fabric(fake):
    assert by_nvml(fake, f"  fabric completed clique 7 cluster {CLUSTER} health {WELL}\n") == {
        "fabric_state": "completed",
        "fabric_status": "Success",
        "fabric_cluster_uuid": CLUSTER,
        "fabric_clique_id": 7,
        "fabric_faults": [],
    }


@pytest.mark.parametrize(
    ("mask", "faults"),
    [
        (WELL ^ 0b11, ["degraded_bandwidth"]),
        (WELL ^ 0b11 << 2, ["route_recovery"]),
        (WELL ^ 0b11 << 4, ["route_unhealthy"]),
        (WELL ^ 0b11 << 6, ["access_timeout_recovery"]),
        (WELL ^ 0b0011 << 8, ["incorrect_configuration"]),
        (8 << 8, ["incorrect_configuration"]),
        (0b01_01_01_01, ["degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery"]),
        (0b10 << 4, []),
        (0, None),
    ],
)
def test_bits_of_the_health_mask(fake, mask, faults):
    assert by_nvml(fake, f"  fabric completed health {mask}\n").get("fabric_faults") == faults


def test_a_card_that_could_not_join(fake):
    found = by_nvml(fake, "  fabric completed status 999\n")
    assert (found["fabric_state"], found["fabric_status"]) == ("completed", "Unknown Error")


def test_what_is_not_known_before_a_card_has_joined(fake):
    assert by_nvml(fake, f"  fabric in_progress status 3 cluster {CLUSTER}\n") == {"fabric_state": "in_progress"}


@pytest.mark.parametrize("line", ["", "  fabric not_supported\n"])
def test_a_card_outside_any_fabric(fake, line):
    assert by_nvml(fake, line) == {}


def test_a_driver_that_knows_the_second_version_only(fake):
    once = "  fault nvmlDeviceGetGpuFabricInfoV not_supported 1 times\n"
    found = by_nvml(fake, f"  fabric completed clique 3 health {WELL ^ 0b11}\n" + once)
    assert (found["fabric_clique_id"], found["fabric_faults"]) == (3, ["degraded_bandwidth"])


def test_the_fake_has_the_layout_of_nvidias_binding(fake):
    fake.describe(h100_node(1) + f"  fabric completed status 2 clique 9 cluster {CLUSTER} health 291\n")
    script = (
        "import json\nfrom pynvml import *\nnvmlInit()\ninfo = {}\n"
        "info = c_nvmlGpuFabricInfo_v3_t()\nnvmlDeviceGetGpuFabricInfoV(nvmlDeviceGetHandleByIndex(0), byref(info))\n"
        "print(json.dumps([info.state, info.status, info.cliqueId, info.healthMask, bytes(info.clusterUuid).hex()]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=fake.environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == [3, 2, 9, 291, CLUSTER.replace("-", "")]


def in_document(**told):
    names = ("state", "status", "cliqueId", "clusterUuid")
    plain = "".join(f"<{name}>{told[name]}</{name}>" for name in names if name in told)
    health = "".join(f"<{name}>{text}</{name}>" for name, text in told.items() if name not in names)
    (card,) = read(document(gpu(ALIVE, f"<fabric>{plain}<health>{health}</health></fabric>"))).gpus
    return {name: value for name, value in card.items() if name.startswith("fabric_")}


JOINED = {"state": "Completed", "status": "Success", "cliqueId": "7", "clusterUuid": CLUSTER}
GOOD = {
    "summary": "Healthy",
    "bandwidth": "Full",
    "route_recovery_in_progress": "False",
    "route_unhealthy": "False",
    "access_timeout_recovery": "False",
    "incorrect_configuration": "None",
}


def test_a_document_says_the_same_as_nvml(fake):
    assert in_document(**JOINED, **GOOD) == by_nvml(
        fake, f"  fabric completed clique 7 cluster {CLUSTER} health {WELL}\n"
    )


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("bandwidth", "Degraded", "degraded_bandwidth"),
        ("route_recovery_in_progress", "True", "route_recovery"),
        ("route_unhealthy", "True", "route_unhealthy"),
        ("access_timeout_recovery", "True", "access_timeout_recovery"),
        ("incorrect_configuration", "Incorrect SysGuid", "incorrect_configuration"),
    ],
)
def test_faults_in_a_document(name, text, fault):
    assert in_document(**JOINED, **{**GOOD, name: text})["fabric_faults"] == [fault]
    assert in_document(**JOINED, **{name: text})["fabric_faults"] == [fault]


def test_a_document_of_a_card_outside_any_fabric():
    nothing = dict.fromkeys((*JOINED, *GOOD), "N/A")
    assert in_document(**nothing) == {}
    assert in_document(**{**JOINED, **dict.fromkeys(GOOD, "N/A")}).keys() == {
        "fabric_state",
        "fabric_status",
        "fabric_cluster_uuid",
        "fabric_clique_id",
    }


def test_a_document_of_a_card_that_joins():
    assert in_document(state="In Progress", status="N/A") == {"fabric_state": "in_progress"}
