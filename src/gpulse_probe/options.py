"""The probe's options, read by hand: argparse would cost every node half a megabyte."""

import sys

from gpulse_probe.printable import complain

SHORTEST_SECONDS = 0.05
LONGEST_SECONDS = 86400.0

HELP = """\
usage: {program} [--once | --stream] [--pretty] [options]

Read this node and print what was seen.

  --once              print one snapshot and end (the default)
  --stream            print a snapshot every interval
  --pretty            a table for people instead of JSON
  --updates           with --stream: what changed, and whole snapshots now and then
  --interval SECONDS  time between snapshots (default 1)
  --deadline SECONDS  give up on a device call after so long (default 5)
  --node NAME         name of this node (default: its host name)
  --until-eof         end when standard input ends
  --version           print the version
  --help              print this text
"""
_SWITCHES = ("once", "stream", "pretty", "updates", "until-eof", "version", "help")
_WITH_VALUE = ("interval", "deadline", "node")


class UsageError(Exception):
    """The command line is wrong; the message says where and what would be right."""


class Options:
    """The switches, by their names with _ for -: bool; interval, deadline: seconds or None; node: name or None."""

    def __init__(self, arguments):
        for name in _SWITCHES:
            setattr(self, name.replace("-", "_"), False)
        self.interval = self.deadline = self.node = None
        remaining = list(arguments)
        while remaining:
            self._take(remaining)
        if self.once and self.stream:
            raise UsageError("--once and --stream exclude each other")
        if self.interval is not None and not self.stream:
            raise UsageError("--interval goes with --stream")
        if self.updates and (self.pretty or not self.stream):
            raise UsageError("--updates goes with --stream, without --pretty")

    def _take(self, remaining):
        word = remaining.pop(0)
        if word == "-h":
            word = "--help"
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--") or name not in _SWITCHES + _WITH_VALUE:
            raise UsageError("unknown argument %s" % word)
        if name in _SWITCHES:
            if equals:
                raise UsageError("--%s takes no value" % name)
            setattr(self, name.replace("-", "_"), True)
            return
        if not equals:
            if not remaining:
                raise UsageError("--%s needs a value" % name)
            value = remaining.pop(0)
        setattr(self, name, value if name == "node" else seconds(name, value))


def seconds(name, text):
    """The value of an option that is a time."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not SHORTEST_SECONDS <= number <= LONGEST_SECONDS:
        raise UsageError(
            "--%s: %r is not a number of seconds from %g to %g" % (name, text, SHORTEST_SECONDS, LONGEST_SECONDS)
        )
    return number


def read(arguments, program):
    """The options; ends the program on a mistake, with a line that says how to go on."""
    try:
        return Options(arguments)
    except UsageError as error:
        complain("%s: %s; see %s --help" % (program, error, program))
        sys.exit(2)
