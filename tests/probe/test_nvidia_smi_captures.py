"""Every nvidia-smi document recorded on other people's machines is read, and gives the values it holds.

Long because the values that a person read in the documents are written out.
"""

import re
from xml.etree import ElementTree

import pytest

from gpulse_probe.nvidia_smi.document import read
from tests.conform import conforms
from tests.testdata import MISSING, capture, captures

DOCUMENTS = [name for name in captures("*/*.xml") if b"<nvidia_smi_log" in capture(name)]
H100 = "NVIDIA+k8s-test-infra/hardware-qx-h100.xml"
GB200 = "NVIDIA+k8s-test-infra/hardware-qx-gb200.xml"
MIB = 1 << 20

needs_documents = pytest.mark.skipif(not DOCUMENTS, reason=MISSING)


# What the documents hold, said a second time and in another way than the reader does: XPath, pattern, factor.
PATHS = {
    "memory_total_bytes": ("fb_memory_usage/total", r"(\d+) MiB", MIB),
    "memory_used_bytes": ("fb_memory_usage/used", r"(\d+) MiB", MIB),
    "memory_reserved_bytes": ("fb_memory_usage/reserved", r"(\d+) MiB", MIB),
    "utilization_ratio": ("utilization/gpu_util", r"(\d+) %", 0.01),
    "memory_utilization_ratio": ("utilization/memory_util", r"(\d+) %", 0.01),
    "encoder_utilization_ratio": ("utilization/encoder_util", r"(\d+) %", 0.01),
    "decoder_utilization_ratio": ("utilization/decoder_util", r"(\d+) %", 0.01),
    "temperature_celsius": ("temperature/gpu_temp", r"(\d+) C", 1),
    "memory_temperature_celsius": ("temperature/memory_temp", r"(\d+) C", 1),
    "temperature_slowdown_celsius": ("temperature/gpu_temp_slow_threshold", r"(\d+) C", 1),
    "temperature_shutdown_celsius": ("temperature/gpu_temp_max_threshold", r"(\d+) C", 1),
    "fan_ratio": ("fan_speed", r"(\d+) %", 0.01),
    "power_limit_default_watts": ("*[default_power_limit]/default_power_limit", r"([\d.]+) W", 1),
    "power_limit_max_watts": ("*[max_power_limit]/max_power_limit", r"([\d.]+) W", 1),
    "clock_graphics_hertz": ("clocks/graphics_clock", r"(\d+) MHz", 1_000_000),
    "clock_sm_hertz": ("clocks/sm_clock", r"(\d+) MHz", 1_000_000),
    "clock_memory_hertz": ("clocks/mem_clock", r"(\d+) MHz", 1_000_000),
    "clock_video_hertz": ("clocks/video_clock", r"(\d+) MHz", 1_000_000),
    "clock_graphics_max_hertz": ("max_clocks/graphics_clock", r"(\d+) MHz", 1_000_000),
    "clock_sm_max_hertz": ("max_clocks/sm_clock", r"(\d+) MHz", 1_000_000),
    "clock_memory_max_hertz": ("max_clocks/mem_clock", r"(\d+) MHz", 1_000_000),
    "clock_video_max_hertz": ("max_clocks/video_clock", r"(\d+) MHz", 1_000_000),
    "remapped_rows_corrected_total": ("remapped_rows/remapped_row_corr", r"(\d+)", 1),
    "remapped_rows_uncorrected_total": ("remapped_rows/remapped_row_unc", r"(\d+)", 1),
    "retired_pages_corrected_total": (".//multiple_single_bit_retirement/retired_count", r"(\d+)", 1),
    "retired_pages_uncorrected_total": (".//double_bit_retirement/retired_count", r"(\d+)", 1),
    "pcie_generation": (".//pcie_gen/current_link_gen", r"(\d+)", 1),
    "pcie_generation_max": (".//pcie_gen/max_link_gen", r"(\d+)", 1),
    "pcie_width": (".//link_widths/current_link_width", r"(\d+)x", 1),
    "pcie_width_max": (".//link_widths/max_link_width", r"(\d+)x", 1),
    "pcie_sent_bytes_per_second": ("pci/tx_util", r"(\d+) KB/s", 1000),
    "pcie_received_bytes_per_second": ("pci/rx_util", r"(\d+) KB/s", 1000),
    "pcie_replays_total": ("pci/replay_counter", r"(\d+)", 1),
    "minor_number": ("minor_number", r"(\d+)", 1),
}
TEXTS = {
    "uuid": "uuid",
    "name": "product_name",
    "serial": "serial",
    "pci_bus_id": "pci/pci_bus_id",
    "performance_state": "performance_state",
    "fabric_status": "fabric/status",
    "fabric_cluster_uuid": "fabric/clusterUuid",
}
SWITCHES = {
    "mig_enabled": "mig_mode/current_mig",
    "persistence": "persistence_mode",
    "ecc_enabled": "ecc_mode/current_ecc",
    "remapped_rows_pending": "remapped_rows/remapped_row_pending",
    "remapped_rows_failed": "remapped_rows/remapped_row_failure",
}
# Checked by hand below, or made by the reader.
OTHERWISE = {
    "index",
    "vendor",
    "driver_version",
    "cuda_version",
    "compute_mode",
    "power_watts",
    "power_limit_watts",
    "throttle_reasons",
    "retired_pages_pending",
    "ecc_corrected_volatile_total",
    "ecc_uncorrected_volatile_total",
    "ecc_corrected_aggregate_total",
    "ecc_uncorrected_aggregate_total",
    "fabric_state",
    "fabric_clique_id",
    "fabric_faults",
    "processes_listed",
}


