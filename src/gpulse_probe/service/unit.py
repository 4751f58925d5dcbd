"""The text of a systemd unit, in systemd's own ways of writing names and commands."""

import os
import re
import zlib

_TEXT = """\
# Made by gpulse; changes here are lost.
[Unit]
Description={about}
# Several machines may share this home.
ConditionHost={host}

[Service]
ExecStart={command}
Restart=always
RestartSec={pause}
TimeoutStopSec=20
CPUWeight={weight}

[Install]
WantedBy=default.target
"""
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+\Z")


def file_name(name):
    r"""A service's unit: bytes that a unit's name must not have become \xNN, as by systemd-escape."""
    safe = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.-"
    letters = [chr(byte) if byte in safe else "\\x%02x" % byte for byte in bytearray(name.encode("utf-8"))]
    return "".join(letters) + ".service"


def text(service):
    # After a fault of all nodes at once they must not all begin anew at once.
    pause = 5 + zlib.crc32(service.name.encode("utf-8")) % 11
    return _TEXT.format(
        about=_specifiers(service.about),
        host=_specifiers(os.uname().nodename),
        command=" ".join(map(quoted, service.start_command("run"))),
        pause=pause,
        weight=service.weight,
    )


def quoted(word):
    if _PLAIN.match(word):
        return word
    return '"%s"' % _specifiers(word.replace("\\", "\\\\").replace('"', '\\"')).replace("$", "$$")


def _specifiers(word):
    return word.replace("%", "%%")
