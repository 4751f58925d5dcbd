"""What people may want to know of an agent: lines on standard error, each with its time, none twice in a row."""

import time

from gpulse_probe.printable import complain


class Log:
    def __init__(self):
        self._last = None

    def say(self, words):
        if words == self._last:
            return
        self._last = words
        try:
            complain("%s %s" % (time.strftime("%Y-%m-%d %H:%M:%S"), words))
        except OSError:
            # A full disk or a closed pipe: there is nowhere else to say it, and no reason to stop.
            return
