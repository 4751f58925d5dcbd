"""What documents of nvidia-smi may hold beside sound values.

Long because each oddity has its document beside it.
"""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse_probe.nvidia_smi.document import LARGEST_DOCUMENT, read
from tests.conform import conforms

RECORDED = Path(__file__).parent.parent / "recorded" / "nvidia_smi"
MIB = 1 << 20


def document(*gpus: str, attached: int | None = None) -> bytes:
    count = len(gpus) if attached is None else attached
    head = f"<driver_version>550.54</driver_version><attached_gpus>{count}</attached_gpus>"
    return f'<?xml version="1.0" ?>\n<nvidia_smi_log>{head}{"".join(gpus)}</nvidia_smi_log>\n'.encode()


def gpu(*parts: str, uuid: str = "GPU-1", place: str = "00000000:3B:00.0") -> str:
    lists = "" if any("<processes>" in part for part in parts) else "<processes></processes>"
    return f'<gpu id="{place}"><product_name>Test</product_name><uuid>{uuid}</uuid>{"".join(parts)}{lists}</gpu>'


ALIVE = "<temperature><gpu_temp>40 C</gpu_temp></temperature>"


def process(pid: int, name: str) -> str:
    return f"<process_info><pid>{pid}</pid><type>C</type><process_name>{name}</process_name></process_info>"


def test_a_document_without_gpus_has_none():
    assert read(document()) == ([], [], [])
    assert read(document(attached=2)) == (
        None,
        None,
        ["nvidia-smi counts 2 GPUs but describes 0: look in dmesg for what the others have"],
    )


def test_warnings_around_a_document_are_kept():
    warning = b"WARNING: infoROM is corrupted at gpu 0000:B3:00.0\n"
    for printed in (
        warning + document(gpu(ALIVE)),
        document(gpu(ALIVE)) + warning,
        b"Welcome!\n" + document(gpu(ALIVE)) + warning,
    ):
        reading = read(printed)
        assert reading.reports == ["nvidia-smi: infoROM is corrupted at gpu 0000:B3:00.0"]
        assert [each["temperature_celsius"] for each in reading.gpus] == [40]


def test_another_gpu_lost_beside_a_document_is_reported():
    lost = b"Unable to determine the device handle for GPU0000:07:00.0: Unknown Error\n"
    reading = read(lost + document(gpu(ALIVE)))
    assert len(reading.gpus) == 1
    assert [report[:33] for report in reading.reports] == ["GPU 0000:07:00.0: Unknown Error: "]


@pytest.mark.parametrize(
    "nothing",
    [
        "N/A",
        "[N/A]",
        "Not Supported",
        "[Not Supported]",
        "Requested functionality has been deprecated",
        "[Unknown]",
        "",
    ],
)
def test_what_is_no_value_is_absent(nothing):
    fields = [
        f"<serial>{nothing}</serial>",
        f"<fan_speed>{nothing}</fan_speed>",
        f"<minor_number>{nothing}</minor_number>",
        f"<persistence_mode>{nothing}</persistence_mode>",
        f"<compute_mode>{nothing}</compute_mode>",
        f"<performance_state>{nothing}</performance_state>",
        f"<fb_memory_usage><total>{nothing}</total><used>{nothing}</used></fb_memory_usage>",
        f"<clocks_event_reasons>{nothing}</clocks_event_reasons>",
        f"<ecc_errors>{nothing}</ecc_errors><remapped_rows>{nothing}</remapped_rows>",
    ]
    reading = read(document(gpu(*fields)))
    assert reading.reports == []
    assert set(reading.gpus[0]) == {"index", "vendor", "driver_version", "uuid", "name", "pci_bus_id"}


@pytest.mark.parametrize("text", ["GPU is lost", "[GPU is lost]", "GPU requires reset", "[GPU requires reset]"])
def test_a_lost_gpu_has_a_fault_and_a_report(text):
    lost = gpu(f"<fan_speed>{text}</fan_speed>", uuid=text, place="00000000:86:00.0")
    reading = read(document(gpu(ALIVE), lost))
    fault = text.strip("[]")
    assert reading.gpus[1] == {
        "index": 1,
        "vendor": "nvidia",
        "driver_version": "550.54",
        "name": "Test",
        "pci_bus_id": "00000000:86:00.0",
        "fault": fault,
        "failed_fields": ["fan_ratio", "uuid"],
        "failed_reason": f"{fault} from nvidia-smi",
    }
    assert "fault" not in reading.gpus[0]
    assert len(reading.reports) == 1
    assert reading.reports[0].startswith(f"GPU 1 (00000000:86:00.0): {fault}: ")


def test_an_unknown_error_is_the_cards_only_when_nothing_lives():
    sensor = (
        "<fan_speed>[Unknown Error]</fan_speed><gpu_power_readings><power_draw>ERR!</power_draw></gpu_power_readings>"
    )
    alive = read(document(gpu(sensor, ALIVE)))
    assert "fault" not in alive.gpus[0]
    assert alive.reports == ["GPU 0 (00000000:3B:00.0): nvidia-smi cannot read fan_ratio, power_watts (Unknown Error)"]
    dead = read(document(gpu(sensor)))
    assert dead.gpus[0]["fault"] == "Unknown Error"
    assert dead.reports[0].startswith("GPU 0 (00000000:3B:00.0): Unknown Error: look for its Xid")


