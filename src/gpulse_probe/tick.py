"""The book of one tick: how long each collector took, how it ended, and what it has to report."""

from time import perf_counter

from gpulse_probe.shortening import bounded


class Tick:
    def __init__(self):
        self.collectors = []
        self.reports = []

    def run(self, name, collect, *arguments):
        """Call collect(*arguments, report): its data, or None where it is absent or has failed.

        Whatever goes wrong in one collector is told of and costs that collector only.
        """
        started = perf_counter()
        outcome = "data"

        def report(message):
            self.reports.append({"collector": name, "message": bounded(message)})

        before = len(self.reports)
        try:
            data = collect(*arguments, report)
        except Exception as error:  # noqa: BLE001 - a fault of one collector is data, and reaches the page
            data = None
            report("%s: %s" % (type(error).__name__, error) if str(error) else type(error).__name__)
        if data is None:
            outcome = "failed" if len(self.reports) > before else "absent"
        # A tenth of a millisecond is as much as anyone wants to know.
        duration = round(perf_counter() - started, 4)
        self.collectors.append({"name": name, "outcome": outcome, "duration_seconds": duration})
        return data
