"""What can be done with a service: install, status, restart, stop, remove; each may be repeated at will."""

import json
import os
import time

from gpulse_probe.proc_pid import quote
from gpulse_probe.service import crontab, log, process, systemd
from gpulse_probe.service.detached import STOPPED, Detached, start, stopped
from gpulse_probe.service.folder import ServiceError
from gpulse_probe.service.services import SETTINGS
from gpulse_probe.service.systemd import Systemd

START_SECONDS = 20.0


def install(service, command, files, version=None, nice=0):
    """Write the files {name: (content, mode)}, have the command started at boot, and run it. What came of it.

    version: of a program that is not among the files, so that another one is started anew.
    """
    notes = []
    service.folder.make()
    with service.folder.locked():
        way, other = _choose(service, notes)
        known = service.settings()
        other.take_away()
        if known.get("by") != way.name:
            process.end(service.folder)
        changed = [service.folder.write(name, data, mode) for name, (data, mode) in sorted(files.items())]
        settings = {"command": command, "by": way.name, "version": version, "nice": nice}
        text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
        changed.append(service.folder.write(SETTINGS, text.encode("utf-8")))
        changed.append(way.put(notes))
        outcome = ("updated" if any(changed) else "started") if known else "installed"
        if not any(changed) and process.running(service.folder):
            outcome = "unchanged"
        else:
            _start(service, way)
        return _told(service, outcome, notes)


def status(service):
    if not _known(service):
        return {"outcome": "absent"}
    return _told(service, "running" if process.running(service.folder) else "stopped", [])


def restart(service):
    """Start it, or start it anew."""
    if not _known(service):
        return {"outcome": "absent"}
    with service.folder.locked():
        _start(service, _way(service))
        return _told(service, "running", [])


def stop(service):
    """Until it is restarted, or the machine is."""
    if not _known(service):
        return {"outcome": "absent"}
    with service.folder.locked():
        _way(service).stop()
        process.end(service.folder)
        return _told(service, "stopped", [])


def remove(service):
    """Take away everything, however much of it is there."""
    found = []
    if service.folder.exists():
        with service.folder.locked():
            found = [Systemd(service).take_away(), Detached(service).take_away(), process.end(service.folder)]
        # Not with the lock held: NFS keeps the files that are open.
        found.append(service.folder.remove())
    else:
        found = [Systemd(service).take_away(), Detached(service).take_away()]
    return {"outcome": "removed" if any(found) else "absent"}


def keep(folder, command):
    """What cron does: start it, unless it runs or is meant not to."""
    with folder.locked():
        if process.running(folder) is None and not stopped(folder):
            folder.delete(process.PID)
            start(folder, command)
            _until_it_runs(folder)


def run(folder):
    """Become the service: never returns."""
    settings = json.loads((folder.read(SETTINGS) or b"{}").decode("utf-8"))
    if not settings.get("command"):
        raise ServiceError("%s is not there or holds no command; install it again" % folder.file(SETTINGS))
    log.take_output(folder)
    process.remember(folder)
    os.chdir("/")
    os.nice(settings.get("nice") or 0)
    command = settings["command"]
    os.execv(command[0], command)  # noqa: S606 - without a shell is what is wanted


def _choose(service, notes):
    """How it is kept, and how it is not."""
    if not systemd.answers():
        return Detached(service), Systemd(service)
    if systemd.lingers() or systemd.enable_linger():
        return Systemd(service), Detached(service)
    user = systemd.person()
    notes.append(
        "systemd ends the services of %s at logout, so it runs detached; as root: loginctl enable-linger %s,"
        " then install again" % (user, quote(user))
    )
    if systemd.ends_all_at_logout():
        notes.append("this machine ends all processes at logout (KillUserProcesses=yes): it will not outlive a session")
    return Detached(service), Systemd(service)


def _known(service):
    return bool(service.settings()) or process.running(service.folder) is not None


def _way(service):
    return Systemd(service) if service.settings().get("by") == Systemd.name else Detached(service)


def _start(service, way):
    folder = service.folder
    way.stop()
    process.end(folder)
    folder.delete(process.PID)
    folder.delete(STOPPED)
    before = log.size(folder)
    way.start()
    found = _until_it_runs(folder)
    end = time.monotonic() + service.seconds
    while found and time.monotonic() < end:
        time.sleep(0.05)
        found = process.running(folder)
    if not found:
        # A long log was put aside at the start, and all of this one is new.
        said = log.last_lines(folder, before if log.size(folder) >= before else 0)
        raise ServiceError(
            "it ended right after its start%s; see %s" % (": " + said[-1] if said else "", folder.file(log.LOG))
        )


def _until_it_runs(folder):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        # First whether it has written its mark: a mark that comes after the look at it is not one of an end.
        if folder.read(process.PID):
            return process.running(folder)
        time.sleep(0.02)
    return None


def _told(service, outcome, notes):
    settings = service.settings()
    found = process.running(service.folder)
    told = {
        "outcome": outcome,
        "notes": notes,
        "by": settings.get("by"),
        "version": settings.get("version"),
        "command": settings.get("command"),
        "pid": found.pid if found else None,
        "since": found.since if found else None,
        "log": log.last_lines(service.folder),
        "folder": service.folder.path,
    }
    told["at_boot"] = systemd.lingers() if told["by"] == Systemd.name else crontab.there(service)
    return told
