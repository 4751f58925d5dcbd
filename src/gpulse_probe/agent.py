"""The agent: the probe as a service, which pushes to a hub, serves to one, or drops files for one."""

import os
import signal
import sys

from gpulse_probe import __version__
from gpulse_probe.child import reap
from gpulse_probe.ending import ending
from gpulse_probe.options import UsageError, seconds
from gpulse_probe.printable import complain
from gpulse_probe.sampler import Sampler
from gpulse_probe.system import System

# How long a child that was killed is waited for before this process becomes the new agent.
REAP_SECONDS = 2.0
TOKEN_VARIABLE = "GPULSE_TOKEN"  # noqa: S105 - the name of a variable

_GENERAL = """\
  --node NAME         name of this node (default: its host name)
  --interval SECONDS  time between snapshots (default {interval:g})
  --deadline SECONDS  give up on a device call after so long (default 5)
  --version           print the version
  --help              print this text
"""
PUSH_HELP = """\
usage: {program} push --hub URL [options]

Send what this node sees to a hub, over one connection that is begun anew when it is lost.

  --hub URL           where the hub is: http://hub:7070 or https://hub.example.org/gpulse
  --token-file FILE   this node's token, or a token to join with (default: GPULSE_TOKEN, then token in the folder)
  --folder DIR        where the agent keeps its files (default ~/.local/share/gpulse-agent/NODE)
  --ca FILE           certificates to trust for https instead of the system's
  --fingerprint TEXT  the hub's key for https (sha256:...), instead of trusting certificates; gpulse up prints it
  --upgrade           replace this agent by the hub's own when that is newer
"""
SERVE_HELP = """\
usage: {program} serve [options]

Answer a hub that asks this node over HTTP.

  --host ADDRESS      address to listen on (default 127.0.0.1)
  --port PORT         port to listen on (default 7080); 0 is any free one
  --token-file FILE   what whoever asks must know (default: GPULSE_TOKEN)
"""
DROP_HELP = """\
usage: {program} drop DIR [options]

Write what this node sees into DIR/NODE.json, for a hub that watches the folder.

"""


class Command:
    """What one word of the agent takes. Options by name, with - for _: values {name: its reader}, switches."""

    def __init__(self, help_text, interval, values=(), switches=(), positional=None):
        self.help = help_text + _GENERAL.format(interval=interval)
        self.interval = interval
        self.values = dict(values, interval=seconds, deadline=seconds, node=_text)
        self.switches = (*switches, "version", "help")
        self.positional = positional


def _text(name, value):
    if not value:
        raise UsageError("--%s needs a value" % name)
    return value


def _port(name, value):
    if not value.isdigit() or int(value) > 65535:
        raise UsageError("--%s: %r is not a port from 0 to 65535" % (name, value))
    return int(value)


COMMANDS = {
    "push": Command(
        PUSH_HELP,
        1.0,
        {"hub": _text, "token-file": _text, "folder": _text, "ca": _text, "fingerprint": _text},
        switches=("upgrade",),
    ),
    "serve": Command(SERVE_HELP, 1.0, {"host": _text, "port": _port, "token-file": _text}),
    "drop": Command(DROP_HELP, 5.0, positional="DIR"),
}


class Options:
    """The options of a command by their names, with _ for -; None where a value was not given.

    interval has its default; directory is the DIR of drop.
    """

    def __init__(self, word, arguments):
        self.command = word
        self.directory = None
        command = COMMANDS[word]
        for name in command.values:
            setattr(self, _attribute(name), None)
        for name in command.switches:
            setattr(self, _attribute(name), False)
        remaining = list(arguments)
        while remaining:
            self._take(command, remaining)
        if self.interval is None:
            self.interval = command.interval
        if self.help or self.version:
            return
        if word == "push" and self.hub is None:
            raise UsageError("--hub is needed: where the hub is, such as http://hub:7070")
        if command.positional and self.directory is None:
            raise UsageError("%s is needed: the folder to write into" % command.positional)

    def _take(self, command, remaining):
        word = remaining.pop(0)
        if word == "-h":
            word = "--help"
        if not word.startswith("-") and command.positional and self.directory is None:
            self.directory = word
            return
        name, equals, value = word[2:].partition("=")
        if name == "token" and word.startswith("--"):
            raise UsageError(
                "there is no --token, everybody on this machine could read it in the list of processes: "
                "put it into a file for --token-file, or into %s" % TOKEN_VARIABLE
            )
        if not word.startswith("--") or name not in tuple(command.values) + command.switches:
            raise UsageError("unknown argument %s" % word)
        if name in command.switches:
            if equals:
                raise UsageError("--%s takes no value" % name)
            setattr(self, _attribute(name), True)
            return
        if not equals:
            if not remaining:
                raise UsageError("--%s needs a value" % name)
            value = remaining.pop(0)
        setattr(self, _attribute(name), command.values[name](name, value))


def _attribute(name):
    return name.replace("-", "_")


def main(arguments, program, greeting=""):
    """Run the command that the first argument names; its exit code."""
    word = arguments[0]
    program_word = "%s %s" % (program, word)
    try:
        chosen = Options(word, arguments[1:])
        if greeting:
            os.write(1, greeting.encode("ascii"))
        if chosen.help or chosen.version:
            text = COMMANDS[word].help.format(program=program) if chosen.help else "gpulse-probe %s\n" % __version__
            os.write(1, text.encode("ascii"))
            return 0
        return _run(chosen)
    except UsageError as error:
        complain("%s: %s; see %s --help" % (program_word, error, program_word))
        return 2


def _outlet(word):
    """The module whose run(options, make_sampler) is the command.

    It returns an exit code, or a command line that this process is to become; it runs until KeyboardInterrupt, and may
    raise UsageError at its start. make_sampler(updates=True) makes the Sampler, which is closed here.
    """
    if word == "push":
        from gpulse_probe.outlets import push as outlet
    elif word == "serve":
        from gpulse_probe.outlets import serve as outlet
    else:
        from gpulse_probe.outlets import drop as outlet
    return outlet


def _run(chosen):
    # Of the agent that became this one: a child that a driver held longer than could be waited for.
    reap(0.0)
    samplers = []

    def make_sampler(updates=True):
        samplers.append(
            Sampler(System(), node=chosen.node, interval=chosen.interval, deadline=chosen.deadline, updates=updates)
        )
        return samplers[-1]

    # The default action of these would leave the device child to the driver's mercy.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ending.on_signal)
    try:
        outcome = _outlet(chosen.command).run(chosen, make_sampler)
    except KeyboardInterrupt:
        outcome = 0
    finally:
        # A second signal must not keep it from cleaning up.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for sampler in samplers:
            sampler.close()
    if isinstance(outcome, list):
        # What is ignored now would stay so.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        reap(REAP_SECONDS)
        os.execv(sys.executable, outcome)  # noqa: S606 - without a shell is what is wanted
    return outcome
