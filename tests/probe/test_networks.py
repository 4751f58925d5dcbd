import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe import aside
from gpulse_probe.collectors.networks import Networks, parse_addresses, parse_counters, parse_names, parse_number
from gpulse_probe.system import System
from tests.conform import conforms
from tests.recorded import FOLDER, MACHINES, expected, machine

HEADING = b"Inter-|\n face |\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """These tests are about the answers, however busy this machine is; test_aside.py is about the waiting."""
    monkeypatch.setattr(aside, "FIRST_PATIENCE_SECONDS", 20.0)
    monkeypatch.setattr(aside, "PATIENCE_SECONDS", 20.0)


def quiet(_message):
    """For tests that are not about reports."""


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(name):
    reports = []
    collected = Networks(machine(name)).collect(0.0, reports.append)
    assert collected == expected(name, "networks")
    assert conforms("Host", collected) == []
    told = ["the kernel does not tell the addresses of the interfaces: No such file or directory"]
    assert reports == (told if name == "container" else [])


def test_this_machine():
    system = System()
    collector = Networks(system)
    networks = collector.collect(0.0, pytest.fail)["networks"]
    names = {name.decode() for name in parse_names(system.read_bytes("/proc/net/dev").split(b"\n"))}
    assert {network["interface"] for network in networks} <= names - {"lo"}
    assert conforms("Host", {"networks": networks}) == []
    again = {network["interface"]: network for network in collector.collect(1.0, pytest.fail)["networks"]}
    for network in networks:
        assert again[network["interface"]]["received_bytes_total"] >= network["received_bytes_total"]


def test_the_kernel_answers_with_addresses_of_this_machine():
    messages = System().address_dump()
    assert b"\x7f\x00\x00\x01" in messages
    addresses = [address for own in parse_addresses(messages).values() for address in own]
    assert "127.0.0.1" not in addresses
    assert not [address for address in addresses if address.startswith("fe80:")]


def write_interface(root, name, counters="0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", **files):
    table = root / "proc/net/dev"
    table.parent.mkdir(parents=True, exist_ok=True)
    before = table.read_bytes() if table.exists() else HEADING
    table.write_bytes(before + f"{name}: {counters}\n".encode())
    folder = root / "sys/class/net" / name
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_text(f"{content}\n")


@pytest.mark.parametrize(
    ("files", "up"),
    [
        ({"operstate": "up"}, True),
        ({"operstate": "lowerlayerdown", "carrier": 1}, False),
        ({"operstate": "unknown", "carrier": 1}, True),
        ({"operstate": "unknown", "carrier": 0, "flags": "0x1043"}, False),
        ({"operstate": "unknown", "flags": "0x1043"}, True),
        ({"operstate": "unknown", "flags": "0x1002"}, False),
        ({"operstate": "unknown"}, None),
        ({}, None),
    ],
)
def test_up(tmp_path, files, up):
    write_interface(tmp_path, "eth0", **files)
    (network,) = Networks(System(str(tmp_path))).collect(0.0, quiet)["networks"]
    assert network.get("up") == up


@pytest.mark.parametrize(("speed", "bits"), [(100000, 100000000000), (-1, None), (0, None), (4294967295, None)])
def test_speed(tmp_path, speed, bits):
    write_interface(tmp_path, "eth0", speed=speed)
    (network,) = Networks(System(str(tmp_path))).collect(0.0, quiet)["networks"]
    assert network.get("speed_bits_per_second") == bits


def test_counters_are_read_at_every_tick_and_the_rest_every_ten_seconds(tmp_path):
    write_interface(tmp_path, "eth0", operstate="up")
    collector = Networks(System(str(tmp_path)))
    collector.collect(0.0, quiet)
    (tmp_path / "sys/class/net/eth0/operstate").write_text("down\n")
    (tmp_path / "proc/net/dev").write_bytes(HEADING + b"eth0:7 0 1 0 0 0 0 0 8 0 2 0 0 0 0 0\n")
    reports = []
    (network,) = collector.collect(9.9, reports.append)["networks"]
    assert network == {
        "interface": "eth0",
        "up": True,
        "received_bytes_total": 7,
        "received_errors_total": 1,
        "sent_bytes_total": 8,
        "sent_errors_total": 2,
    }
    assert len(reports) == 1
    assert collector.collect(10.0, reports.append)["networks"][0]["up"] is False


def test_an_interface_that_went_away_is_not_shown(tmp_path):
    write_interface(tmp_path, "eth0")
    collector = Networks(System(str(tmp_path)))
    assert len(collector.collect(0.0, quiet)["networks"]) == 1
    (tmp_path / "proc/net/dev").write_bytes(HEADING)
    assert collector.collect(1.0, quiet)["networks"] == []


def test_many_interfaces_are_read_to_the_last(tmp_path):
    for number in range(200):
        write_interface(tmp_path, f"eth{number}", counters=f"{number} " + "0 " * 15)
    networks = Networks(System(str(tmp_path))).collect(0.0, quiet)["networks"]
    assert {network["interface"]: network["received_bytes_total"] for network in networks} == {
        f"eth{number}": number for number in range(200)
    }


def test_addresses_of_a_point_to_point_link_and_of_messages_cut_short():
    messages = (FOLDER / "workstation/root/netlink/addresses").read_bytes()
    assert parse_addresses(messages) == {
        2: ["192.168.1.20", "fd12:3456::20"],
        4: ["192.168.122.1"],
        5: ["10.8.0.2"],
    }
    for end in range(len(messages)):
        parse_addresses(messages[:end])


def test_numbers():
    assert [parse_number(text) for text in ("7", "-1", "", "x", "1.5")] == [7, None, None, None, None]


@given(st.binary())
def test_any_bytes(data):
    lines = data.split(b"\n")
    interfaces = {name: {"interface": "eth0"} for name in [*parse_names(lines), b"eth0"]}
    assert conforms("Host", {"networks": parse_counters(lines, interfaces)}) == []
    assert conforms("Host", {"networks": parse_counters([b"", b"", b"eth0:" + data], interfaces)}) == []
    for addresses in parse_addresses(data).values():
        assert conforms("Network", {"addresses": addresses}) == []


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(19, 21), st.binary(max_size=40))))
def test_any_messages(messages):
    data = b"".join(struct.pack("=LHHLL", length, kind, 2, 1, 1) + body for length, kind, body in messages)
    for addresses in parse_addresses(data).values():
        assert conforms("Network", {"addresses": addresses}) == []