def test_missing_permissions_are_reported_once():
    denied = "<fan_speed>Insufficient Permissions</fan_speed><serial>[Insufficient Permissions]</serial>"
    processes = f"<processes>{process(7, 'Insufficient Permissions')}</processes>"
    reading = read(document(gpu(denied, ALIVE, processes), gpu(denied, ALIVE, uuid="GPU-2")))
    assert reading.uses == [{"pid": 7, "uuid": "GPU-1", "kinds": ["compute"]}]
    assert reading.reports == [
        "nvidia-smi may not read fan_ratio, process name, serial (Insufficient Permissions): run it as a user who may"
    ]


def test_the_driver_asking_for_a_reset_is_reported():
    asks = gpu(ALIVE, "<gpu_recovery_action>Drain and Reset</gpu_recovery_action>")
    assert read(document(asks)).reports == ["GPU 0 (00000000:3B:00.0): the driver asks for: Drain and Reset"]
    old = gpu(ALIVE, "<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>")
    assert read(document(old)).reports == ["GPU 0 (00000000:3B:00.0): the driver asks for: Reset"]


@pytest.mark.parametrize("prefix", ["clocks_event_reason", "clocks_throttle_reason"])
def test_throttle_reasons_have_one_name_in_all_drivers(prefix):
    elements = [
        "display_clocks_setting",
        "hw_power_brake_slowdown",
        "hw_thermal_slowdown",
        "sw_thermal_slowdown",
        "sync_boost",
        "hw_slowdown",
        "sw_power_cap",
        "applications_clocks_setting",
        "gpu_idle",
    ]
    reasons = "".join(f"<{prefix}_{name}>Active</{prefix}_{name}>" for name in elements)
    reading = read(document(gpu(f"<{prefix}s>{reasons}</{prefix}s>")))
    assert reading.gpus[0]["throttle_reasons"] == [
        "gpu_idle",
        "applications_clocks_setting",
        "sw_power_cap",
        "hw_slowdown",
        "sync_boost",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
        "display_clock_setting",
    ]
    none = read(document(gpu(f"<{prefix}s><{prefix}_gpu_idle>Not Active</{prefix}_gpu_idle></{prefix}s>")))
    assert none.gpus[0]["throttle_reasons"] == []


@pytest.mark.parametrize("mode", ["Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"])
def test_compute_modes(mode):
    assert read(document(gpu(f"<compute_mode>{mode}</compute_mode>"))).gpus[0]["compute_mode"] == mode.lower()


def test_mig_processes_are_on_their_instance():
    """An H100 of 80 GB as nvidia-smi 590 prints one, with a compute instance smaller than its GPU instance."""
    reading = read((RECORDED / "h100-mig.xml").read_bytes())
    card, *instances = reading.gpus
    assert card["mig_enabled"] is True
    assert [(each["uuid"][-8:], each.get("mig_profile"), each["mig_index"]) for each in instances] == [
        ("/gi2/ci0", "3g.40gb", 0),
        ("/gi3/ci0", "2g.20gb", 1),
        ("/gi9/ci0", "1g.10gb", 2),
        ("gi11/ci1", None, 3),
        ("MIG-5555", "1g.20gb", 4),
    ]
    assert all(each["parent_uuid"] == card["uuid"] == "GPU-aaaa" for each in instances)
    assert reading.uses == [
        {
            "pid": 4242,
            "uuid": "GPU-aaaa/gi3/ci0",
            "kinds": ["compute"],
            "memory_bytes": 18_000 * MIB,
            "name": "python3",
        },
        {
            "pid": 4243,
            "uuid": "GPU-aaaa/gi11/ci1",
            "kinds": ["compute", "mps"],
            "memory_bytes": 512 * MIB,
            "name": "python3",
        },
        {"pid": 4244, "uuid": "MIG-5555", "kinds": ["compute", "graphics"], "name": "vllm"},
        {"pid": 4245, "uuid": "GPU-aaaa", "kinds": ["mps"], "memory_bytes": 30 * MIB, "name": "nvidia-cuda-mps-server"},
    ]
    assert reading.reports == []
    assert [complaint for each in reading.gpus for complaint in conforms("Gpu", each)] == []


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("/usr/bin/python3 train.py --token=abc", "python3"),
        ("./ethminer", "ethminer"),
        ("C:\\Program Files\\App\\app.exe", "app.exe"),
        ("a & b", "a"),
        ("x<defunct>", "x<defunct>"),
        ("R&amp;D", "R&D"),
        ("zo\x01mbie", "zo\ufffdmbie"),
        ("caf\u00e9", "caf\u00e9"),
    ],
)
def test_a_process_may_be_called_anything(printed, name):
    reading = read(document(gpu(ALIVE, f"<processes>{process(1, printed)}{process(2, 'next')}</processes>")))
    assert [use["name"] for use in reading.uses] == [name, "next"]
    assert reading.reports == []


