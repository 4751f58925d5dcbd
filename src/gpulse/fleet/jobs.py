"""The job a process belongs to."""

import re

# /slurm/uid_1000/job_123/step_0 of control groups version 1, with the node's name where one machine runs several
# (/slurm_gn1/…); /system.slice/slurmstepd.scope/job_123/step_0 or gn1_slurmstepd.scope of version 2.
_SLURM_JOB = re.compile(r"/(?:slurm[^/]*/uid_[0-9]+|[^/]*slurmstepd\.scope|slurm[^/]*)/job_([0-9]+)(?:/|$)")


def job_of(cgroup: str | None) -> str | None:
    """Return the Slurm job, by the control group of the process."""
    # Most have none, and a plain search sees that faster.
    match = _SLURM_JOB.search(cgroup) if cgroup and "/job_" in cgroup else None
    return match[1] if match else None
