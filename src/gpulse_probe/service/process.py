"""The process of a service, told by pid, start and boot: a pid alone may have passed on to another program."""

import os
import signal
import time
from collections import namedtuple

from gpulse_probe.service.folder import ServiceError
from gpulse_probe.system import System

PID = "pid"
END_SECONDS = 15.0
KILL_SECONDS = 5.0

Running = namedtuple("Running", "pid since")


def boot_id():
    return System().read_line("/proc/sys/kernel/random/boot_id") or "-"


def remember(folder):
    """This process is the service from now on."""
    pid = os.getpid()
    mark = "%d %d %s\n" % (pid, System().process_start(pid) or 0, boot_id())
    folder.write(PID, mark.encode("ascii"))


def running(folder):
    """The service's process, None where it does not run on this machine."""
    words = (folder.read(PID) or b"").split()
    if len(words) != 3 or not words[0].isdigit() or not words[1].isdigit():
        return None
    pid, start = int(words[0]), int(words[1])
    if words[2] != boot_id().encode("ascii") or System().process_start(pid) != start:
        return None
    return Running(pid, _since(start))


def end(folder):
    """End the service's process, by force where it does not go by itself. Whether there was one."""
    found = running(folder)
    if found is None:
        return False
    for number, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        try:
            os.kill(found.pid, number)
        except ProcessLookupError:
            return True
        except PermissionError:
            raise ServiceError("process %d belongs to somebody else and cannot be ended" % found.pid)
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if running(folder) != found:
                return True
            time.sleep(0.05)
    raise ServiceError("process %d does not end, not even by force: it hangs in the kernel" % found.pid)


def _since(start):
    """Ticks since boot as a time of day."""
    system = System()
    for line in system.read_text("/proc/stat").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) + start / float(system.clock_ticks())
    return None
