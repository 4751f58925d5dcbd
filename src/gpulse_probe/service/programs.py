"""Runs the machine's own small programs: systemctl, loginctl, crontab."""

import os
import subprocess
from collections import namedtuple

from gpulse_probe.service.folder import ServiceError

SECONDS = 30.0
Ran = namedtuple("Ran", "code output errors")


def run(command, data=None, environment=None):
    """Its exit code and what it printed; None where there is no such program."""
    try:
        process = subprocess.Popen(  # noqa: S603 - a list of our own making, no shell
            command,
            stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Their words are looked at.
            env=dict(os.environ, LC_ALL="C", **(environment or {})),
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return None
    try:
        output, errors = process.communicate(data, SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise ServiceError("%s did not end within %g s" % (" ".join(command), SECONDS))
    return Ran(process.returncode, output, errors.decode("utf-8", "replace").strip())
