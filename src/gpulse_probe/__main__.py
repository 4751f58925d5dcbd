"""The probe's command line: one Snapshot, or one a tick, as JSON or as a table."""

import signal
import sys

from gpulse_probe import __version__, descriptors, options
from gpulse_probe.outlets import stream
from gpulse_probe.printable import complain
from gpulse_probe.sampler import Sampler
from gpulse_probe.system import System

INPUT, OUTPUT = 0, 1
# What runs for long as a service; not in the bundle that is booted over SSH.
AGENT_WORDS = ("push", "serve", "drop")


def main(arguments=None, program="gpulse-probe", greeting=""):
    """greeting: what is printed before all else, so that a hub knows where login scripts end."""
    closed = descriptors.closed()
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] and arguments[0] in AGENT_WORDS:
        from gpulse_probe import agent

        return agent.main(arguments, program, greeting)
    if arguments[:1] == ["service"]:
        from gpulse_probe.service import command

        return command.main(arguments[1:], program, greeting)
    chosen = options.read(arguments, program)
    if OUTPUT in closed:
        # Nobody can ever read it.
        return 0
    out = stream.Stream(OUTPUT, INPUT if chosen.until_eof else None)
    try:
        out.write(greeting.encode("ascii"))
        if chosen.help or chosen.version:
            text = options.HELP.format(program=program) if chosen.help else "gpulse-probe %s\n" % __version__
            out.write(text.encode("ascii"))
            return 0
        _run(chosen, out)
    except (KeyboardInterrupt, stream.ReaderGone):
        return 0
    except stream.OutputFailed as failure:
        complain("%s: cannot write: %s" % (program, failure))
        return 1
    return 0


def _run(chosen, out):
    interval = (chosen.interval or 1.0) if chosen.stream else None
    # The default action of these would leave the device child to the driver's mercy.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    sampler = Sampler(System(), node=chosen.node, interval=interval, deadline=chosen.deadline, updates=chosen.updates)
    try:
        render = _table(sampler, chosen.stream) if chosen.pretty else lambda: sampler.line() + b"\n"
        if chosen.stream:
            stream.run(render, out, interval)
        else:
            out.write(render())
    finally:
        # A second signal must not keep it from cleaning up.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        sampler.close()


def _table(sampler, live):
    from gpulse_probe.outlets.table import Table

    return Table(sampler.line, live, OUTPUT).render


def _end(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
