"""The one door to the machine: every file, command, clock and user name is asked for here.

A System takes a root, so that a recorded machine can be replayed from a folder. Paths are given as on
the real machine ("/proc/stat"); what cannot be read raises OSError, which callers turn into "absent".
"""

import errno
import os
import pwd
import socket
import struct
import time
from collections import namedtuple

Space = namedtuple("Space", "total_bytes free_bytes available_bytes")

# The kernel's letters for a process that has ended and waits for its parent to notice.
DEAD = ("Z", "X", "x")
# The namespace the kernel starts with always has this number (PROC_PID_INIT_INO).
FIRST_PID_NAMESPACE = "pid:[4026531836]"


class System:
    def __init__(self, root="/"):
        self.root = root.rstrip("/")
        self._commands = None

    def path(self, path):
        return self.root + path

    def read_bytes(self, path, limit=1 << 20):
        """The file's content. Files in /proc tell no size and come a page at a time: only an empty read ends them."""
        descriptor = os.open(self.root + path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            pieces = []
            size = 0
            while size < limit:
                piece = os.read(descriptor, 16384)
                if not piece:
                    break
                pieces.append(piece)
                size += len(piece)
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def read_text(self, path, limit=1 << 20):
        return self.read_bytes(path, limit).decode("utf-8", "backslashreplace")

    def read_line(self, path):
        """A file of one value, as most of /sys is; None where it is not there or not readable."""
        try:
            return self.read_text(path).strip() or None
        except OSError:
            return None

    def names(self, path):
        """The entries of a folder, sorted; none where it does not exist."""
        try:
            return sorted(os.listdir(self.root + path))
        except OSError:
            return []

    def link(self, path):
        """Where a symbolic link leads, None where there is none."""
        try:
            return os.readlink(self.root + path)
        except OSError:
            return None

    def real_path(self, path):
        """The path with its links followed, still as seen below the root."""
        real = os.path.realpath(self.root + path)
        return real[len(self.root) :] if real.startswith(self.root) else real

    def exists(self, path):
        return os.path.exists(self.root + path)

    def owner(self, path):
        """The uid a file belongs to."""
        return os.stat(self.root + path).st_uid

    def space(self, path):
        """How big and how full the file system of a mount point is. May hang for ever on a network file system."""
        if self.root:
            return self._recorded_space(path)
        answer = os.statvfs(path)
        return Space(*(blocks * answer.f_frsize for blocks in (answer.f_blocks, answer.f_bfree, answer.f_bavail)))

    def _recorded_space(self, path):
        """From the recorded machine's /statvfs: lines of total, free and available bytes, and the mount point."""
        for line in self.read_text("/statvfs").splitlines():
            parts = line.split(None, 3)
            if len(parts) == 4 and parts[3] == path:
                return Space(*map(int, parts[:3]))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def find_program(self, name, usual_places=()):
        """The program's path: on PATH first, then in the places given; None where it is in neither."""
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep) + list(usual_places)
        for folder in folders:
            candidate = os.path.join(self.root + folder, name)
            if folder and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
        return None

    def run(self, command, seconds, page):
        """Run a command to its end: its exit code and stdout. DeadlinePassed after so many seconds.

        page: where a command that cannot be ended is remembered.
        """
        if self._commands is None:
            # Most probes never run a command; what it takes to run one is 1 MB.
            from gpulse_probe.commands import Commands

            self._commands = Commands(self.process_start)
        return self._commands.run(command, seconds, page)

    def process_start(self, pid):
        """When a living process of this machine was started, in ticks since boot; None where there is none."""
        from gpulse_probe.proc_pid import parse_stat

        try:
            with open("/proc/%d/stat" % pid, "rb") as file:
                stat = parse_stat(file.read())
        except OSError:
            return None
        return None if stat is None or stat.state in DEAD else stat.start_ticks

    def process_exists(self, pid):
        """Whether the kernel knows the pid, even where /proc hides it; None where this cannot be told.

        In a container's own pid namespace the driver's pids mean nothing.
        """
        if self.root:
            return self.exists("/proc/%d" % pid)
        if self.link("/proc/self/ns/pid") not in (FIRST_PID_NAMESPACE, None):
            return None
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            return False
        return True

    def user_name(self, uid):
        """The login name of a uid, None where it has none. May hang where people come from a directory server."""
        if self.root:
            return self._recorded_user_name(uid)
        try:
            return pwd.getpwuid(uid).pw_name
        except (KeyError, OverflowError):
            return None

    def _recorded_user_name(self, uid):
        try:
            lines = self.read_text("/etc/passwd").splitlines()
        except OSError:
            return None
        for line in lines:
            parts = line.split(":")
            if len(parts) > 2 and parts[2] == str(uid):
                return parts[0]
        return None

    def address_dump(self):
        """The kernel's answer to "all addresses of all interfaces" (netlink RTM_GETADDR), as raw messages."""
        if self.root:
            return self.read_bytes("/netlink/addresses")
        request = struct.pack("=LHHLLB3x4x", 24, 22, 0x301, 1, 0, 0)
        link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        try:
            link.settimeout(1.0)
            link.send(request)
            pieces = []
            while True:
                piece = link.recv(65536)
                pieces.append(piece)
                # A dump ends with a message of type 3 (NLMSG_DONE), always the last of its piece.
                if len(piece) < 16 or piece[4:6] in (b"\x03\x00", b"\x02\x00") or _last_type(piece) == 3:
                    return b"".join(pieces)
        finally:
            link.close()

    def hostname(self):
        if self.root:
            return self.read_line("/proc/sys/kernel/hostname")
        return os.uname().nodename

    def architecture(self):
        if self.root:
            return self.read_line("/proc/sys/kernel/arch")
        return os.uname().machine

    def clock_ticks(self):
        """The ticks a second in which /proc counts CPU time; Linux tells programs 100 on every machine of today."""
        return 100 if self.root else os.sysconf("SC_CLK_TCK")

    def page_size(self):
        """The bytes of a page, in which /proc counts memory; recorded machines have those of x86."""
        return 4096 if self.root else os.sysconf("SC_PAGE_SIZE")

    def time(self):
        return time.time()

    def monotonic(self):
        return time.monotonic()


def _last_type(messages):
    """The type of the last netlink message in a piece."""
    offset = 0
    kind = 0
    while offset + 16 <= len(messages):
        length, kind = struct.unpack_from("=LH", messages, offset)
        if length < 16:
            break
        offset += (length + 3) & ~3
    return kind
