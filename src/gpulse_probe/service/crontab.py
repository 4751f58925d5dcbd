"""The person's crontab: a few lines of ours between two comments, all others as they were."""

import re
import shlex
import zlib

from gpulse_probe.service import programs
from gpulse_probe.service.folder import ServiceError

KEEP_MINUTES = 5
# What the programs called crontab say where there is none yet.
_NONE_YET = re.compile(r"no crontab for|can't open|No such file")


class NoCrontab(ServiceError):
    """This person cannot have one."""


def put(service):
    """Have it started at boot, and every few minutes where it has ended. Whether the lines are new."""
    before = _read()
    after = _with(before, service.name, _block(service))
    if after == before:
        return False
    _write(after)
    return True


def take_away(service):
    """Whether there were lines."""
    try:
        before = _read()
    except NoCrontab:
        return False
    after = _with(before, service.name, b"")
    if after == before:
        return False
    _write(after)
    return True


def there(service):
    try:
        return _marker(service.name, "begin") in _read()
    except NoCrontab:
        return False


def _block(service):
    # Not all machines in the same minute: they may read the same file server.
    first = zlib.crc32(service.name.encode("utf-8")) % KEEP_MINUTES
    # In a crontab % ends the command.
    command = " ".join(map(shlex.quote, service.start_command("keep"))).replace("%", "\\%")
    lines = [
        _marker(service.name, "begin"),
        ("@reboot %s >/dev/null 2>&1\n" % command).encode("utf-8"),
        ("%d-59/%d * * * * %s >/dev/null 2>&1\n" % (first, KEEP_MINUTES, command)).encode("utf-8"),
        _marker(service.name, "end"),
    ]
    return b"".join(lines)


def _marker(name, which):
    return ("# %s: %s, made by gpulse\n" % (name, which)).encode("utf-8")


def _with(text, name, block):
    """The text with this block instead of ours; lines that are not ours stay, also among them."""
    begin, end = re.escape(_marker(name, "begin")), re.escape(_marker(name, "end"))
    ours = re.compile(b"^" + begin + b"(?:[^\n]* service keep [^\n]*\n)*(?:" + end + b")?", re.MULTILINE)
    found = ours.search(text)
    if found:
        return text[: found.start()] + block + text[found.end() :]
    if block and text and not text.endswith(b"\n"):
        text += b"\n"
    return text + block


def _read():
    ran = programs.run(["crontab", "-l"])
    if ran is None:
        raise NoCrontab("there is no crontab command")
    if ran.code == 0:
        return ran.output
    if _NONE_YET.search(ran.errors):
        return b""
    raise NoCrontab("crontab refuses (%s)" % (ran.errors.splitlines() or ["code %d" % ran.code])[0])


def _write(text):
    ran = programs.run(["crontab", "-"], text) if text else programs.run(["crontab", "-r"])
    if ran is None or ran.code:
        raise NoCrontab("crontab refuses (%s)" % (ran.errors.splitlines() or ["no reason"])[0] if ran else "it is gone")
