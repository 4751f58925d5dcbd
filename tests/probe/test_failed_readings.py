"""Readings that fail now are named; those a card never gives are absent, and are asked for again after a while."""

import pytest

from tests.fake_nvml import Process, a100_mig_node, h100_node, rtx3090_node
from tests.probe.collecting import Collecting
from tests.probe.running import once

LISTS = "nvmlDeviceGetComputeRunningProcesses*", "nvmlDeviceGetGraphicsRunningProcesses*"
ALL_LISTS = (*LISTS, "nvmlDeviceGetMPSComputeRunningProcesses*")


def faults(what, *calls):
    return "".join(f"  fault {call} {what}\n" for call in calls)


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ("nvmlDeviceGetUtilizationRates", ["memory_utilization_ratio", "utilization_ratio"]),
        ("nvmlDeviceGetMemoryInfo_v2", ["memory_reserved_bytes", "memory_used_bytes"]),
        ("nvmlGpmSampleGet", ["sm_active_ratio"]),
        ("nvmlDeviceGetPowerUsage", ["power_watts"]),
        ("nvmlDeviceGetEnforcedPowerLimit", ["power_limit_watts"]),
        ("nvmlDeviceGetComputeRunningProcesses_v3", ["processes"]),
        ("nvmlDeviceGetGraphicsRunningProcesses_v3", ["processes"]),
    ],
)
def test_a_reading_that_fails_now_is_named_with_its_reason(fake, call, fields):
    fake.describe(h100_node(2))
    with Collecting(fake) as collector:
        collector.after()
        fake.describe(h100_node(2) + faults("unknown_error", call))
        good, bad = collector.after(10).gpus
    assert "failed_fields" not in good
    assert (bad["failed_fields"], bad["failed_reason"]) == (fields, f"Unknown Error from {call}")
    assert not set(bad) & set(fields)
    assert bad["memory_total_bytes"] == good["memory_total_bytes"], "a fact outlives a failed reading"
    assert "processes_listed" not in bad


def test_a_numbered_field_that_fails_is_named(fake):
    fake.describe(h100_node(1) + faults("unknown_error", "nvmlDeviceGetFieldValues"))
    with Collecting(fake) as collector:
        (card,) = collector.after().gpus
    assert {"energy_joules_total", "ecc_uncorrected_volatile_total"} <= set(card["failed_fields"])
    assert card["failed_reason"] == "Unknown Error from nvmlDeviceGetFieldValues"


@pytest.mark.parametrize("call", ["nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo*", "nvmlGpm*"])
def test_what_a_card_never_gives_is_absent_and_not_failed(fake, call):
    fake.describe(h100_node(1) + faults("not_supported", call))
    with Collecting(fake) as collector:
        collector.after()
        (card,) = collector.after().gpus
    assert "failed_fields" not in card
    assert "failed_reason" not in card


def test_a_driver_that_never_lists_processes(fake):
    fake.describe(rtx3090_node(2) + faults("not_supported", *ALL_LISTS))
    with Collecting(fake) as collector:
        good, bad = collector.after().gpus
    assert "processes_listed" not in good
    assert bad["processes_listed"] is False
    assert "failed_fields" not in bad


def test_a_list_of_those_who_draw_says_nothing_of_those_who_compute(fake):
    fake.describe(rtx3090_node(1) + faults("not_supported", LISTS[0]))
    with Collecting(fake) as collector:
        (card,) = collector.after().gpus
    assert card["processes_listed"] is False


def test_the_mps_list_alone_decides_nothing(fake):
    fake.describe(rtx3090_node(1) + faults("unknown_error", ALL_LISTS[2]))
    with Collecting(fake) as collector:
        (card,) = collector.after().gpus
    assert "failed_fields" not in card


def test_instances_name_their_own_failures(fake, pids):
    fake.describe(a100_mig_node([Process(pids[0], instance=(1, 0))]))
    with Collecting(fake) as collector:
        collector.after()
        fake.describe("fault nvmlDeviceGetMemoryInfo_v2 unknown_error\n" + a100_mig_node())
        card, first, *_ = collector.after().gpus
    assert first["failed_fields"] == ["memory_reserved_bytes", "memory_used_bytes"]
    assert first["memory_total_bytes"] == 19968 << 20
    assert first["failed_reason"] == "Unknown Error from nvmlDeviceGetMemoryInfo_v2"
    assert "processes" not in card["failed_fields"]


@pytest.mark.parametrize("gpus", [1, 2])
def test_processes_of_a_node_are_absent_where_no_list_is_known(fake, gpus):
    before = "".join(f"fault {call} unknown_error\n" for call in LISTS)
    fake.describe(before + h100_node(gpus))
    snapshot = once(fake.environment())
    assert "processes" not in snapshot
    assert [gpu["failed_fields"] for gpu in snapshot["gpus"]] == [["processes"]] * gpus