@pytest.mark.parametrize("name", [b"caf\xe9", b"\xff\xff\xfe"])
def test_bytes_that_are_not_utf_8_are_read(name):
    printed = document(gpu(f"<processes>{process(1, 'NAME')}</processes>")).replace(b"NAME", name)
    assert read(printed).uses[0]["name"] == name.decode("latin-1")


def test_a_damaged_gpu_costs_only_itself():
    damaged = gpu(ALIVE, "<fan_speed>30 %</fan></fan_speed><minor_number>4</minor_number>", uuid="GPU-2")
    reading = read(document(gpu(ALIVE), damaged, gpu(ALIVE, uuid="GPU-3")))
    assert [each["uuid"] for each in reading.gpus] == ["GPU-1", "GPU-2", "GPU-3"]
    assert [each["index"] for each in reading.gpus] == [0, 1, 2]
    assert [each["temperature_celsius"] for each in reading.gpus] == [40, 40, 40]
    assert "minor_number" not in reading.gpus[1]
    assert reading.reports == ["nvidia-smi: the description of GPU 1 is damaged, some of it cannot be read"]


def test_a_document_cut_before_its_gpus_says_nothing_of_them():
    reading = read(document(gpu(ALIVE)).partition(b"<gpu")[0])
    assert reading == (None, None, ["nvidia-smi: its document ends early, before the first GPU"])


def test_an_old_bus_id_is_written_as_today():
    assert read(document(gpu(ALIVE, place="0000:0a:00.0"))).gpus[0]["pci_bus_id"] == "00000000:0A:00.0"


def test_unified_memory_is_unknown_not_zero():
    """GB10: the driver tells nothing of memory that is the host's."""
    unified = "<fb_memory_usage><total>N/A</total><reserved>N/A</reserved><used>N/A</used></fb_memory_usage>"
    record = read(document(gpu(unified, ALIVE))).gpus[0]
    assert not [field for field in record if field.startswith("memory_")]


@pytest.mark.parametrize("number", ["1e999", "nan", "-5", "9" * 19, "9" * 4000, "0x10", "1 2", "\u00b2"])
def test_numbers_that_are_none_are_absent(number):
    memory = f"<fb_memory_usage><total>{number} MiB</total></fb_memory_usage><minor_number>{number}</minor_number>"
    record = read(document(gpu(memory, ALIVE))).gpus[0]
    assert "memory_total_bytes" not in record
    assert "minor_number" not in record or number == "9" * 19


def test_entities_are_not_expanded():
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY l0 "lol">{lol}]>'
    reading = read(doctype.encode() + document(gpu(ALIVE, "<serial>&l9;</serial>")))
    assert "serial" not in reading.gpus[0]
    assert reading.reports == ["nvidia-smi: the description of GPU 0 is damaged, some of it cannot be read"]


def test_a_document_too_large_is_refused():
    reports = ["nvidia-smi printed 16777232 bytes: more than 16777216 are not read"]
    assert read(b"<nvidia_smi_log>" + b" " * LARGEST_DOCUMENT) == (None, None, reports)


@pytest.mark.parametrize(
    "flood",
    [
        b"<gpu id='1'>" + b"<a>" * 300_000,
        b"<gpu id='1'>" + b"<a/>" * 200_000 + b"</gpu>",
        b"<gpu id='1'>" + b"<process_name>" * 70_000 + b"</gpu>",
        b"<gpu id='1'>" + b"<supported_clocks>" * 500_000,
        b"<gpu></gpu>" * 300_000,
        b"<gpu " * 300_000,
    ],
)
def test_a_flood_is_read_in_bounded_time(flood):
    began = time.process_time()
    reading = read(b"<nvidia_smi_log>" + flood)
    assert time.process_time() - began < 3
    assert len(reading.reports) < 300


def test_more_gpus_than_a_node_can_have_are_not_read():
    reading = read(document(*[gpu(uuid=f"GPU-{number}") for number in range(300)]))
    assert [record["uuid"] for record in reading.gpus] == [f"GPU-{number}" for number in range(256)]
    assert reading.reports == ["nvidia-smi describes 300 GPUs: only the first 256 are read"]


PIECES = [
    b"<nvidia_smi_log>",
    b"</nvidia_smi_log>",
    b"<gpu id='1'>",
    b"<gpu>",
    b"</gpu>",
    b"<uuid>",
    b"</uuid>",
    b"GPU-1",
    b"WARNING:",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=12)).map(b"".join) | st.binary())
def test_any_bytes_are_read(printed):
    reading = read(printed)
    assert reading.gpus is not None or reading.reports
    for record in reading.gpus or ():
        assert conforms("Gpu", record) == []


def test_gpu_without_identity_is_told():
    reading = read(b"<nvidia_smi_log><gpu id='1'></gpu></nvidia_smi_log>")
    assert reading.gpus is None
    assert reading.reports == ["nvidia-smi: GPU 0 has neither a UUID nor a bus id and is left out"]
