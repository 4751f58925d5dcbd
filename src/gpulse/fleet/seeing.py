"""Processes as somebody sees them: here, and nowhere else, what is hidden of others is taken away."""

from collections.abc import Sequence
from typing import NamedTuple

from gpulse.fleet.jobs import job_of
from gpulse.fleet.model import Process, Report
from gpulse.fleet.sight import SOMEBODY, Sight

ADMINS_ONLY = "only admins are told more"
# As they are, at "names". Named are what stays: a new field of the probe is hidden until somebody has thought about it.
_WITH_A_NAME = (
    "pid",
    "parent_pid",
    "user",
    "uid",
    "start_time",
    "nice",
    "state",
    "cpu_seconds_total",
    "memory_bytes",
    "vanished",
    "children",
    "gpus",
)


def seen(processes: Sequence[Process], sight: Sight) -> Sequence[Process]:
    """One for each, in their order."""
    return processes if sight.level == "full" else [seen_one(process, sight) for process in processes]


class SeenTexts(NamedTuple):
    """The texts of a process by which filters find it."""

    user: str | None
    command: str | None
    name: str | None
    job: str | None


def seen_texts(process: Process, name: str | None, sight: Sight) -> SeenTexts:
    """Return the texts that `seen_one` leaves of a process whose name is now `name`; cheaper than that."""
    if sight.level == "full" or process.user in sight.own:
        return SeenTexts(process.user, process.command, name, job_of(process.cgroup))
    if sight.level == "names":
        program = _program(name, process.command)
        return SeenTexts(process.user, program, program, job_of(process.cgroup))
    return SeenTexts(SOMEBODY, None, None, None)


def seen_one(process: Process, sight: Sight) -> Process:
    if sight.level == "full" or process.user in sight.own:
        return process
    return _named(process) if sight.level == "names" else _nameless(process)


def _named(process: Process) -> Process:
    program = _program(process.name, process.command)
    job = job_of(process.cgroup)
    # A control group may be named after a container, and that after anything.
    group = None if job is None else f"/slurm/job_{job}"
    kept = {field: getattr(process, field) for field in _WITH_A_NAME}
    return Process(name=program, command=program, cgroup=group, **kept)


def _nameless(process: Process) -> Process:
    # Who knows a pid, a start or a CPU time finds the rest with ps.
    return Process(user=SOMEBODY, memory_bytes=process.memory_bytes, vanished=process.vanished, gpus=process.gpus)


def seen_reports(reports: Sequence[Report], sight: Sight) -> list[Report]:
    """What could not be read, without words that may name somebody: a login, a folder, a command."""
    if sight.level != "anonymous":
        return list(reports)
    return [Report(collector=report.collector, message="failed") for report in reports]


def seen_words(words: str, sight: Sight) -> str:
    """What a node, its connection or its login said, which may name somebody."""
    return ADMINS_ONLY if words and sight.level == "anonymous" else words


def _program(name: str | None, command: str | None) -> str | None:
    """Without its folder and arguments, which programs may write into their name as well."""
    words = (name or command or "").split(maxsplit=1)
    return (words[0].rsplit("/", 1)[-1] or None) if words else None