def said(element, path):
    return (element.findtext(path) or "N/A").strip()


def expected(gpu):
    values = {}
    for field, (path, pattern, factor) in PATHS.items():
        number = re.fullmatch(pattern, said(gpu, path))
        if number:
            values[field] = pytest.approx(float(number.group(1)) * factor, rel=1e-12)
    for field, path in TEXTS.items():
        if said(gpu, path) != "N/A":
            values[field] = said(gpu, path)
    for field, path in SWITCHES.items():
        if said(gpu, path) in {"Enabled", "Disabled", "Yes", "No"}:
            values[field] = said(gpu, path) in {"Enabled", "Yes"}
    # Some drivers leave out the first half of the domain.
    values["pci_bus_id"] = values.get("pci_bus_id", gpu.get("id")).rjust(16, "0")
    return values


def expected_ecc(gpu):
    """Sums by the words of the element names, whichever layout it is."""
    values = {}
    for period in ("volatile", "aggregate"):
        for word, kinds in (
            ("corrected", ("correctable", "single_bit")),
            ("uncorrected", ("uncorrectable", "double_bit")),
        ):
            counts = [
                int(leaf.text)
                for section in gpu.iterfind(f"ecc_errors/{period}")
                for group in section
                if any(re.search(f"(^|_){kind}", group.tag) for kind in kinds)
                for leaf in (group.findall("total") if len(group) else [group])
                if leaf.text.strip().isdigit()
            ]
            if counts:
                values[f"ecc_{word}_{period}_total"] = sum(counts)
    return values


