"""Which job a process belongs to, by its control group."""

import pytest

from gpulse.fleet.jobs import job_of
from gpulse_probe.proc_pid import parse_cgroup


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("/slurm/uid_1000/job_123/step_batch", "123"),
        ("/slurm_gn1/uid_20001/job_12/step_batch/task_0", "12"),
        ("/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0", "1234"),
        ("/system.slice/gn1_slurmstepd.scope/job_5/step_batch/user/task_0", "5"),
        ("/system.slice/slurmstepd.scope/job_77", "77"),
        ("/kubepods.slice/pod1/slurmstepd.scope/job_9/step_0", "9"),
        ("/system.slice/nightly_job_5.service", None),
        ("/system.slice/job_5.service", None),
        ("/system.slice/job_5/x", None),
        ("/user.slice/user-1000.slice/slurm_job_5", None),
        ("/system.slice/slurmd.service", None),
        ("/", None),
        (None, None),
    ],
)
def test_only_slurms_own_paths_are_jobs(cgroup: str | None, job: str | None):
    assert job_of(cgroup) == job


def test_a_service_named_job_tells_no_more_than_others():
    lines = b"5:devices:/system.slice/nightly_job_5.service\n0::/user.slice/user-1000.slice/session-2.scope\n"
    assert parse_cgroup(lines) == "/user.slice/user-1000.slice/session-2.scope"
    lines = b"6:freezer:/slurm_gn1/uid_1/job_1/step_batch\n0::/user.slice/user-1000.slice/session-2.scope\n"
    assert parse_cgroup(lines) == "/slurm_gn1/uid_1/job_1/step_batch"
