"""Replaces the agent's own file by the hub's, when that is newer and signed with the key this node was given."""

import os
import sys
import time

import gpulse_probe
from gpulse_probe.chance import fraction
from gpulse_probe.errand import Errand, ErrandFailed
from gpulse_probe.trust import SYSTEM

FETCH_SECONDS = 120.0
TRY_SECONDS = 30.0
AGAIN_SECONDS = 3600.0
# Not all nodes at once.
LEAST_SPREAD_SECONDS = 10.0
_MOST_BYTES = 4 << 20
_MOST_DIGITS = 18
# An HMAC with an empty key, or with one that can be guessed, is anybody's.
_SHORTEST_KEY = 32


class UpgradeFailed(Exception):
    """The agent stays as it is; the message says why."""


class Upgrade:
    """offer() what the hub's hello says; step() gives the command to become when the file has been replaced."""

    def __init__(self, hub, folder, log, trust=SYSTEM):
        self._hub = hub
        self._key_file = os.path.join(folder, "upgrade-key")
        self._log = log
        self._trust = trust
        self._archive = own_archive()
        self._version = None
        self._token = None
        self._at = None
        self._errand = None
        if self._archive is None:
            log.say("this agent does not upgrade itself: it does not run from a file of its own that it may write")

    def offer(self, version, token, spread):
        """The hub is there, with this version."""
        self._token = token
        if self._archive is None or numbers(version) <= numbers(gpulse_probe.__version__):
            self._version = self._at = None
        elif version != self._version:
            self._version = version
            self._at = time.monotonic() + fraction() * max(spread, LEAST_SPREAD_SECONDS)

    def wants(self):
        """What to wait for, and until when: (readable, moment), None where nothing is planned."""
        if self._errand is not None:
            return [self._errand], self._errand.due
        return [], self._at

    def step(self, connected):
        """The command line to become, once; None mostly."""
        if self._errand is None and not (connected and self._at is not None and time.monotonic() >= self._at):
            return None
        try:
            if self._errand is None:
                self._at, token = None, self._token
                self._errand = Errand(
                    lambda: fetch(self._hub, token, self._key_file, self._archive, self._trust), FETCH_SECONDS
                )
            version = self._errand.result()
        except (ErrandFailed, OSError) as failure:
            self._errand = None
            self._at = time.monotonic() + AGAIN_SECONDS
            self._log.say("cannot upgrade to %s: %s; trying again in an hour" % (self._version, failure))
            return None
        if version is None:
            return None
        self._errand = None
        self._log.say("upgraded from %s to %s" % (gpulse_probe.__version__, version.decode("ascii")))
        return own_command()

    def close(self):
        if self._errand is not None:
            self._errand.close()


def numbers(version):
    """A version in a form that compares: its numbers, up to the first that is none."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        # Python makes no numbers of thousands of digits, and no version has them.
        if not 0 < len(digits) <= _MOST_DIGITS:
            break
        found.append(int(digits))
    return tuple(found)


def own_archive():
    """The zip file this program runs from; None where it is none, or may not be replaced."""
    archive = getattr(gpulse_probe.__loader__, "archive", None)
    # The archive itself where it was booted from memory.
    if not isinstance(archive, str):
        return None
    archive = os.path.abspath(archive)
    replaceable = os.access(archive, os.W_OK) and os.access(os.path.dirname(archive), os.W_OK)
    return archive if replaceable else None


def own_command():
    """The command line of this process, to be run again."""
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    return [sys.executable] + [os.fsdecode(word) for word in words[1:]]


def fetch(hub, token, key_file, archive, trust):
    """Get the hub's agent, check it, and put it in the place of this one: in an errand. Its version as bytes.

    Nothing that came over the network is believed but what the signature covers: so its version is what it says itself
    when it is run, and an older one with the signature of its time is not taken.
    """
    import hashlib
    import hmac

    from gpulse_probe.http_request import request
    from gpulse_probe.refusal import refused

    try:
        with open(key_file, "rb") as file:
            key = file.read().strip()
    except OSError as error:
        raise UpgradeFailed("%s: %s" % (key_file, error.strerror))
    if len(key) < _SHORTEST_KEY:
        raise UpgradeFailed("%s is empty or cut off; run `gpulse agent install` again for this node" % key_file)
    answer = request(hub, "GET", "/agent", token, trust=trust, most_bytes=_MOST_BYTES)
    if answer.status != 200:
        raise UpgradeFailed(str(refused(answer.status, answer.headers, answer.body)))
    signature = hmac.new(key, answer.body, hashlib.sha256).hexdigest()
    given = answer.headers.get("x-gpulse-signature", "")
    if not hmac.compare_digest(signature.encode("ascii"), given.encode("latin-1", "replace")):
        raise UpgradeFailed("what the hub sent is not signed with the key in %s" % key_file)
    new = archive + ".new"
    try:
        _write(new, answer.body, os.stat(archive).st_mode & 0o777)
        version = _version_of(new)
        if numbers(version) <= numbers(gpulse_probe.__version__):
            raise UpgradeFailed("what the hub sent is %s, not newer than %s" % (version, gpulse_probe.__version__))
        os.rename(new, archive)
    except OSError as error:
        raise UpgradeFailed("%s: %s" % (new, error.strerror))
    finally:
        if os.path.exists(new):
            os.unlink(new)
    return version.encode("ascii")


def _write(path, data, mode):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _version_of(path):
    """What a program says it is, which shows that it runs here."""
    import subprocess

    try:
        ran = subprocess.run(  # noqa: S603 - this Python, with a file we wrote
            [sys.executable, path, "push", "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UpgradeFailed("what the hub sent does not end when it is run")
    words = ran.stdout.decode("ascii", "replace").split()
    if ran.returncode or len(words) != 2 or not numbers(words[1]):
        last = ran.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise UpgradeFailed("what the hub sent does not run here: %s" % (last or "exit code %d" % ran.returncode))
    return words[1]