def expected_power(gpu):
    values = {}
    for field, paths in (
        (
            "power_watts",
            ("gpu_power_readings/power_draw", "power_readings/power_draw", "gpu_power_readings/average_power_draw"),
        ),
        ("power_limit_watts", ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit")),
    ):
        told = [said(gpu, path) for path in paths if said(gpu, path) != "N/A"]
        if told:
            values[field] = float(told[0].removesuffix(" W"))
    return values


@needs_documents
def test_documents_are_all_found():
    assert len(DOCUMENTS) >= 27


@pytest.mark.parametrize("name", DOCUMENTS)
def test_values_of_a_document_come_out(name):
    document = capture(name)
    root = ElementTree.fromstring(document)  # noqa: S314 - a file of our own
    reading = read(document)
    cards = [gpu for gpu in reading.gpus if "parent_uuid" not in gpu]
    described = root.findall("gpu")
    assert [card["index"] for card in cards] == list(range(len(described)))
    for card, gpu in zip(cards, described, strict=True):
        assert conforms("Gpu", card) == []
        wanted = expected(gpu) | expected_ecc(gpu) | expected_power(gpu)
        assert {field: value for field, value in card.items() if field in wanted} == wanted
        assert set(card) - set(wanted) <= OTHERWISE
        assert card["vendor"] == "nvidia"
        assert card.get("fabric_state", "N/A") == said(gpu, "fabric/state").replace("Completed", "completed")
        assert str(card.get("fabric_clique_id", "N/A")) == said(gpu, "fabric/cliqueId")
        assert ("fabric_faults" in card) == (said(gpu, "fabric/health/bandwidth") != "N/A")
        assert card.get("fabric_faults", []) == []
        assert ("processes_listed" in card) == (gpu.findtext("processes", "N/A").strip() == "N/A")
        assert card.get("driver_version", "N/A") == said(root, "driver_version")
        assert card.get("cuda_version", "N/A") == said(root, "cuda_version")
        assert card["compute_mode"] == said(gpu, "compute_mode").lower()
        active = [leaf.tag for leaf in gpu.iter() if "_reason_" in leaf.tag and leaf.text == "Active"]
        assert [re.sub(".*_reason_", "", tag) for tag in active] == card.get("throttle_reasons", [])
        assert ("throttle_reasons" in card) == (
            gpu.find("clocks_event_reasons") is not None or gpu.find("clocks_throttle_reasons") is not None
        )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_processes_of_a_document_come_out(name):
    document = capture(name)
    reading = read(document)
    wanted = []
    for gpu in ElementTree.fromstring(document).iterfind("gpu"):  # noqa: S314 - a file of our own
        for process in gpu.iterfind("processes/process_info"):
            use = {"pid": int(said(process, "pid")), "uuid": said(gpu, "uuid")}
            use["kinds"] = [{"C": "compute", "G": "graphics"}[said(process, "type")]]
            use["name"] = said(process, "process_name").split(" --")[0].split("/")[-1]
            if said(process, "used_memory") != "N/A":
                use["memory_bytes"] = int(said(process, "used_memory").split(" MiB")[0]) * MIB
            wanted.append(use)
    # One capture was cut to what somebody needed: it has no list of processes.
    assert (reading.uses or []) == wanted
    assert (reading.uses is None) == all(gpu.get("processes_listed") is False for gpu in reading.gpus)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_sound_document_has_nothing_to_report(name):
    trimmed = {
        "influxdata+telegraf/a100-sxm4-v12.xml": ["nvidia-smi counts 4 GPUs but describes 1"],
        "microsoft+pai/nvidia_smi_sample.xml": ["nvidia-smi counts 6 GPUs but describes 2"],
    }
    assert [report.split(":")[0] for report in read(capture(name)).reports] == trimmed.get(name, [])


# Read by a person in the files: name, position of the record, what it must hold (None: must not hold).
TELEGRAF, PAI, NVIDIA = "influxdata+telegraf/", "microsoft+pai/", "NVIDIA+k8s-test-infra/"
BY_HAND = [
    (
        H100,
        3,
        {
            "index": 3,
            "uuid": "GPU-00000003-0000-0000-0000-000000000003",
            "name": "NVIDIA H100 80GB HBM3",
            "serial": "1650000000004",
            "pci_bus_id": "00000000:86:00.0",
            "minor_number": 3,
            "driver_version": "580.105.08",
            "cuda_version": "13.0",
            "mig_enabled": False,
            "persistence": True,
            "compute_mode": "default",
            "memory_total_bytes": 85_520_809_984,
            "memory_used_bytes": 0,
            "memory_reserved_bytes": 503_316_480,
            "power_watts": 71.37,
            "power_limit_watts": 700.0,
            "temperature_celsius": 32,
            "memory_temperature_celsius": 39,
            # Hopper tells how far it is from its limits, not where they are.
            "temperature_slowdown_celsius": None,
            "fan_ratio": None,
            "clock_memory_max_hertz": 2_619_000_000,
            "throttle_reasons": ["gpu_idle"],
            "ecc_enabled": True,
            "ecc_uncorrected_aggregate_total": 0,
            "remapped_rows_failed": False,
            "retired_pages_pending": None,
            "pcie_generation": 5,
            "pcie_width": 16,
            "pcie_sent_bytes_per_second": 512_000.0,
            "pcie_received_bytes_per_second": 418_000.0,
            "pcie_replays_total": 158,
        },
    ),
    (
        GB200,
        3,
        {
            "name": "NVIDIA GB200",
            "pci_bus_id": "00000000:B2:00.0",
            "memory_total_bytes": 189_471 * MIB,
            "memory_reserved_bytes": 742 * MIB,
            "power_watts": 171.99,
            "power_limit_watts": 1200.0,
            "clock_sm_hertz": 120_000_000,
            "clock_sm_max_hertz": 2_062_000_000,
            "pcie_generation": 5,
            "pcie_generation_max": 5,
            "temperature_celsius": 26,
            "fan_ratio": None,
        },
    ),
    (
        TELEGRAF + "a100-sxm4-v12.xml",
        4,
        {
            "index": 0,
            "uuid": "GPU-513536b6-7d19-9063-b049-1e69664bb298/gi6/ci0",
            "parent_uuid": "GPU-513536b6-7d19-9063-b049-1e69664bb298",
            "mig_index": 3,
            "gpu_instance_id": 6,
            "compute_instance_id": 0,
            "mig_profile": "1g.20gb",
            "name": "NVIDIA A100-SXM4-80GB",
            "vendor": "nvidia",
            "driver_version": "535.54.03",
            "memory_total_bytes": 19_968 * MIB,
            "memory_used_bytes": 12 * MIB,
            "memory_reserved_bytes": 0,
            "ecc_uncorrected_volatile_total": 0,
            "mig_enabled": None,
        },
    ),
    (
        "netdata+netdata/a100-sxm4-mig.xml",
        0,
        {
            "uuid": "GPU-27b94a00-ed54-5c24-b1fd-1054085de32a",
            "parent_uuid": None,
            "mig_enabled": True,
            "memory_total_bytes": 40_960 * MIB,
            "memory_used_bytes": 38 * MIB,
            "utilization_ratio": None,
            "ecc_corrected_volatile_total": None,
            "ecc_corrected_aggregate_total": 0,
            "power_watts": 66.92,
            "power_limit_watts": 400.0,
        },
    ),
    (
        "netdata+netdata/a100-sxm4-mig.xml",
        2,
        {
            "uuid": "GPU-27b94a00-ed54-5c24-b1fd-1054085de32a/gi2/ci0",
            "mig_index": 1,
            "mig_profile": "3g.20gb",
            "memory_used_bytes": 19 * MIB,
        },
    ),
    (
        TELEGRAF + "gtx-1660-ti.xml",
        0,
        {
            "name": "Graphics Device",
            "driver_version": "418.43",
            "cuda_version": "10.1",
            "serial": None,
            "memory_total_bytes": 5912 * MIB,
            "memory_used_bytes": 0,
            "memory_reserved_bytes": None,
            "memory_utilization_ratio": 0.01,
            "fan_ratio": 0.0,
            "power_watts": 8.93,
            "power_limit_watts": 130.0,
            "performance_state": "P8",
            "temperature_slowdown_celsius": 93,
            "temperature_shutdown_celsius": 96,
            "ecc_enabled": None,
            "ecc_corrected_aggregate_total": None,
            "mig_enabled": None,
        },
    ),
    (
        TELEGRAF + "quadro-p400.xml",
        0,
        {
            "name": "Quadro P400",
            "serial": "0424418054852",
            "memory_total_bytes": 1998 * MIB,
            "fan_ratio": 0.34,
            "power_watts": None,
            "power_limit_watts": None,
            "clock_graphics_hertz": 139_000_000,
            "clock_graphics_max_hertz": 1_252_000_000,
            "pcie_generation": 1,
            "pcie_generation_max": 3,
        },
    ),
    (
        TELEGRAF + "gt-1030.xml",
        0,
        {
            "memory_used_bytes": 875 * MIB,
            "encoder_utilization_ratio": None,
            "decoder_utilization_ratio": 0.0,
            "fan_ratio": 0.35,
            "power_watts": None,
            "power_limit_watts": 30.0,
            "pcie_width": 4,
            "pcie_sent_bytes_per_second": 53_000_000.0,
            "pcie_received_bytes_per_second": 1_000_000.0,
        },
    ),
    (
        TELEGRAF + "rtx-3080-v12.xml",
        0,
        {
            "driver_version": "536.40",
            "minor_number": None,
            "persistence": None,
            "memory_used_bytes": 1128 * MIB,
            "power_watts": 22.78,
            "power_limit_watts": 336.0,
            "ecc_uncorrected_volatile_total": None,
        },
    ),
    (
        TELEGRAF + "gtx-1070-ti.xml",
        0,
        {
            "uuid": "GPU-f9ba66fc-a7f5-94c5-da19-019ef2f9c665",
            "pci_bus_id": "00000000:01:00.0",
            "driver_version": None,
            "fan_ratio": 1.0,
            "memory_used_bytes": 42 * MIB,
            "power_watts": None,
            "throttle_reasons": None,
            "pcie_generation": 1,
            "pcie_generation_max": None,
        },
    ),
    (
        PAI + "nvidia_smi_sample.xml",
        1,
        {
            "index": 1,
            "driver_version": "384.66",
            "cuda_version": None,
            "utilization_ratio": 0.98,
            "memory_used_bytes": 4057 * MIB,
            "power_watts": 139.3,
            "power_limit_watts": 180.0,
            "fan_ratio": 0.39,
            "ecc_uncorrected_volatile_total": None,
        },
    ),
    (
        PAI + "nvidia_smi_sample_ecc_unsupported.xml",
        1,
        {
            "name": "GeForce RTX 2080 Ti",
            "power_watts": 19.11,
            "ecc_enabled": None,
            "ecc_corrected_volatile_total": None,
        },
    ),
    (
        NVIDIA + "mocknvml-qx-gb200-ecc-injected.xml",
        0,
        {
            "ecc_corrected_volatile_total": 0,
            "ecc_uncorrected_volatile_total": 5,
            "ecc_corrected_aggregate_total": 0,
            "ecc_uncorrected_aggregate_total": 8,
            "remapped_rows_uncorrected_total": 1,
            "remapped_rows_failed": True,
            "remapped_rows_pending": False,
        },
    ),
    (
        "netdata+netdata/tesla-p100.xml",
        0,
        {
            "ecc_corrected_aggregate_total": 3,
            "ecc_uncorrected_aggregate_total": 0,
            "retired_pages_corrected_total": 0,
            "retired_pages_uncorrected_total": 0,
            "retired_pages_pending": False,
        },
    ),
]


@pytest.mark.parametrize(("name", "position", "wanted"), BY_HAND)
def test_values_read_by_a_person(name, position, wanted):
    gpu = read(capture(name)).gpus[position]
    assert {field: gpu.get(field) for field in wanted} == wanted


def test_gt_1030_has_ten_processes():
    uses = read(capture(TELEGRAF + "gt-1030.xml")).uses
    uuid = "GPU-857c6374-f681-cf3a-f99f-9063a87b8ac0"
    assert len(uses) == 10
    assert uses[0] == {"pid": 607, "uuid": uuid, "kinds": ["graphics"], "memory_bytes": 547 * MIB, "name": "Xorg"}
    # Only the program: a command line may hold a password.
    assert uses[8] == {"pid": 1264, "uuid": uuid, "kinds": ["graphics"], "memory_bytes": 130 * MIB, "name": "chromium"}


def test_a_process_on_two_gpus_is_on_both():
    uses = [use for use in read(capture(PAI + "nvidia_smi_sample.xml")).uses if use["pid"] == 3093]
    assert [(use["uuid"][:12], use["kinds"], use["memory_bytes"], use["name"]) for use in uses] == [
        ("GPU-e511a7b2", ["compute"], 2283 * MIB, "ethminer"),
        ("GPU-28daffaf", ["compute"], 2283 * MIB, "ethminer"),
    ]
