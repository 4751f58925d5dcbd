"""Why a node is not green: one check after another, as far as they pass."""

import asyncio
import time
from typing import Literal

import asyncssh
import msgspec

import gpulse_probe
from gpulse.errors import NodeLost
from gpulse.fleet.model import Snapshot
from gpulse.transport import explain
from gpulse.transport.bundle import make_bundle
from gpulse.transport.dial import HostKeyUnknown
from gpulse.transport.explain import HOST_KEY, LOGIN, NAME, PORT, PROBE, PYTHON
from gpulse.transport.host_keys import fingerprint
from gpulse.transport.remote import Remote
from gpulse.transport.ssh import SETTINGS_SECONDS, START_SECONDS, Ssh, SshTarget
from gpulse.transport.ssh_options import Route
from gpulse.transport.stream import FirstLine, Lines

NVML, CLOCK = "NVML", "clock"
# In this order; what people read of each is in TITLES.
CHECKS = (NAME, PORT, HOST_KEY, LOGIN, PYTHON, NVML, CLOCK, PROBE)
TITLES = {
    NAME: "name resolves",
    PORT: "port answers",
    HOST_KEY: "host key",
    LOGIN: "login",
    PYTHON: "python",
    NVML: "NVML",
    CLOCK: "clock",
    PROBE: "probe",
}
# Rates and ages bear so much; logs that are compared do not bear much more.
LARGEST_CLOCK_DIFFERENCE = 5.0
NTP = "set it by NTP: timedatectl set-ntp true"
GPU_COLLECTORS = ("nvidia_nvml", "nvidia_smi", "devices")


class Check(msgspec.Struct, omit_defaults=True):
    """One check of a node. `seconds` is what it took, where that can be told."""

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    detail: str = ""
    fix: str = ""
    seconds: float | None = None


class Examination(msgspec.Struct):
    """A node's checks, up to the first that fails."""

    node: str
    address: str
    checks: list[Check]
    passed: bool


class Finding(msgspec.Struct):
    """An examination, and the unknown host key that ended it."""

    examination: Examination
    unknown: HostKeyUnknown | None = None


class _Steps:
    """Times the steps of a connection: a step that begins tells that the one before has passed."""

    deadline: asyncio.Timeout

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.overdue = explain.bad_settings("a command of a Match line does not end")
        self._step: str | None = None
        self._began = time.monotonic()

    def within(self, seconds: float, overdue: NodeLost) -> None:
        self.overdue = overdue
        self.deadline.reschedule(asyncio.get_running_loop().time() + seconds)
        if self._step in CHECKS and self._step not in {overdue.check, *(check.name for check in self.checks)}:
            self.passed(self._step)
        self._step = overdue.check
        self._began = time.monotonic()

    def connecting(self, detail: str) -> None:
        """The checks say enough."""

    def passed(self, name: str, detail: str = "") -> None:
        self.add(Check(name, "passed", detail, seconds=time.monotonic() - self._began))

    def failed(self, name: str, what: str, fix: str) -> None:
        self.add(Check(name, "failed", what, fix, time.monotonic() - self._began))

    def add(self, check: Check) -> None:
        done = {check.name for check in self.checks}
        # What a jump host does for us cannot be seen from here.
        skipped = [name for name in CHECKS[: CHECKS.index(check.name)] if name not in done]
        self.checks += [*(Check(name, "skipped") for name in skipped), check]


async def examine(ssh: Ssh, target: SshTarget) -> Finding:
    """All checks of a node, up to the first that fails; never raises for what is wrong with the node."""
    unknown = None
    address = target.host
    steps = _Steps()
    try:
        async with asyncio.timeout(SETTINGS_SECONDS) as steps.deadline:
            way = await ssh.route(target)
            address = f"{way.place.user}@{way.place.host}:{way.place.port}"
            await _connect(ssh, target, way, steps)
    except TimeoutError:
        _fail(steps, steps.overdue)
    except NodeLost as problem:
        unknown = problem if isinstance(problem, HostKeyUnknown) else None
        _fail(steps, problem)
    passed = all(check.outcome != "failed" for check in steps.checks)
    return Finding(Examination(target.name, address, steps.checks, passed), unknown)


def _fail(steps: _Steps, problem: NodeLost) -> None:
    name = problem.check if problem.check in CHECKS else PROBE
    if isinstance(problem.__cause__, asyncssh.PermissionDenied):
        # Nobody is asked for a key before the host has shown its own.
        steps.add(Check(HOST_KEY, "passed"))
    if name in {check.name for check in steps.checks}:
        # A shell may say after the login what others say before.
        name = PYTHON
    steps.failed(name, problem.what, problem.fix)


async def _connect(ssh: Ssh, target: SshTarget, way: Route, steps: _Steps) -> None:
    bundle = await asyncio.get_running_loop().run_in_executor(None, make_bundle)
    async with ssh.dialer.connection(way, steps) as connection:
        key = connection.get_server_host_key()
        steps.add(Check(HOST_KEY, "passed", fingerprint(key) if key else ""))
        steps.passed(LOGIN, f"as {way.place.user}" + (f" through {way.jump}" if way.jump else ""))
        steps.within(START_SECONDS, NodeLost(f"no probe started within {START_SECONDS:g} s", "", PYTHON))
        answer = FirstLine()
        arrived = 0.0

        def take(line: bytes) -> None:
            nonlocal arrived
            arrived = arrived or time.time()
            answer.take(line)

        reader = Lines(take, lambda _preamble: None)
        command = bundle.command("--once", "--node", target.name, python=target.python)
        ended = await Remote(reader.feed, lambda _message: None).run(connection, command, bundle.data)
        if answer.line is None:
            raise explain.ended(
                ended.status, ended.signal, f"{reader.preamble()}\n{ended.told}", target.python, way.place
            )
        try:
            snapshot = msgspec.json.decode(answer.line, type=Snapshot)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise NodeLost(f"its probe sent what is no snapshot: {problem}", "see its log", PROBE) from problem
        _judge(snapshot, arrived, steps)


def _judge(snapshot: Snapshot, arrived: float, steps: _Steps) -> None:
    python = snapshot.probe.python if snapshot.probe else None
    steps.passed(PYTHON, python or "")
    trouble = [report.message for report in snapshot.reports or () if report.collector in GPU_COLLECTORS]
    gpus = snapshot.gpus or []
    source = snapshot.probe.gpu_source if snapshot.probe else None
    if trouble and (not gpus or source != "nvml"):
        steps.failed(NVML, trouble[0] or "", "run nvidia-smi there; after a driver's update the node must be restarted")
        return
    cards = sum(gpu.parent_uuid is None for gpu in gpus)
    driver = next((f", driver {gpu.driver_version}" for gpu in gpus if gpu.driver_version), "")
    steps.add(Check(NVML, "passed", f"{cards} GPUs{driver}" if cards else "no GPU found"))
    difference = (snapshot.time or arrived) - arrived
    if abs(difference) > LARGEST_CLOCK_DIFFERENCE:
        way = "ahead of" if difference > 0 else "behind"
        steps.failed(CLOCK, f"{abs(difference):.0f} s {way} this machine's", NTP)
        return
    steps.add(Check(CLOCK, "passed", f"{difference:+.1f} s"))
    steps.add(Check(PROBE, "passed", f"version {gpulse_probe.__version__}"))
