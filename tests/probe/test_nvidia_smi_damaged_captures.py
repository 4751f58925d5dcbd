"""Recorded nvidia-smi documents, cut and damaged: never an exception, never an untrue value."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse_probe.nvidia_smi.document import Reading, read
from tests.conform import conforms
from tests.testdata import MISSING, capture, captures

H100 = "NVIDIA+k8s-test-infra/hardware-qx-h100.xml"
DOCUMENTS = [name for name in captures("*/*.xml") if b"<nvidia_smi_log" in capture(name)]

needs_documents = pytest.mark.skipif(not DOCUMENTS, reason=MISSING)


def test_eight_gpus_are_read_in_time():
    document = capture(H100)
    fastest = min(_seconds(document) for _ in range(10))
    assert fastest < 0.025


def _seconds(document: bytes) -> float:
    began = time.process_time()
    read(document)
    return time.process_time() - began


def check(reading: Reading) -> None:
    """Well-formed, whatever was read."""
    if reading.gpus is None:
        assert reading.uses is None
    elif reading.uses is None:
        assert all(_without_list(gpu) for gpu in reading.gpus)
    assert all(type(report) is str and report for report in reading.reports)
    uuids = {gpu.get("uuid") for gpu in reading.gpus or ()}
    for gpu in reading.gpus or ():
        assert conforms("Gpu", gpu) == []
    for use in reading.uses or ():
        assert conforms("GpuUse", {field: use[field] for field in use if field not in {"pid", "name"}}) == []
        assert use["uuid"] in uuids
        assert type(use["pid"]) is int
        assert type(use.get("name", "")) is str


def _without_list(gpu):
    failed = "processes" in gpu.get("failed_fields", ())
    return failed or gpu.get("processes_listed") is False or "fault" in gpu or gpu.get("mig_enabled")


# Without the long lists of clocks, so that a cut falls where it matters.
SHORT = [name for name in DOCUMENTS if len(capture(name)) < 25_000] or ["none"]
many = settings(max_examples=150, deadline=None)


@needs_documents
@many
@given(st.sampled_from(SHORT), st.floats(0, 1))
def test_a_cut_document_gives_nothing_but_the_truth(name, share):
    document = capture(name)
    whole = {gpu["uuid"]: gpu for gpu in read(document).gpus}
    reading = read(document[: int(share * len(document))])
    check(reading)
    for gpu in reading.gpus or ():
        told = {field: value for field, value in gpu.items() if not field.startswith("failed_")}
        assert {field: whole[gpu["uuid"]][field] for field in told} == told
        cut = set(gpu.get("failed_fields", ())) - set(whole[gpu["uuid"]].get("failed_fields", ()))
        assert cut <= {"utilization_ratio", "memory_used_bytes", "processes"}
        missing = {"utilization_ratio", "memory_used_bytes"} & set(whole[gpu["uuid"]]) - set(gpu)
        assert missing <= cut, "what was cut off looks as if the card did not have it"


@needs_documents
@pytest.mark.parametrize("step", range(7))
def test_gpus_before_the_cut_are_complete(step):
    document = capture(H100)
    whole = read(document).gpus
    starts = [match.start() for match in re.finditer(b"<gpu id", document)]
    cut = starts[step] + (starts[step + 1] - starts[step]) * 3 // 4
    reading = read(document[:cut])
    assert reading.gpus[:step] == whole[:step]
    assert len(reading.gpus) == step + 1
    assert reading.gpus[step]["memory_total_bytes"] == whole[step]["memory_total_bytes"]
    assert reading.reports == [f"nvidia-smi: its document ends early, in or after GPU {step}"]


@needs_documents
@many
@given(st.sampled_from(SHORT), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=20))
def test_flipped_bytes_do_no_harm(name, flips):
    document = bytearray(capture(name))
    for share, byte in flips:
        document[int(share * (len(document) - 1))] = byte
    check(read(bytes(document)))


@needs_documents
@many
@given(st.sampled_from(SHORT), st.floats(0, 1), st.floats(0, 1), st.binary(max_size=40))
def test_a_hole_with_anything_in_it_does_no_harm(name, one, other, filling):
    document = capture(name)
    start, end = sorted((int(one * len(document)), int(other * len(document))))
    check(read(document[:start] + filling + document[end:]))
