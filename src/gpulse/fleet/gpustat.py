"""What `gpustat --json` prints, made into a Snapshot: a node can tell of itself with one line of shell."""

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from gpulse.errors import BadLine
from gpulse.fleet.node import MOST_GPUS, MOST_PROCESSES
from gpulse.fleet.weight import check_weight
from gpulse_probe.nvidia_smi.failures import ERRORS, NO_VALUE, plain
from gpulse_probe.proc_pid import COMMAND_BYTES, parse_command, parse_name
from gpulse_probe.schema import SCHEMA

_MIB = 1 << 20
# Some versions say "Not Supported" or "?" where there is no number.
_Number = float | str | None

# More than any card or process has; the driver's "no value" is a number near 2^64.
_LARGEST = 1e15
_LONGEST_TEXT = 256
# Looking for secrets takes up to 2 µs a character: what is longer in all is left out.
_MOST_COMMANDS_BYTES = 128 * 1024
_LOST = re.compile(r"\(\((.+)\)\)")
# A stray byte of a command line comes as half a pair, which is no JSON. Whole pairs and other escapes stay.
_HALF_PAIR = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])|\\u[dD][89a-fA-F][0-9a-fA-F]{2}", re.DOTALL
)
# Zones are whole quarters of an hour, from 12 hours behind to 14 before UTC.
_QUARTER = 900
_ZONES = (-12 * 3600, 14 * 3600)
_FAILED = "gpustat could not read it: it prints null for any error of the driver"
_DECADE = 10 * 365.25 * 86400


class _Process(msgspec.Struct):
    pid: int | None = None
    username: str | None = None
    command: str | None = None
    full_command: list[str] | str | None = None
    gpu_memory_usage: _Number = None
    cpu_memory_usage: _Number = None


class _Gpu(msgspec.Struct):
    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    temperature: _Number = msgspec.field(default=None, name="temperature.gpu")
    fan: _Number = msgspec.field(default=None, name="fan.speed")
    utilization: _Number | UnsetType = msgspec.field(default=UNSET, name="utilization.gpu")
    encoder: _Number = msgspec.field(default=None, name="utilization.enc")
    decoder: _Number = msgspec.field(default=None, name="utilization.dec")
    power: _Number = msgspec.field(default=None, name="power.draw")
    power_limit: _Number = msgspec.field(default=None, name="enforced.power.limit")
    memory_used: _Number | UnsetType = msgspec.field(default=UNSET, name="memory.used")
    memory_total: _Number = msgspec.field(default=None, name="memory.total")
    processes: list[_Process] | str | UnsetType | None = UNSET


class _Printed(msgspec.Struct):
    gpus: list[_Gpu]
    hostname: str | None = None
    driver_version: str | None = None
    query_time: str | None = None


# Early versions wrote numbers as text.
_decode = msgspec.json.Decoder(_Printed, strict=False).decode


def to_line(data: bytes, node: str, interval_seconds: float | None = None, now: float | None = None) -> bytes:
    """The Snapshot of a node whose gpustat printed this; BadLine where it is not what gpustat prints.

    `interval_seconds` is the time between two of them, where it is known. The worst that fits into a megabyte takes
    some hundred milliseconds: give it a thread.
    """
    printed = _read(data)
    reports: list[str] = []
    taken = _time(printed.query_time, time.time() if now is None else now, reports)
    gpus, processes = [], _Processes()
    for place, gpu in enumerate(printed.gpus):
        # Processes name their card; one that has told no UUID is known by its place.
        uuid = _text(gpu.uuid) or f"{node}/{place if gpu.index is None else gpu.index}"
        gpus.append(_known(_gpu(gpu, place, reports), uuid=uuid, driver_version=_text(printed.driver_version)))
        if isinstance(gpu.processes, list):
            processes.add(uuid, gpu.processes)
        elif gpu.processes is not None and not _is_error(gpu.processes):
            gpus[-1]["processes_listed"] = False
        if "fault" not in gpus[-1] and not isinstance(gpu.processes, list):
            reports.append(f"{_called(gpu, place)}: its driver does not tell gpustat who is on it")
    if processes.left_out:
        reports.append(f"{processes.left_out} names and command lines are left out: they are too long together")
    snapshot: dict[str, Any] = {
        "schema": SCHEMA,
        "node": node,
        "time": taken,
        "seq": round(taken * 1000),
        "probe": _known({"gpu_source": "gpustat"}, interval_seconds=interval_seconds),
        "host": _known({}, hostname=_text(printed.hostname)),
        "gpus": gpus,
        "reports": [{"collector": "gpustat", "message": message} for message in reports],
    }
    if not gpus or any(isinstance(gpu.processes, list) for gpu in printed.gpus):
        snapshot["processes"] = processes.found
    return msgspec.json.encode(snapshot)


def _read(data: bytes) -> _Printed:
    check_weight(data)
    if b"\\ud" in data or b"\\uD" in data:
        data = _HALF_PAIR.sub(lambda found: found[1] or rb"\ufffd", data)
    try:
        printed = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadLine(str(error)) from None
    except RecursionError:
        raise BadLine("it is nested too deeply") from None
    processes = sum(len(gpu.processes) for gpu in printed.gpus if isinstance(gpu.processes, list))
    if len(printed.gpus) > MOST_GPUS or processes > MOST_PROCESSES:
        raise BadLine(f"{len(printed.gpus)} GPUs and {processes} processes on one node are not believed")
    return printed


