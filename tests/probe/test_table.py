"""The table: fits its width, says what is unknown, and never fails on a field that is missing."""

import copy
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.outlets.cells import in_ascii
from gpulse_probe.outlets.table import draw, duration, size, terminal_size

GIB = 1 << 30
SNAPSHOT = {
    "schema": 1,
    "node": "gpu07",
    "time": 1_700_000_000.0,
    "seq": 3,
    "host": {
        "os": "Ubuntu 22.04.4 LTS",
        "kernel": "5.15.0",
        "uptime_seconds": 1_050_000.0,
        "cpu_model": "AMD EPYC 7543",
        "cpu_sockets": 2,
        "cpu_cores": 64,
        "cpu_threads": 128,
        "cpu_user_seconds_total": 150.0,
        "cpu_idle_seconds_total": 850.0,
        "load_1m": 3.2,
        "memory_total_bytes": 503 * GIB,
        "memory_used_bytes": 480 * GIB,
        "swap_total_bytes": 8 * GIB,
        "swap_used_bytes": 0,
        "disks": [
            {"mount": "/", "kind": "nvme", "total_bytes": 900 * GIB, "used_bytes": 100 * GIB},
            {"mount": "/data", "kind": "network"},
        ],
        "networks": [{"interface": "bond0", "addresses": ["10.0.0.7"]}],
    },
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-0",
            "name": "NVIDIA A100-SXM4-80GB",
            "utilization_ratio": 0.97,
            "memory_total_bytes": 80 * GIB,
            "memory_used_bytes": 40 * GIB,
            "temperature_celsius": 64,
            "power_watts": 301.4,
            "power_limit_watts": 400.0,
        },
        {"index": 1, "uuid": "GPU-1", "name": "NVIDIA A100-SXM4-80GB", "fault": "GPU is lost"},
        {"index": 2, "uuid": "GPU-2", "name": "NVIDIA A100-SXM4-80GB", "mig_enabled": True},
        {"index": 2, "uuid": "MIG-1", "parent_uuid": "GPU-2", "mig_index": 0, "mig_profile": "3g.40gb"},
    ],
    "processes": [
        {
            "pid": 4711,
            "user": "alice",
            "command": "python train.py --config big.yaml",
            "start_time": 1_699_990_000.0,
            "gpus": [{"uuid": "GPU-0", "kinds": ["compute"], "memory_bytes": 39 * GIB, "sm_ratio": 0.9}],
        },
        {"pid": 99, "vanished": True, "gpus": [{"uuid": "GPU-2", "kinds": ["compute"], "memory_bytes": GIB}]},
    ],
    "reports": [{"collector": "nvidia_nvml", "message": "GPU 1: GPU is lost"}],
}
EARLIER = {"host": {"cpu_user_seconds_total": 100.0, "cpu_idle_seconds_total": 800.0}}


