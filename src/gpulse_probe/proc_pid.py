"""What the files of /proc/PID say: pure functions from their bytes, which may be any bytes."""

import re
from collections import namedtuple

from gpulse_probe.masking import MASK, mask

Stat = namedtuple("Stat", "name state parent group session cpu_ticks nice start_ticks resident_pages")

COMMAND_LENGTH = 4096
# Far more than is shown, as masking may shorten it much.
COMMAND_BYTES = 32768
_NAME_LENGTH = 256

_SHELL_SAFE = re.compile(r"[\w@%+=:,./\-]*$")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'"}

# A control group that says which job or container it is, rather than where a service manager put it.
_TELLING = re.compile(
    r"slurm|kubepods|docker|libpod|podman|crio|containerd|lxc|pbs|torque|lsf|sge|condor|/job[_.-]?[0-9]"
)


def parse_stat(data):
    """The Stat of a process, None where the text is not one. The name may hold brackets, blanks and newlines."""
    opened = data.find(b"(")
    closed = data.rfind(b")")
    fields = data[closed + 1 :].split(None, 22)
    if opened < 0 or closed < opened or len(fields) < 22:
        return None
    try:
        return Stat(
            data[opened + 1 : closed],
            fields[0].decode("ascii"),
            int(fields[1]),
            int(fields[2]),
            int(fields[3]),
            int(fields[11]) + int(fields[12]),
            int(fields[16]),
            int(fields[19]),
            int(fields[21]),
        )
    except ValueError:
        return None


def parse_uid(data):
    """The real uid of /proc/PID/status: who started the program, also where it runs with another's rights."""
    start = 0 if data.startswith(b"Uid:") else data.find(b"\nUid:") + 1
    fields = data[start:].split(b"\n", 1)[0].split()
    if len(fields) < 2 or fields[0] != b"Uid:" or not fields[1].isdigit() or len(fields[1]) > 10:
        return None
    return int(fields[1])


def parse_boot_time(data):
    """Seconds since 1970 at which the machine started, of /proc/stat."""
    start = 0 if data.startswith(b"btime ") else data.find(b"\nbtime ") + 1
    fields = data[start:].split(b"\n", 1)[0].split()
    if len(fields) != 2 or fields[0] != b"btime" or not fields[1].isdigit() or len(fields[1]) > 12:
        return None
    return int(fields[1])


def parse_pids(data):
    return [int(word) for word in data.split() if word.isdigit() and len(word) < 10]


def parse_cgroup(data):
    """The control group that tells most: the only one on version 2, the most telling of the many on version 1."""
    best = None
    best_rank = ()
    for line in data.split(b"\n"):
        parts = line.split(b":", 2)
        if len(parts) < 3 or not parts[2].startswith(b"/"):
            continue
        path = printable(parts[2].decode("utf-8", "surrogateescape"))
        # Of two that tell as much, the one of version 2: controllers are moved about, it is not.
        rank = (_TELLING.search(path) is not None, path.startswith("/user.slice"), len(path), parts[0] == b"0")
        if best is None or rank > best_rank:
            best, best_rank = path, rank
    return best


def parse_command(data, cut=False):
    """The command line as a person would type it, secrets masked; None where there is none.

    cut: there is more of it than data. Masking looks at less than COMMAND_BYTES, so half a secret is not shown.
    """
    arguments = _arguments(data)
    if not arguments:
        return None
    masked = mask([argument.decode("utf-8", "surrogateescape") for argument in arguments])
    # A single one is most likely a title the program gave itself: quotes would only be in the way.
    text = printable(masked[0]) if len(masked) == 1 else " ".join(map(quote, masked))
    if cut or len(text) > COMMAND_LENGTH:
        text = text[: COMMAND_LENGTH - 1] + "…"
    return text


def _arguments(data):
    bare = data.rstrip(b"\0")
    if not bare:
        return []
    arguments = bare.split(b"\0")
    empty = len(data) - len(bare) - 1
    # A few are empty arguments at the end; many are what was left free by a title shorter than the arguments.
    if len(arguments) > 1 and 0 < empty < 4:
        arguments += [b""] * empty
    return arguments


def parse_name(text):
    """A program's name for people to read; programs write all sorts of things into it."""
    text = printable(mask([text])[0])
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"


def quote(text):
    """One argument as a shell would want it typed."""
    if not text:
        return "''"
    if text.isprintable():
        if _SHELL_SAFE.match(text.replace(MASK, "")):
            return text
        if "'" not in text:
            return "'" + text + "'"
        if not any(character in text for character in '"$`\\!'):
            return '"' + text + '"'
        return "'" + text.replace("'", "'\"'\"'") + "'"
    return "$'" + "".join(_ESCAPES.get(character) or printable(character) for character in text) + "'"


def printable(text):
    """The text with control characters and stray bytes written out: \\n, \\x1b, \\xff, \\u202e."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character):
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is no UTF-8, as "surrogateescape" keeps it.
        code -= 0xDC00
    elif character in _ESCAPES:
        return _ESCAPES[character]
    if code < 0x100:
        return "\\x%02x" % code
    return "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code
