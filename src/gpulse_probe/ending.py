"""A signal ends this process by KeyboardInterrupt, but never in the middle of what must be done as a whole."""


class _Ending:
    def __init__(self):
        self._depth = 0
        self._wanted = False

    def on_signal(self, _number, _frame):
        """The handler of the signals that end it."""
        self._wanted = True
        if not self._depth:
            raise KeyboardInterrupt

    def __enter__(self):
        self._depth += 1

    def __exit__(self, kind, _error, _traceback):
        self._depth -= 1
        if self._wanted and not self._depth and kind is None:
            raise KeyboardInterrupt


# One, because a process has one set of signal handlers: `with ending:` around what must be whole.
ending = _Ending()
