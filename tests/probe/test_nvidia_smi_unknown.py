"""Documents of nvidia-smi: what failed this time is told from what a card never gives."""

import pytest

from gpulse_probe.nvidia_smi.document import read
from tests.probe.test_nvidia_smi import ALIVE, document, gpu, process

MIB = 1 << 20
USED = "<fb_memory_usage><total>80 MiB</total><used>7 MiB</used></fb_memory_usage>"
LOAD = "<utilization><gpu_util>5 %</gpu_util></utilization>"
LIST = f"<processes>{process(7, 'a')}</processes>"


def with_load(text):
    return f"<utilization><gpu_util>{text}</gpu_util></utilization>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[Unknown Error]", "Unknown Error from nvidia-smi"),
        ("Unknown Error", "Unknown Error from nvidia-smi"),
        ("ERR!", "Unknown Error from nvidia-smi"),
        ("[GPU requires reset]", "GPU requires reset from nvidia-smi"),
        ("Timeout", "Timeout from nvidia-smi"),
        ("many %", "no readable value from nvidia-smi"),
    ],
)
def test_an_error_in_place_of_a_value_is_a_failure(text, reason):
    (card,) = read(document(gpu(ALIVE, USED, with_load(text), LIST))).gpus
    assert (card["failed_fields"], card["failed_reason"]) == (["utilization_ratio"], reason)
    assert "utilization_ratio" not in card
    assert card["memory_used_bytes"] == 7 * MIB
    used = USED.replace("7 MiB", text.replace("%", "MiB"))
    (card,) = read(document(gpu(ALIVE, used, LOAD, LIST))).gpus
    assert card["failed_fields"] == ["memory_used_bytes"]
    assert card["memory_total_bytes"] == 80 * MIB


@pytest.mark.parametrize("text", ["N/A", "[N/A]", "Not Supported", "[Not Supported]", "Insufficient Permissions"])
def test_what_a_card_never_gives_is_absent_and_not_failed(text):
    (card,) = read(document(gpu(ALIVE, USED, with_load(text), f"<processes>{text}</processes>"))).gpus
    assert not {"failed_fields", "failed_reason", "utilization_ratio"} & set(card)
    assert card["processes_listed"] is False


def test_a_list_of_processes_that_is_empty_is_known():
    reading = read(document(gpu(ALIVE, USED, LOAD, "<processes></processes>")))
    assert reading.uses == []
    assert not {"failed_fields", "processes_listed"} & set(reading.gpus[0])


@pytest.mark.parametrize("text", ["[Unknown Error]", "ERR!", "Timeout"])
def test_a_list_of_processes_that_failed_is_unknown(text):
    reading = read(document(gpu(ALIVE, USED, LOAD, f"<processes>{text}</processes>")))
    assert reading.uses is None
    (card,) = reading.gpus
    assert (card["failed_fields"], card["failed_reason"]) == (["processes"], f"{text.strip('[]')} from nvidia-smi")


def test_processes_of_the_other_cards_arrive():
    failed = gpu(ALIVE, USED, LOAD, "<processes>ERR!</processes>", uuid="GPU-2", place="00000000:3C:00.0")
    reading = read(document(gpu(ALIVE, USED, LOAD, LIST), failed))
    assert [use["pid"] for use in reading.uses] == [7]
    assert ["failed_fields" in card for card in reading.gpus] == [False, True]
    empty = gpu(ALIVE, USED, LOAD)
    assert read(document(empty, failed)).uses == []


WHOLE = document(gpu(ALIVE, USED, LOAD, LIST))
CUTS = {
    "before memory": (WHOLE.index(b"<fb_memory"), ["memory_used_bytes", "processes", "utilization_ratio"]),
    "within memory": (WHOLE.index(b"7 MiB"), ["memory_used_bytes", "processes", "utilization_ratio"]),
    "before load": (WHOLE.index(b"<utilization"), ["processes", "utilization_ratio"]),
    "before the list": (WHOLE.index(b"<processes>"), ["processes"]),
    "within the list": (WHOLE.index(b"<process_name>"), ["processes"]),
    "after a process": (WHOLE.index(b"</processes>"), ["processes"]),
}


@pytest.mark.parametrize("cut", CUTS)
def test_what_is_cut_off_is_a_failure(cut):
    end, failed = CUTS[cut]
    (card,) = read(WHOLE[:end]).gpus
    assert (card["failed_fields"], card["failed_reason"]) == (failed, "the document of nvidia-smi ends early")
    assert "processes_listed" not in card


def test_a_cut_after_the_list_costs_nothing():
    reading = read(WHOLE[: WHOLE.index(b"</gpu>")])
    assert "failed_fields" not in reading.gpus[0]
    assert [use["pid"] for use in reading.uses] == [7]


def test_processes_listed_before_a_cut_arrive():
    two = document(gpu(ALIVE, USED, LOAD, f"<processes>{process(7, 'a')}{process(8, 'b')}</processes>"))
    reading = read(two[: two.index(b"<pid>8")])
    assert [use["pid"] for use in reading.uses] == [7]
    assert reading.gpus[0]["failed_fields"] == ["processes"]


def test_what_was_said_not_to_be_given_before_a_cut_is_not_failed():
    part = document(gpu(ALIVE, USED, with_load("N/A"), LIST))
    (card,) = read(part[: part.index(b"<processes>")]).gpus
    assert card["failed_fields"] == ["processes"]


def test_a_damaged_description_is_no_idle_card():
    damaged = document(gpu(ALIVE, "<broken", USED, LOAD, LIST), gpu(ALIVE, USED, LOAD, LIST, uuid="GPU-2"))
    first, second = read(damaged).gpus
    assert first["failed_fields"] == ["memory_used_bytes", "processes", "utilization_ratio"]
    assert first["failed_reason"] == "the document of nvidia-smi is damaged"
    assert "failed_fields" not in second


def test_instances_share_the_list_of_their_card():
    device = (
        "<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>"
        f"<compute_instance_id>0</compute_instance_id>{USED}</mig_device></mig_devices>"
    )
    for text, failed, listed in (("ERR!", ["processes"], None), ("N/A", None, False), ("", None, None)):
        reading = read(document(gpu(ALIVE, device, f"<processes>{text}</processes>")))
        _card, instance = reading.gpus
        assert (instance.get("failed_fields"), instance.get("processes_listed")) == (failed, listed)
        assert (reading.uses is None) == bool(text)
    broken = device.replace("7 MiB", "[Unknown Error]")
    card, instance = read(document(gpu(ALIVE, USED, LOAD, broken))).gpus
    assert instance["failed_fields"] == ["memory_used_bytes"]
    assert "failed_fields" not in card