def visible(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_what_a_person_reads():
    text = draw(SNAPSHOT, EARLIER, 140, colour=False)
    lines = text.splitlines()
    assert lines[0].startswith("gpu07 · Ubuntu 22.04.4 LTS · 5.15.0 · up 12d 03h · ")
    assert lines[1] == "CPU  AMD EPYC 7543  2×32C/128T   50 %  load 3.20"
    assert lines[2] == "MEM  ██████████    480G /    503G   SWAP ░░░░░░░░░░      0B /      8G"
    assert lines[4].endswith("–  /data  network")
    rows = {line.split()[0]: line for line in lines if "A100" in line}
    assert " 97%  █████░░░░░     40G /     80G  64°C   301/400 W     –  alice 39G" in rows["0"]
    assert rows["1"].endswith("GPU is lost")
    assert any(line.strip().startswith("└ 3g.40gb") for line in lines)
    assert any(line.startswith("   4711  alice     0      39G   90%   2h 46m  python train.py") for line in lines)
    assert lines[-1] == "! nvidia_nvml: GPU 1: GPU is lost"


def test_columns_stand_under_their_titles():
    lines = draw(SNAPSHOT, None, 140, colour=False).splitlines()
    title = next(line for line in lines if line.startswith("GPU  MODEL"))
    row = next(line for line in lines if line.startswith("  0  NVIDIA"))
    assert title.index("TEMP") == row.index("64°C")
    assert row[: title.index("USED BY")].endswith("–  ")
    assert row[title.index("USED BY") :] == "alice 39G"


def columns(line):
    """What a terminal needs for a line, by the book."""
    widths = {"W": 2, "F": 2}
    marks = ("Mn", "Me", "Cf")
    return sum(widths.get(unicodedata.east_asian_width(c), 1) for c in line if unicodedata.category(c) not in marks)


@pytest.mark.parametrize("width", [1, 2, 40, 80, 120])
@pytest.mark.parametrize("colour", [True, False])
def test_fits_its_width(width, colour):
    text = draw(SNAPSHOT, EARLIER, width, colour)
    assert all(columns(visible(line)) <= width for line in text.split("\n"))
    assert ("\x1b[" in text) == (colour and width > 1)


def named(text):
    """A snapshot in which every text that comes from outside is this one."""
    snapshot = copy.deepcopy(SNAPSHOT)
    host = snapshot["host"]
    snapshot["node"] = host["os"] = host["kernel"] = host["cpu_model"] = text
    host["disks"][0].update(mount=text, kind=text)
    host["networks"][0].update(interface=text, addresses=[text])
    for gpu in snapshot["gpus"]:
        gpu.update({name: text for name in ("name", "mig_profile", "fault") if name in gpu})
    snapshot["processes"][0].update(user=text, command=text)
    snapshot["reports"][0].update(collector=text, message=text)
    return snapshot


ODD = st.text(st.sampled_from("a \x1b[]0;m2J\x07\n\r\x9b\u202e\ud800\udcff日本語Ａe\u0301\u200b░█"), max_size=60)


@given(text=ODD, width=st.integers(1, 200), colour=st.booleans())
def test_no_text_reaches_the_terminal_as_it_is(text, width, colour):
    """Neither control characters nor wide ones break the table, and none makes it run for ever."""
    drawn = draw(named(text), EARLIER, width, colour)
    for line in drawn.split("\n"):
        assert visible(line).isprintable()
        assert columns(visible(line)) <= width
    drawn.encode("utf-8")


def test_a_title_that_sets_the_terminal_is_written_out():
    lines = draw(named("evil \x1b]0;x\x07"), None, 200, colour=False).split("\n")
    assert lines[0].startswith("evil \\x1b]0;x\\x07 · ")
    assert lines[-1] == "! evil \\x1b]0;x\\x07: evil \\x1b]0;x\\x07"


def test_columns_stand_also_with_wide_letters():
    snapshot = copy.deepcopy(SNAPSHOT)
    snapshot["gpus"][0]["name"] = "日本語"
    lines = draw(snapshot, None, 140, colour=False).split("\n")
    starts = [columns(line[: line.index(" 97%")]) for line in lines if " 97%" in line]
    assert starts == [columns(line[: line.index("UTIL")]) for line in lines if "UTIL" in line]


def test_a_terminal_that_knows_only_ascii():
    text = in_ascii(draw(SNAPSHOT, EARLIER, 140, colour=False))
    assert text.isascii()
    assert "MEM  ##########    480G /    503G   SWAP ..........      0B /      8G" in text
    assert "2x32C/128T" in text


@pytest.mark.parametrize(
    ("environment", "size_wanted"),
    [
        ({}, (120, 50)),
        ({"COLUMNS": "77"}, (77, 50)),
        ({"COLUMNS": "-5", "LINES": "x"}, (120, 50)),
        ({"COLUMNS": "0", "LINES": "9"}, (120, 9)),
    ],
)
def test_size_of_what_is_no_terminal(monkeypatch, tmp_path, environment, size_wanted):
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with (tmp_path / "file").open("w") as file:
        assert terminal_size(file.fileno()) == size_wanted


def test_states_without_gpus():
    assert "No GPU found on this machine." in draw({**SNAPSHOT, "gpus": [], "processes": []}, None, 80, colour=False)
    unknown = {name: value for name, value in SNAPSHOT.items() if name not in ("gpus", "processes")}
    assert "The GPUs cannot be read at the moment." in draw(unknown, None, 80, colour=False)


@given(st.randoms(use_true_random=False))
def test_any_field_may_be_missing(random):
    snapshot = copy.deepcopy(SNAPSHOT)
    needed = {"index", "pid", "mount", "interface", "collector", "message", "time", "uuid"}

    def thin(record):
        for name in list(record):
            value = record[name]
            if name not in needed and random.random() < 0.3:
                del record[name]
            elif isinstance(value, dict):
                thin(value)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                for one in value:
                    thin(one)

    thin(snapshot)
    assert draw(snapshot, EARLIER, 100, colour=True)


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "–"), (0, "0B"), (999, "999B"), (1536, "1.5K"), (5 << 30, "5G"), (81559 << 20, "79.6G"), (3 << 50, "3.0P")],
)
def test_sizes(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0m 00s"), (61, "1m 01s"), (3600, "1h 00m"), (90_061, "1d 01h"), (-5, "0m 00s")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def row(gpu, **snapshot):
    """The line of one GPU."""
    text = draw({**SNAPSHOT, "gpus": [{"index": 0, "uuid": "GPU-0", "name": "X", **gpu}], **snapshot}, None, 300, False)
    return next(line for line in text.splitlines() if line.startswith("  0  X"))


def test_what_is_unknown_is_said_to_be():
    line = row({"failed_fields": ["utilization_ratio"], "failed_reason": "Unknown Error from Y"}, processes=[])
    assert line.endswith("unknown: utilization_ratio (Unknown Error from Y)")
    assert row({"processes_listed": False}, processes=[]).endswith("processes are not listed")
    hung = {"failed_fields": ["processes"], "failed_reason": "waiting for Z, 7 s", "age_seconds": 8.2}
    assert row(hung, processes=[]).endswith("unknown: processes (waiting for Z, 7 s), read 8 s ago")


def test_unknown_processes_are_not_none():
    without = {name: value for name, value in SNAPSHOT.items() if name != "processes"}
    assert "The processes on the GPUs are unknown." in draw(without, None, 120, colour=False)
    assert "unknown" not in draw({**without, "processes": []}, None, 120, colour=False)


def test_old_values_are_said_to_be():
    assert "(read 5 s ago)" in draw({**SNAPSHOT, "devices_age_seconds": 5.3}, None, 160, colour=False)
    assert "ago" not in draw({**SNAPSHOT, "devices_age_seconds": 1.0}, None, 160, colour=False)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [([GIB, GIB], "alice 2G"), ([None], "alice –"), ([None, None], "alice –"), ([None, 3 * GIB], "alice 3G+")],
)
def test_a_sum_over_unknowns_is_not_zero(sizes, told):
    processes = [
        {"pid": 5 + at, "user": "alice", "gpus": [{"uuid": "GPU-0", **({"memory_bytes": held} if held else {})}]}
        for at, held in enumerate(sizes)
    ]
    assert row({}, processes=processes).endswith(told)
