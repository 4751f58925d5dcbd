"""The probe's command line: one Snapshot, or one a tick, as JSON or as a table."""

import signal
import sys

from gpulse_probe import __version__, options
from gpulse_probe.outlets import stream
from gpulse_probe.sampler import Sampler
from gpulse_probe.system import System


def main(arguments=None, program="gpulse-probe"):
    chosen = options.read(sys.argv[1:] if arguments is None else arguments, program)
    if chosen.help or chosen.version:
        sys.stdout.write(options.HELP.format(program=program) if chosen.help else "gpulse-probe %s\n" % __version__)
        return 0
    interval = (chosen.interval or 1.0) if chosen.stream else None
    # The default action of these would leave the device child to the driver's mercy.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    sampler = Sampler(System(), node=chosen.node, interval=interval, deadline=chosen.deadline)
    out = stream.Stream(sys.stdout.fileno(), sys.stdin.fileno() if chosen.until_eof else None)
    try:
        render = _table(sampler, chosen.stream) if chosen.pretty else lambda: sampler.line() + b"\n"
        if chosen.stream:
            stream.run(render, out, interval)
        else:
            out.write(render())
    except (KeyboardInterrupt, stream.ReaderGone):
        return 0
    finally:
        sampler.close()
    return 0


def _table(sampler, live):
    from gpulse_probe.outlets.table import Table

    return Table(sampler.line, live).render


def _end(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
