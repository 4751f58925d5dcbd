"""Cards that change while they are read: MIG switched and cut anew, errors that pass, clocks that are set back."""

from itertools import combinations

import pytest

from tests.fake_nvml import Process, h100_node, rtx3090_node
from tests.probe.collecting import Collecting

MIB = 1 << 20
WHOLE = "gpu\n  uuid GPU-x\n  name X\n  utilisation 55\n  mig_mode off\n  gpm sm 40\n  gpm occupancy 30\n"
CUT = "gpu\n  uuid GPU-x\n  name X\n  utilisation 55\n  mig_mode on\n  gpm sm 40\n  gpm occupancy 30\n"


def instance(profile, gi, uuid, total=4864):
    return f"  mig {profile} gi {gi} ci 0 uuid {uuid} total {total}MiB used 1GiB\n"


def test_a_replaced_instance_is_another_one(fake, pids):
    """The driver gives the same handle to whatever has the place now."""
    fake.describe(CUT + instance("1g.5gb", 9, "MIG-1") + instance("1g.5gb", 8, "MIG-2"))
    with Collecting(fake) as collector:
        assert [gpu["uuid"] for gpu in collector.after().gpus] == ["GPU-x", "MIG-1", "MIG-2"]
        used = f"  process {pids[0]} compute 1GiB gi 3 ci 0\n"
        fake.describe(CUT + instance("2g.10gb", 3, "MIG-3", 9856) + instance("1g.5gb", 8, "MIG-2") + used)
        collected = collector.after(10)
    _, first, second = collected.gpus
    assert (first["uuid"], first["mig_profile"], first["gpu_instance_id"]) == ("MIG-3", "2g.10gb", 3)
    assert first["memory_total_bytes"] == 9856 * MIB
    assert (second["uuid"], second["mig_profile"]) == ("MIG-2", "1g.5gb")
    assert [use["uuid"] for use in collected.uses] == ["MIG-3"]
    assert collected.reports == []


def test_a_card_that_is_whole_again_has_all_a_whole_card_has(fake, pids):
    used = f"  process {pids[0]} compute 1GiB sm 30\n"
    fake.describe(CUT + instance("1g.5gb", 9, "MIG-1"))
    with Collecting(fake) as collector:
        card, one = collector.after().gpus
        assert "utilization_ratio" not in card
        assert one["parent_uuid"] == "GPU-x"
        fake.describe(WHOLE + used)
        collector.after(10)
        collected = collector.after()
        (card,) = collector.after().gpus
        assert (card["mig_enabled"], card["utilization_ratio"], card["sm_active_ratio"]) == (False, 0.55, 0.4)
        (use,) = collected.uses
        assert (use["uuid"], use["sm_ratio"]) == ("GPU-x", 0.3)
        fake.describe(CUT + instance("1g.5gb", 9, "MIG-1"))
        collector.after(10)
        collected = collector.after()
        assert [gpu["uuid"] for gpu in collected.gpus] == ["GPU-x", "MIG-1"]
        assert "utilization_ratio" not in collected.gpus[0]
        assert collected.reports == []


def test_mig_is_seen_to_be_switched_within_five_seconds(fake):
    fake.describe(CUT + instance("1g.5gb", 9, "MIG-1"))
    with Collecting(fake) as collector:
        assert len(collector.after().gpus) == 2
        fake.describe(WHOLE)
        (card,) = collector.after(5).gpus
        assert (card["mig_enabled"], card["utilization_ratio"]) == (False, 0.55)
        fake.describe(CUT + instance("1g.5gb", 9, "MIG-1"))
        assert [gpu["uuid"] for gpu in collector.after(5).gpus] == ["GPU-x", "MIG-1"]


def test_a_card_that_comes_back_to_the_driver_is_seen_within_five_seconds(fake):
    fake.describe(h100_node(2))
    with Collecting(fake) as collector:
        assert len(collector.after().gpus) == 2
        fake.describe(h100_node(1))
        assert len(collector.after(5).gpus) == 1
        fake.describe(h100_node(2))
        assert len(collector.after(5).gpus) == 2


def test_a_card_that_can_be_opened_again_is_seen_within_five_seconds(fake):
    fake.describe(h100_node(2) + "  fault nvmlDeviceGetHandleByIndex_v2 unknown_error\n")
    with Collecting(fake) as collector:
        assert collector.after().gpus[1]["fault"] == "Unknown Error"
        fake.describe(h100_node(2))
        assert "fault" not in collector.after(5).gpus[1]


