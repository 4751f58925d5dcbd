"""Random numbers, so that many nodes do not act at once; the random module would cost half a megabyte."""

import os


def fraction():
    """Anything from 0 to 1."""
    return int.from_bytes(os.urandom(4), "little") / 4294967296.0
