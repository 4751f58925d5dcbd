"""Lets a process end with the one that started it (prctl), so that none is left behind stuck in the driver."""

import ctypes
import os
import signal

_SET_PARENT_DEATH_SIGNAL = 1
_prctl = ctypes.CDLL(None).prctl


def end_with(parent):
    """End this process when `parent`, its parent, ends; also when that happened just now."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
