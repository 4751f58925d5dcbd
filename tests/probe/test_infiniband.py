import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe import aside
from gpulse_probe.collectors.infiniband import Infiniband, parse_counter, parse_rate, parse_state
from gpulse_probe.system import System
from tests.conform import conforms
from tests.recorded import FOLDER, MACHINES, expected, machine


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """These tests are about the answers, however busy this machine is; test_aside.py is about the waiting."""
    monkeypatch.setattr(aside, "FIRST_PATIENCE_SECONDS", 20.0)
    monkeypatch.setattr(aside, "PATIENCE_SECONDS", 20.0)


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(name):
    collected = Infiniband(machine(name)).collect(0.0, pytest.fail)
    assert collected == expected(name, "infiniband")
    assert collected is None or conforms("Host", collected) == []


def test_this_machine():
    collected = Infiniband(System()).collect(0.0, pytest.fail)
    assert collected is None or conforms("Host", collected) == []


def test_data_are_read_at_every_tick_and_the_rest_every_ten_seconds(tmp_path):
    shutil.copytree(FOLDER / "epyc8/root/sys/class/infiniband/mlx5_0", tmp_path / "sys/class/infiniband/mlx5_0")
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    collector = Infiniband(System(str(tmp_path)))
    collector.collect(0.0, pytest.fail)
    (port / "counters/port_rcv_data").write_text("11\n")
    (port / "counters/port_xmit_data").unlink()
    (port / "state").write_text("2: INIT\n")
    (record,) = collector.collect(9.9, pytest.fail)["infiniband"]
    assert record["received_bytes_total"] == 44
    assert "sent_bytes_total" not in record
    assert record["state"] == "ACTIVE"
    assert collector.collect(10.0, pytest.fail)["infiniband"][0]["state"] == "INIT"


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400 Gb/sec (4X NDR)", 400000000000),
        ("2.5 Gb/sec (1X SDR)", 2500000000),
        ("100 Gb/sec", 100000000000),
        ("0 Gb/sec", None),
        ("400", None),
        ("-1 Gb/sec", None),
        ("²  Gb/sec", None),
    ],
)
def test_rate(text, rate):
    assert parse_rate(text) == rate


def test_counters_and_states():
    assert parse_counter("18446744073709551615\n") == 18446744073709551615
    assert parse_counter("N/A (no PMA)") is None
    assert parse_counter("²") is None
    assert parse_counter("") is None
    assert parse_state("4: ACTIVE") == "ACTIVE"
    assert parse_state("4: ACTIVE_DEFER\n") == "ACTIVE_DEFER"
    assert parse_state("") is None


@given(st.binary())
def test_any_bytes(data):
    text = data.decode("utf-8", "backslashreplace")
    for rate in (parse_rate(text), parse_rate(text + " Gb/sec"), parse_counter(text)):
        assert rate is None or (type(rate) is int and rate >= 0)
    assert parse_state(text) != ""
