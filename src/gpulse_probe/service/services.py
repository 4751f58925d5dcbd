"""Which services there are: a node's agent, and the hub of a machine."""

import json
import os
import sys

from gpulse_probe.service.folder import Folder, ServiceError

AGENT = "agent.pyz"
SETTINGS = "service.json"
DATA = "~/.local/share"


class Service:
    """What is kept running, under which name, and where its files are.

    launcher: the command that, followed by "run" or "keep" and the folder, starts it.
    weight: its share of the processor for systemd, 100 being the usual. seconds: how long it must live
    after its start to be counted as started.
    """

    def __init__(self, name, about, path, launcher, weight=100, seconds=1.5):
        self.name = name
        self.about = about
        self.folder = Folder(path)
        self.launcher = launcher
        self.weight = weight
        self.seconds = seconds

    def start_command(self, word):
        return [*self.launcher, word, self.folder.path]

    def settings(self):
        """What it was installed with; empty where it was not."""
        try:
            told = json.loads((self.folder.read(SETTINGS) or b"{}").decode("utf-8"))
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}


def agent(node):
    """The agent of a node: by its name, because many nodes may share one home."""
    if not node or "/" in node or node.startswith(".") or not node.isprintable():
        raise ServiceError("%r cannot be the name of a folder, so it cannot be a node with an agent" % node)
    path = _in_home("gpulse-agent", node)
    launcher = [_python(), os.path.join(path, AGENT), "service"]
    return Service("gpulse-agent-" + node, "gpulse agent of " + node, path, launcher, weight=20)


def hub():
    """The hub of this machine."""
    machine = os.uname().nodename
    launcher = [_python(), "-m", "gpulse_probe", "service"]
    return Service("gpulse-hub-" + machine, "gpulse hub", _in_home("gpulse-hub", machine), launcher, seconds=5.0)


def _in_home(*names):
    home = os.path.expanduser(DATA)
    if not os.path.isabs(home):
        raise ServiceError("this account has no home folder, where its services could be kept; set HOME")
    return os.path.join(home, *names)


def _python():
    if not sys.executable:
        raise ServiceError("Python does not know where it is itself; name it by its full path")
    return sys.executable
