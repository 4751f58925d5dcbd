"""What people may want to know of an agent: lines on standard error, each with its time, none twice in a row."""

import os
import time

_ERRORS = 2


class Log:
    def __init__(self):
        self._last = None

    def say(self, words):
        if words == self._last:
            return
        self._last = words
        # Hubs and proxies may say anything, and this may be a terminal.
        plain = "".join(character if character.isprintable() else " " for character in words)
        line = "%s %s\n" % (time.strftime("%Y-%m-%d %H:%M:%S"), plain)
        try:
            os.write(_ERRORS, line.encode("utf-8", "backslashreplace"))
        except OSError:
            # A full disk or a closed pipe: there is nowhere else to say it, and no reason to stop.
            return
