"""A service kept by the person's own systemd: started at boot where the person lingers, and after every end."""

import os

from gpulse_probe.service import programs, unit
from gpulse_probe.service.folder import ServiceError, cannot, delete, replace
from gpulse_probe.system import System

UNITS = "~/.config/systemd/user"
LINGERERS = "/var/lib/systemd/linger"


class Systemd:
    """One of the two ways to keep a service; the other is Detached."""

    name = "systemd"

    def __init__(self, service):
        self._service = service
        self._unit = unit.file_name(service.name)
        self._path = os.path.join(os.path.expanduser(UNITS), self._unit)
        self._wanted = os.path.join(os.path.expanduser(UNITS), "default.target.wants", self._unit)

    def put(self, _notes):
        """Have it started at boot. Whether that was new."""
        text = unit.text(self._service).encode("utf-8")
        changed = _content(self._path) != text
        if changed:
            try:
                os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            except OSError as error:
                raise cannot("make", os.path.dirname(self._path), error)
            replace(self._path, text, 0o644)
            self._must("daemon-reload")
        if not os.path.lexists(self._wanted):
            self._must("enable", self._unit)
            changed = True
        return changed

    def start(self):
        # A unit that failed before is not started by "start" for a while.
        self._try("reset-failed", self._unit)
        self._must("restart", self._unit)

    def stop(self):
        self._try("stop", self._unit)

    def take_away(self):
        """Leave nothing of it. Whether there was something."""
        there = os.path.lexists(self._path) or os.path.lexists(self._wanted)
        if not there:
            return False
        manager = answers()
        if manager:
            self._try("stop", self._unit)
        delete(self._wanted)
        delete(self._path)
        if manager:
            self._must("daemon-reload")
            self._try("reset-failed", self._unit)
        return True

    def _must(self, *words):
        ran = _systemctl(*words)
        if ran is None or ran.code:
            reason = ran.errors.splitlines() if ran else ["there is no systemctl"]
            raise ServiceError("systemctl --user %s: %s" % (" ".join(words), reason[0] if reason else ran.code))

    def _try(self, *words):
        """What may have nothing to do, and then says so by its code."""
        _systemctl(*words)


def answers():
    """Whether this person has a systemd here."""
    ran = _systemctl("show", "--property=Version")
    return ran is not None and ran.code == 0 and ran.output.startswith(b"Version=")


def person():
    """Who this is; a number will do where the account has no name."""
    return System().user_name(os.getuid()) or str(os.getuid())


def lingers():
    """Whether the person's systemd runs while nobody is logged in."""
    ran = programs.run(["loginctl", "show-user", person(), "--property=Linger"], environment=_places())
    if ran is not None and ran.code == 0:
        return ran.output.strip() == b"Linger=yes"
    return os.path.exists(os.path.join(LINGERERS, person()))


def enable_linger():
    """Ask for it, which many machines allow everybody. Whether it is so now."""
    programs.run(["loginctl", "--no-ask-password", "enable-linger"], environment=_places())
    return lingers()


def ends_all_at_logout():
    """Whether the machine ends all processes of a person who logs out."""
    ran = programs.run(["loginctl", "show-user", "--property=KillUserProcesses"], environment=_places())
    return ran is not None and ran.output.strip() == b"KillUserProcesses=yes"


def _systemctl(*words):
    return programs.run(["systemctl", "--user", *words], environment=_places())


def _places():
    """Where systemd is found; logins without PAM are not told."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or "/run/user/%d" % os.getuid()
    found = {"XDG_RUNTIME_DIR": folder}
    if "DBUS_SESSION_BUS_ADDRESS" not in os.environ and os.path.exists(folder + "/bus"):
        found["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=%s/bus" % folder
    return found


def _content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot("read", path, error)
