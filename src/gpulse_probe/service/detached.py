"""A service kept without systemd: a process of its own session, and crontab lines that start it."""

import os

from gpulse_probe.service import crontab, log, process
from gpulse_probe.service.folder import ServiceError

STOPPED = "stopped"


class Detached:
    """The other of the two ways to keep a service."""

    name = "detached"

    def __init__(self, service):
        self._service = service
        self._folder = service.folder

    def put(self, notes):
        """Have it started at boot. Whether that was new."""
        try:
            return crontab.put(self._service)
        except crontab.NoCrontab as problem:
            notes.append("%s: it will not start again by itself, neither after a reboot nor after its end" % problem)
            return False

    def start(self):
        start(self._folder, self._service.start_command("run"))

    def stop(self):
        # Cron would start it again. A boot forgets it.
        self._folder.write(STOPPED, process.boot_id().encode("ascii"))
        process.end(self._folder)

    def take_away(self):
        """Leave nothing of it but the process. Whether there was something."""
        return crontab.take_away(self._service)


def stopped(folder):
    """Whether a person stopped it since the machine was started."""
    return folder.read(STOPPED) == process.boot_id().encode("ascii")


def start(folder, command):
    """Run a command that belongs to nobody: it outlives this process, its session and its terminal."""
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            raise ServiceError("cannot start a process: see the limits of this account (ulimit -u)")
        return
    code = 1
    try:
        os.setsid()
        # Not the leader of its session any more: it can never get a terminal.
        if os.fork():
            code = 0
        else:
            log.take_output(folder)
            os.closerange(3, 1024)
            os.chdir("/")
            os.execv(command[0], command)  # noqa: S606 - without a shell is what is wanted
    finally:
        os._exit(code)