def test_processes_of_the_other_cards_arrive(fake, pids):
    fake.describe(h100_node(2, [Process(pids[0], gpu=0)]) + faults("unknown_error", *LISTS))
    snapshot = once(fake.environment())
    assert [process["pid"] for process in snapshot["processes"]] == [pids[0]]
    assert snapshot["gpus"][1]["failed_fields"] == ["processes"]


def test_processes_are_known_where_one_card_has_none(fake):
    fake.describe(h100_node(2) + faults("unknown_error", *LISTS))
    assert once(fake.environment())["processes"] == []


def test_not_supported_is_asked_again_after_ten_minutes(fake):
    refused = faults("not_supported 1 times", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetEccMode")
    fake.describe(h100_node(1) + refused + faults("not_supported 2 times", "nvmlDeviceGetFieldValues"))
    with Collecting(fake) as collector:
        for step in (1, 1, 300, 290):
            (card,) = collector.after(step).gpus
            assert not {"utilization_ratio", "ecc_enabled", "energy_joules_total"} & set(card)
        collector.after(20)
        (card,) = collector.after(1).gpus
    assert {"utilization_ratio", "ecc_enabled", "energy_joules_total"} <= set(card)


def test_what_is_given_goes_on_while_the_rest_is_asked_again(fake, pids):
    """Activity is made of two samples and shares of those since the last: neither may miss a tick."""
    fake.describe(h100_node(1, [Process(pids[0], sm=30)]))
    with Collecting(fake) as collector:
        collector.after()
        for _ in range(12):
            collected = collector.after(100)
            assert "sm_active_ratio" in collected.gpus[0]
            assert collected.uses[0]["sm_ratio"] == 0.3


def test_a_card_that_was_lost_is_asked_for_everything_again(fake):
    fake.describe(h100_node(1) + faults("not_supported", "nvmlDeviceGetUtilizationRates"))
    with Collecting(fake) as collector:
        assert "utilization_ratio" not in collector.after().gpus[0]
        fake.describe(h100_node(1) + faults("lost", "*"))
        assert collector.after().gpus[0]["fault"] == "GPU is lost"
        fake.describe(h100_node(1))
        collector.after()
        assert collector.after().gpus[0]["utilization_ratio"] == 0.8


def test_all_cards_are_asked_again_when_one_is_added(fake):
    refused = faults("not_supported 1 times", "nvmlDeviceGetUtilizationRates", *ALL_LISTS)
    fake.describe("gpu\n" + refused)
    with Collecting(fake) as collector:
        assert "utilization_ratio" not in collector.after().gpus[0]
        fake.describe("gpu\n" + refused + "gpu\n")
        collector.after(5)
        card, _added = collector.after().gpus
    assert "utilization_ratio" in card
    assert "processes_listed" not in card


def test_a_lost_card_keeps_its_facts(fake):
    fake.describe(h100_node(2))
    with Collecting(fake) as collector:
        before = collector.after().gpus[1]
        fake.describe(h100_node(2) + faults("lost", "*"))
        lost = collector.after(11).gpus[1]
    facts = ("memory_total_bytes", "name", "uuid", "pci_bus_id", "power_limit_watts", "mig_enabled", "nvlink_links")
    assert {name: lost[name] for name in facts} == {name: before[name] for name in facts}
    assert lost["fault"] == "GPU is lost"
    assert not {"utilization_ratio", "memory_used_bytes", "energy_joules_total", "failed_fields"} & set(lost)


def test_instances_of_a_lost_card_stay_with_their_facts(fake):
    fake.describe("fault nvmlNothing lost\n" + a100_mig_node())
    with Collecting(fake) as collector:
        before = collector.after().gpus
        lost = a100_mig_node().replace("mig 3g.20gb", "fault * lost\n  mig 3g.20gb")
        fake.describe(lost)
        after = collector.after(11).gpus
    assert [gpu["uuid"] for gpu in after] == [gpu["uuid"] for gpu in before]
    assert [gpu.get("fault") for gpu in after] == ["GPU is lost"] * 4 + [None]
    assert [gpu["memory_total_bytes"] for gpu in after] == [gpu["memory_total_bytes"] for gpu in before]


def test_a_card_that_cannot_be_opened_keeps_its_facts(fake):
    fake.describe(h100_node(2))
    with Collecting(fake) as collector:
        before = collector.after().gpus[1]
        closed = faults("lost", "nvmlDeviceGetHandleByIndex_v2")
        # A third card makes the probe look again.
        fake.describe(h100_node(2) + closed + "gpu\n")
        lost = collector.after(5).gpus[1]
        assert lost["fault"] == "GPU is lost"
        facts = ("memory_total_bytes", "name", "uuid", "pci_bus_id")
        assert {name: lost[name] for name in facts} == {name: before[name] for name in facts}
        fake.describe(h100_node(2) + "gpu\n")
        assert "fault" not in collector.after(5).gpus[1]