def test_instances_have_true_activity_too(fake):
    fake.describe(CUT + instance("1g.5gb", 9, "MIG-1") + instance("2g.10gb", 3, "MIG-2"))
    with Collecting(fake) as collector:
        collector.after()
        _, first, second = collector.after().gpus
    assert (first["sm_active_ratio"], first["sm_occupancy_ratio"]) == (0.4, 0.3)
    assert second["sm_active_ratio"] == 0.4


def test_instances_have_the_model_of_their_card(fake):
    fake.describe(CUT + instance("1g.5gb", 9, "MIG-1"))
    with Collecting(fake) as collector:
        assert [gpu["name"] for gpu in collector.after().gpus] == ["X", "X"]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("nvmlDeviceGetUUID", "uuid"),
        ("nvmlDeviceGetName", "name"),
        ("nvmlDeviceGetPciInfo_v3", "pci_bus_id"),
        ("nvmlDeviceGetMaxPcieLinkWidth", "pcie_width_max"),
    ],
)
def test_a_fact_that_met_an_error_is_asked_again(fake, pids, call, field):
    fake.describe(h100_node(2, [Process(pids[0], gpu=1)]) + f"  fault {call} unknown_error 1 times\n")
    with Collecting(fake) as collector:
        for step in (1, 5, 4.5):
            collected = collector.after(step)
            assert field not in collected.gpus[1]
            assert collected.reports == [f"GPU 1: {call}: Unknown Error"]
            known = {gpu.get("uuid") for gpu in collected.gpus}
            assert all(use["uuid"] in known for use in collected.uses)
        collected = collector.after(10)
        assert field in collected.gpus[1]
        assert [use["uuid"] for use in collected.uses] == [collected.gpus[1]["uuid"]]
        assert collected.reports == []


def test_a_fact_of_an_instance_that_met_an_error_is_asked_again(fake, pids):
    used = f"  process {pids[0]} compute 1GiB gi 9 ci 0\n"
    # The first call is about the card.
    fault = "  fault nvmlDeviceGetUUID unknown_error 1 times after 1 calls\n"
    fake.describe(CUT + instance("1g.5gb", 9, "MIG-1") + used + fault)
    with Collecting(fake) as collector:
        collected = collector.after()
        assert ["uuid" in gpu for gpu in collected.gpus] == [True, False]
        assert collected.uses == []
        assert collected.reports == ["GPU 0: nvmlDeviceGetUUID: Unknown Error"]
        collected = collector.after(10)
        assert [gpu["uuid"] for gpu in collected.gpus] == ["GPU-x", "MIG-1"]
        assert [use["uuid"] for use in collected.uses] == ["MIG-1"]
        assert collected.reports == []


def test_instances_stay_while_the_driver_cannot_list_them(fake):
    text = CUT + instance("1g.5gb", 9, "MIG-1")
    fake.describe(text)
    with Collecting(fake) as collector:
        assert len(collector.after().gpus) == 2
        fake.describe(text + "  fault nvmlDeviceGetMaxMigDeviceCount unknown_error\n")
        collected = collector.after(10)
        assert len(collected.gpus) == 2
        assert collected.reports == ["GPU 0: nvmlDeviceGetMaxMigDeviceCount: Unknown Error"]


def test_a_driver_version_that_met_an_error_is_asked_again(fake):
    fake.describe("fault nvmlSystemGetDriverVersion unknown_error 2 times\n" + h100_node(1))
    with Collecting(fake) as collector:
        collected = collector.after()
        assert "driver_version" not in collected.gpus[0]
        assert collected.gpus[0]["cuda_version"] == "12.4"
        assert collected.reports == ["nvmlSystemGetDriverVersion: Unknown Error"]
        collected = collector.after(10)
        assert collected.gpus[0]["driver_version"] == "550.54.15"
        assert collected.reports == []


def test_a_driver_without_field_values_is_asked_for_them_once(fake):
    """And its PCIe traffic is then measured, as it is not counted."""
    fake.describe(rtx3090_node(1) + "  fault nvmlDeviceGetFieldValues not_supported 2 times\n")
    with Collecting(fake) as collector:
        for _ in range(3):
            collected = collector.after(10)
            assert "energy_joules_total" not in collected.gpus[0]
        assert collected.gpus[0]["pcie_sent_bytes_per_second"] == 1_500_000.0
        assert collected.gpus[0]["pcie_received_bytes_per_second"] == 2_500_000.0
        assert collected.reports == []


