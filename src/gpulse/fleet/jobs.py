"""The job a process belongs to."""

import re

_SLURM_JOB = re.compile(r"job_([0-9]+)")


def job_of(cgroup: str | None) -> str | None:
    """The Slurm job, by the control group of the process."""
    # Most have none, which is seen faster than looked for.
    match = _SLURM_JOB.search(cgroup) if cgroup and "job_" in cgroup else None
    return match[1] if match else None
