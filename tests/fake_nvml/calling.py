"""A process that calls the fake library for a test, through NVIDIA's own binding; and the tests' fixture for it."""

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from . import FakeNvml

# Reads an expression a line, answers with JSON; an NVML error is {"error": number}.
SERVER = """
import ctypes, json, os, sys, time
from pynvml import *

def gpu(index=0):
    return nvmlDeviceGetHandleByIndex(index)

def mig(index):
    return nvmlDeviceGetMigDeviceHandleByIndex(gpu(), index)

def plain(thing):
    if isinstance(thing, ctypes.Structure):
        return {field[0]: plain(getattr(thing, field[0])) for field in thing._fields_}
    if isinstance(thing, ctypes._SimpleCData):
        return thing.value
    if isinstance(thing, nvmlFriendlyObject):
        return {key: plain(value) for key, value in vars(thing).items()}
    if isinstance(thing, (list, tuple)):
        return [plain(item) for item in thing]
    return thing.decode() if isinstance(thing, bytes) else thing

def raw(name, *arguments):
    return getattr(ctypes.CDLL("libnvidia-ml.so.1"), name)(*arguments)

def field(identifier, scope=0):
    value = nvmlDeviceGetFieldValues(gpu(), [(identifier, scope)])[0]
    if value.nvmlReturn:
        return {"error": value.nvmlReturn}
    return value.value.uiVal if value.valueType == NVML_VALUE_TYPE_UNSIGNED_INT else value.value.ullVal

def gpm(*identifiers, take=nvmlGpmSampleGet, arguments=()):
    get = c_nvmlGpmMetricsGet_t(version=1, numMetrics=len(identifiers))
    get.sample1, get.sample2 = nvmlGpmSampleAlloc(), nvmlGpmSampleAlloc()
    for sample in (get.sample1, get.sample2):
        take(gpu(), *arguments, sample)
    for place, identifier in enumerate(identifiers):
        get.metrics[place].metricId = identifier
    nvmlGpmMetricsGet(get)
    return [m.value if m.nvmlReturn == 0 else {"error": m.nvmlReturn} for m in get.metrics[: len(identifiers)]]

def settle():
    time.sleep(0.04)

for line in sys.stdin:
    try:
        answer = plain(eval(line))
    except NVMLError as error:
        answer = {"error": error.value}
    print(json.dumps(answer), flush=True)
"""


class Caller:
    """A process that calls the fake library for us."""

    def __init__(self, fake: FakeNvml, initialise: bool = True) -> None:
        # A file, because a pipe that nobody reads would fill up and hold the process.
        self.said = fake.description.with_name(f"stderr-{id(self)}")
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVER],
                env=fake.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        if initialise:
            assert self("nvmlInit()") is None

    def ask(self, expression: str) -> None:
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def answered(self, seconds: float) -> bool:
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def answer(self) -> Any:
        assert self.answered(20), "no answer"
        line = self.process.stdout.readline()
        assert line, self.end()
        return json.loads(line)

    def __call__(self, expression: str) -> Any:
        self.ask(expression)
        return self.answer()

    def end(self) -> str:
        """What it said on stderr."""
        self.process.kill()
        self.process.communicate()
        return self.said.read_text(encoding="utf-8", errors="replace")


@pytest.fixture
def start(fake: FakeNvml) -> Iterator[Any]:
    """Describe, unless that was done before, and start a process that calls."""
    callers = []

    def begin(text: str | None = None, driver: FakeNvml = fake, initialise: bool = True) -> Caller:
        if text is not None:
            driver.describe(text)
        callers.append(Caller(driver, initialise))
        return callers[-1]

    yield begin
    for caller in callers:
        caller.end()