def test_a_card_that_cannot_do_mig_is_asked_once(fake):
    fake.describe(WHOLE + "  fault nvmlDeviceGetMigMode not_supported 1 times\n")
    with Collecting(fake) as collector:
        for _ in range(3):
            assert "mig_enabled" not in collector.after(10).gpus[0]


def test_links_that_cannot_be_looked_at_are_unknown(fake):
    fake.describe("gpu\n  nvlink_links 4\n  fault nvmlDeviceGetNvLinkState not_supported\n")
    with Collecting(fake) as collector:
        (card,) = collector.after().gpus
    assert card["nvlink_links"] == 4
    assert "nvlink_links_active" not in card


def test_a_clock_that_is_set_back_does_not_freeze_the_shares(fake, pids):
    busy, idle = (f"gpu\n  uuid GPU-x\n  process {pids[0]} compute 1GiB{sm}\n" for sm in (" sm 77", ""))
    fake.describe(busy)
    with Collecting(fake) as collector:
        assert collector.after().uses[0]["sm_ratio"] == 0.77
        fake.describe(idle)
        assert collector.after(wall=-3600).uses[0]["sm_ratio"] == 0.0
        fake.describe(busy)
        # The driver's clock is the node's: its samples of now are in the future of a clock that was set back, so
        # only a clock that is right again can show that new samples are taken.
        assert collector.after(wall=3600).uses[0]["sm_ratio"] == 0.77


def test_what_an_earlier_process_learnt_of_stays(fake):
    events = [{"time": 12.5, "xid": 79}]
    fake.describe(h100_node(2))
    uuid = "GPU-a1b2c3d4-0000-4000-8000-000000000001"
    with Collecting(fake, {uuid: events, "GPU-gone": events}) as collector:
        collected = collector.after()
        assert "xid_events" not in collected.gpus[0]
        assert collected.gpus[1]["xid_events"] == events
        assert collected.xid_events == {uuid: events, "GPU-gone": events}
        fake.describe(h100_node(2) + "  xid 31\n")
        assert [event["xid"] for event in collector.after().gpus[1]["xid_events"]] == [79, 31]


def test_a_card_that_cannot_be_watched_for_events_is_told_of_and_tried_again(fake):
    fake.describe(h100_node(1) + "  fault nvmlDeviceRegisterEvents unknown_error 1 times\n")
    with Collecting(fake) as collector:
        assert collector.after().reports == ["GPU 0: XID events: nvmlDeviceRegisterEvents: Unknown Error"]
        assert collector.after(60).reports == []
        fake.describe(h100_node(1) + "  xid 79\n")
        assert [event["xid"] for event in collector.after().gpus[0]["xid_events"]] == [79]


@pytest.mark.parametrize("call", ["nvmlGpmSampleFree", "nvmlEventSetFree"])
def test_what_cannot_be_given_back_costs_nothing(fake, call):
    fault = f"fault {call} unknown_error\n"
    fake.describe(fault + CUT + instance("1g.5gb", 9, "MIG-1"))
    with Collecting(fake) as collector:
        collector.after()
        collector.after()
        fake.describe(fault + CUT + "gpu\n")
        assert len(collector.after(60).gpus) == 2