def _time(text: str | None, now: float, reports: list[str]) -> float:
    """When gpustat asked, by the node's clock; without one that can be read, now."""
    try:
        asked = datetime.fromisoformat(text) if text else None
        if asked is None:
            return round(now, 3)
        seconds = asked.replace(tzinfo=asked.tzinfo or UTC).timestamp()
        if asked.tzinfo is None:
            # It is the node's local time: in the zone that brings it nearest to now.
            zone = round((seconds - now) / _QUARTER) * _QUARTER
            seconds -= min(max(zone, _ZONES[0]), _ZONES[1])
        if abs(seconds - now) < _DECADE:
            return round(seconds, 3)
    except (ValueError, OverflowError):
        # As good as a time far away: told below.
        pass
    reports.append(f'query_time "{(text or "")[:40]}" is no time to be believed: the hub\'s clock is taken')
    return round(now, 3)


def _gpu(gpu: _Gpu, place: int, reports: list[str]) -> dict[str, Any]:
    said = _text(gpu.name)
    # A card that fell off the bus has "((GPU is lost))" in the place of its name.
    lost = _LOST.fullmatch(said or "")
    record = _known({"vendor": "nvidia"}, index=gpu.index, name=None if lost else said, fault=lost[1] if lost else None)
    for field, told, read in (
        ("memory_total_bytes", gpu.memory_total, _mebibytes),
        ("memory_used_bytes", gpu.memory_used, _mebibytes),
        ("utilization_ratio", gpu.utilization, _percent),
        ("encoder_utilization_ratio", gpu.encoder, _percent),
        ("decoder_utilization_ratio", gpu.decoder, _percent),
        ("temperature_celsius", gpu.temperature, _whole),
        ("fan_ratio", gpu.fan, _percent),
        ("power_watts", gpu.power, _number),
        ("power_limit_watts", gpu.power_limit, _number),
    ):
        value = None if isinstance(told, UnsetType) else read(told)
        if value is not None:
            record[field] = value
        elif isinstance(told, float):
            reports.append(f"{_called(gpu, place)}: {field} cannot be what gpustat says, {told:g}")
    failed = _failed(gpu, record)
    return record if lost or not failed else {**record, "failed_fields": failed, "failed_reason": _FAILED}


def _failed(gpu: _Gpu, record: Mapping[str, Any]) -> list[str]:
    """Name what could not be read: gpustat prints null for any error of the driver, a text where there is no value."""
    return [
        field
        for field, told in (
            ("memory_used_bytes", gpu.memory_used),
            ("utilization_ratio", gpu.utilization),
            ("processes", gpu.processes),
        )
        if told is None or (isinstance(told, float) and field not in record) or _is_error(told)
    ]


def _is_error(told: object) -> bool:
    """Whether it is a text that is neither a number nor says that there never is a value."""
    if not isinstance(told, str) or _number(told) is not None:
        return False
    said = plain(told.strip())  # type: ignore[no-untyped-call] # the probe has no annotations
    return said not in NO_VALUE or said in ERRORS


def _called(gpu: _Gpu, place: int) -> str:
    return f"GPU {place if gpu.index is None else gpu.index}"


def _number(told: _Number) -> float | None:
    """Text is a number, or says why there is none."""
    try:
        value = float(told) if told is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < _LARGEST else None


def _whole(told: _Number) -> int | None:
    value = _number(told)
    return None if value is None else round(value)


def _mebibytes(told: _Number) -> int | None:
    value = _whole(told)
    return None if value is None else value * _MIB


def _percent(told: _Number) -> float | None:
    value = _number(told)
    return None if value is None else value / 100


class _Processes:
    """Each process once, with all it holds."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self.left_out = 0
        self._by_pid: dict[int, dict[str, Any]] = {}
        self._bytes_left = _MOST_COMMANDS_BYTES

    def add(self, uuid: str, processes: list[_Process]) -> None:
        for process in processes:
            record = self._by_pid.get(process.pid) if process.pid is not None else None
            if record is None:
                record = self._new(process)
                self.found.append(record)
                if process.pid is not None:
                    self._by_pid[process.pid] = record
            record["gpus"].append(_known({"uuid": uuid}, memory_bytes=_mebibytes(process.gpu_memory_usage)))

    def _new(self, process: _Process) -> dict[str, Any]:
        told = process.full_command
        return _known(
            {"gpus": []},
            pid=process.pid,
            user=None if process.username == "?" else process.username or None,
            name=self._name(process.command or "?"),
            command=self._command([told] if isinstance(told, str) else told or ["?"]),
            # gpustat says 0 of what it may not read, and no process has no memory.
            memory_bytes=_whole(process.cpu_memory_usage) or None,
        )

    # As the probe tells them, with what looks like a secret masked: gpustat prints them as they are.

    def _name(self, told: str) -> str | None:
        if told == "?" or not self._can_take(len(told)):
            return None
        name: str = parse_name(told)  # type: ignore[no-untyped-call] # the probe has no annotations
        return name

    def _command(self, words: list[str]) -> str | None:
        arguments = "\0".join(words).encode()
        cut = len(arguments) > COMMAND_BYTES
        if words == ["?"] or not self._can_take(len(arguments)):
            return None
        command: str | None = parse_command(arguments[:COMMAND_BYTES] + b"\0", cut)  # type: ignore[no-untyped-call] # the probe has no annotations
        return command

    def _can_take(self, size: int) -> bool:
        if size > self._bytes_left:
            self.left_out += 1
            return False
        self._bytes_left -= size
        return True


def _text(value: str | None) -> str | None:
    return None if value is None or value == "?" or plain(value) in NO_VALUE else value[:_LONGEST_TEXT]  # type: ignore[no-untyped-call] # the probe has no annotations


def _known(record: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """With those of the others that are known."""
    return {**record, **{name: value for name, value in more.items() if value is not None}}
