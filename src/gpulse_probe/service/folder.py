"""The folder of a service: its files are written whole or not at all, and one change at a time is made."""

import errno
import fcntl
import os
import shutil
import time
from contextlib import contextmanager

LOCK = "lock"
LOCK_SECONDS = 60.0
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


class ServiceError(Exception):
    """What cannot be done, why, and what helps."""


class Folder:
    def __init__(self, path):
        self.path = path

    def file(self, name):
        return os.path.join(self.path, name)

    def exists(self):
        return os.path.isdir(self.path)

    def make(self):
        """Others have no business in it."""
        try:
            os.makedirs(self.path, 0o700, exist_ok=True)
        except OSError as error:
            raise cannot("make", self.path, error)

    def read(self, name):
        """The content, None where there is no such file."""
        try:
            with open(self.file(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot("read", self.file(name), error)

    def write(self, name, data, mode=0o600):
        """Whether it had other content before."""
        if self.read(name) == data:
            return False
        replace(self.file(name), data, mode)
        return True

    def delete(self, name):
        delete(self.file(name))

    def remove(self):
        """The folder and all that is in it; whether there was one."""
        if not self.exists():
            return False
        try:
            shutil.rmtree(self.path)
        except OSError as error:
            raise cannot("remove", self.path, error)
        try:
            # Ours too, when this was the last in it.
            os.rmdir(os.path.dirname(self.path))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise cannot("remove", os.path.dirname(self.path), error)
        return True

    @contextmanager
    def locked(self):
        """Two hubs, or cron and a hub, may want something of it at once."""
        try:
            descriptor = os.open(self.file(LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise cannot("write", self.file(LOCK), error)
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor):
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    # Some file servers have no locks: then it is left to luck that nobody else comes now.
                    return
                if time.monotonic() > end:
                    raise ServiceError("somebody else has been changing %s for %g s" % (self.path, LOCK_SECONDS))
            time.sleep(0.05)


def replace(path, data, mode):
    """Write a file so that whoever reads it sees the old or the new, never a half."""
    new = "%s.%d.new" % (path, os.getpid())
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            os.fchmod(descriptor, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            # A full file server may say so only here.
            os.close(descriptor)
        os.rename(new, path)
    except OSError as error:
        try:
            delete(new)
        except ServiceError:
            # What went wrong first says more.
            raise cannot("write", path, error)
        raise cannot("write", path, error)


def delete(path):
    """Whether it was there."""
    try:
        os.unlink(path)
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot("remove", path, error)


def cannot(what, path, error):
    fix = {
        errno.ENOSPC: "make room on the disk",
        errno.EDQUOT: "make room within the quota",
        errno.EROFS: "the file system is read-only: look at its mount",
        errno.EACCES: "see whose it is",
        errno.EPERM: "see whose it is",
    }.get(error.errno)
    return ServiceError("cannot %s %s: %s%s" % (what, path, error.strerror or error, "; " + fix if fix else ""))