# Every number differs from every other, so that two that are taken for each other cannot go unnoticed.
DISTINCT = {
    "memory_total 77777MiB": ("memory_total_bytes", 77777 * MIB),
    "memory_used 1234MiB": ("memory_used_bytes", 1234 * MIB),
    "memory_reserved 567MiB": ("memory_reserved_bytes", 567 * MIB),
    "utilisation 11": ("utilization_ratio", 0.11),
    "memory_utilisation 12": ("memory_utilization_ratio", 0.12),
    "encoder 13": ("encoder_utilization_ratio", 0.13),
    "decoder 14": ("decoder_utilization_ratio", 0.14),
    "fan 15": ("fan_ratio", 0.15),
    "gpm sm 16": ("sm_active_ratio", 0.16),
    "gpm occupancy 17": ("sm_occupancy_ratio", 0.17),
    "gpm tensor 18": ("tensor_active_ratio", 0.18),
    "gpm dram 19": ("dram_active_ratio", 0.19),
    "gpm fp64 20": ("fp64_active_ratio", 0.2),
    "gpm fp32 21": ("fp32_active_ratio", 0.21),
    "gpm fp16 22": ("fp16_active_ratio", 0.22),
    "temperature 31": ("temperature_celsius", 31),
    "memory_temperature 32": ("memory_temperature_celsius", 32),
    "temperature_slowdown 33": ("temperature_slowdown_celsius", 33),
    "temperature_shutdown 34": ("temperature_shutdown_celsius", 34),
    "temperature_gpu_max 35": None,
    "temperature_memory_max 36": None,
    "power 101": ("power_watts", 101.0),
    "power_instant 102": None,
    "power_limit 103": None,
    "power_limit_enforced 104": ("power_limit_watts", 104.0),
    "power_limit_default 105": ("power_limit_default_watts", 105.0),
    "power_limit_min 106": None,
    "power_limit_max 107": ("power_limit_max_watts", 107.0),
    "energy 108": ("energy_joules_total", 108.0),
    "clock_graphics 201": ("clock_graphics_hertz", 201_000_000),
    "clock_sm 202": ("clock_sm_hertz", 202_000_000),
    "clock_memory 203": ("clock_memory_hertz", 203_000_000),
    "clock_video 204": ("clock_video_hertz", 204_000_000),
    "clock_graphics_max 205": ("clock_graphics_max_hertz", 205_000_000),
    "clock_sm_max 206": ("clock_sm_max_hertz", 206_000_000),
    "clock_memory_max 207": ("clock_memory_max_hertz", 207_000_000),
    "clock_video_max 208": ("clock_video_max_hertz", 208_000_000),
    "ecc_corrected_volatile 301": ("ecc_corrected_volatile_total", 301),
    "ecc_uncorrected_volatile 302": ("ecc_uncorrected_volatile_total", 302),
    "ecc_corrected_aggregate 303": ("ecc_corrected_aggregate_total", 303),
    "ecc_uncorrected_aggregate 304": ("ecc_uncorrected_aggregate_total", 304),
    "remapped_corrected 305": ("remapped_rows_corrected_total", 305),
    "remapped_uncorrected 306": ("remapped_rows_uncorrected_total", 306),
    "retired_corrected 307": ("retired_pages_corrected_total", 307),
    "retired_uncorrected 308": ("retired_pages_uncorrected_total", 308),
    "pcie_generation 3": ("pcie_generation", 3),
    "pcie_generation_max 5": ("pcie_generation_max", 5),
    "pcie_width 8": ("pcie_width", 8),
    "pcie_width_max 16": ("pcie_width_max", 16),
    "pcie_sent 401": ("pcie_sent_bytes_total", 401),
    "pcie_received 402": ("pcie_received_bytes_total", 402),
    "pcie_replays 403": ("pcie_replays_total", 403),
    "nvlink_links 7": ("nvlink_links", 7),
    "nvlink_active 6": ("nvlink_links_active", 6),
    "nvlink_sent 512KiB": ("nvlink_sent_bytes_total", 512 << 10),
    "nvlink_received 640KiB": ("nvlink_received_bytes_total", 640 << 10),
    "minor 9": ("minor_number", 9),
    "pstate 4": ("performance_state", "P4"),
    "capability 6.2": ("compute_capability", "6.2"),
}
# Two of each pair can be told apart only with both ways round.
SWITCHES = {
    "remapped_pending": "remapped_rows_pending",
    "remapped_failed": "remapped_rows_failed",
    "retired_pending": "retired_pages_pending",
}


def test_no_two_fields_are_taken_for_each_other(fake):
    wanted = [one for one in DISTINCT.values() if one]
    assert all(first != second for (_, first), (_, second) in combinations(wanted, 2))
    lines = ["gpu", "ecc on", *DISTINCT, "nvlink_crc_errors 501", "nvlink_replays 520", "nvlink_recoveries 600"]
    fake.describe("\n  ".join(lines) + "\n")
    with Collecting(fake) as collector:
        collector.after()
        (card,) = collector.after().gpus
    assert {field: card.get(field) for field, _ in wanted} == dict(wanted)
    assert card["nvlink_errors_total"] == 501 + 520 + 600


@pytest.mark.parametrize("on", SWITCHES)
def test_no_two_switches_are_taken_for_each_other(fake, on):
    fake.describe("gpu\n" + "".join(f"  {word} {'yes' if word == on else 'no'}\n" for word in SWITCHES))
    with Collecting(fake) as collector:
        (card,) = collector.after().gpus
    assert [field for field in SWITCHES.values() if card[field]] == [SWITCHES[on]]
