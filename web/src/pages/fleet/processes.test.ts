import { expect, test } from "vitest";
import { jobOf } from "./processes";

test.each([
  ["/slurm/uid_1000/job_123/step_batch", "123"],
  ["/slurm_gn1/uid_1000/job_7/step_0/task_0", "7"],
  ["/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0", "1234"],
  ["/system.slice/gn1_slurmstepd.scope/job_5", "5"],
  ["job_5", "5"],
])("%s is Slurm's job %s", (cgroup, job) => {
  expect(jobOf({ cgroup })).toBe(job);
});

test.each(["/system.slice/nightly_job_5.service", "/user.slice/job_5/x", "/docker/job_5", "", null])(
  "%s is no job of Slurm",
  (cgroup) => {
    expect(jobOf({ cgroup })).toBeNull();
  },
);
