"""The command line of services: orders of a hub over SSH, and what systemd and cron start."""

import io
import json
import os
import re
import sys
import zipfile

import gpulse_probe
from gpulse_probe.printable import complain
from gpulse_probe.service import control, services
from gpulse_probe.service.folder import Folder, ServiceError

INPUT, OUTPUT = 0, 1
LONGEST_ORDER = 1 << 20
NICE = 5
WORDS = {"status": control.status, "restart": control.restart, "stop": control.stop, "remove": control.remove}


def main(arguments, program, greeting=""):
    """service run|keep FOLDER, or service install|status|restart|stop|remove with an order on standard input."""
    try:
        if len(arguments) == 2 and arguments[0] in ("run", "keep"):
            folder = Folder(arguments[1])
            if arguments[0] == "run":
                control.run(folder)
            else:
                control.keep(folder, [*_this_program(), "service", "run", folder.path])
            return 0
        if len(arguments) != 1 or arguments[0] not in ("install", *WORDS):
            raise ServiceError("use: service install|status|restart|stop|remove, or service run|keep FOLDER")
        _write(greeting)
        _write(json.dumps(_answer(arguments[0])) + "\n")
        return 0
    except ServiceError as error:
        complain("%s: %s" % (program, error))
        return 1


def _answer(word):
    """What is told to the hub; also what went wrong is an answer."""
    try:
        order = _order()
        service = services.agent(order["node"])
        service.seconds = order.get("seconds", service.seconds)
        answer = _install(service, order) if word == "install" else WORDS[word](service)
        if answer["outcome"] not in ("absent", "removed"):
            answer["version"] = _installed_version(service)
            answer["token_id"] = _token_id(service)
        return answer
    except ServiceError as error:
        return {"outcome": "failed", "error": str(error)}


def _install(service, order):
    """The order's arguments may speak of {folder}; its files are secrets by their names."""
    archive = _archive()
    path = service.folder.path
    arguments = [argument.replace("{folder}", path) for argument in order["arguments"]]
    command = [sys.executable, service.folder.file(services.AGENT), *arguments]
    files = {name: (text.encode("utf-8"), 0o600) for name, text in order["files"].items()}
    files[services.AGENT] = (archive, 0o600)
    return control.install(service, command, files, nice=NICE)


def _order():
    """One line of JSON; secrets come this way because everybody can read a command line."""
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(INPUT, 65536)
        if not piece or len(text) > LONGEST_ORDER:
            raise ServiceError("the order on standard input has no end")
        text += piece
    return json.loads(text.decode("utf-8"))


def _archive():
    """The zip that this program runs from: in memory, or a file."""
    place = getattr(gpulse_probe.__spec__.loader, "archive", None)
    if place is None:
        raise ServiceError("only the agent as one file can be installed; run: gpulse agent install HOSTS")
    if isinstance(place, str):
        with open(place, "rb") as file:
            return file.read()
    return bytes(place)


def _this_program():
    """The command line that starts this program, up to its own arguments."""
    place = getattr(gpulse_probe.__spec__.loader, "archive", None)
    return [sys.executable] + ([os.path.abspath(place)] if isinstance(place, str) else ["-m", "gpulse_probe"])


def _installed_version(service):
    """The agent may have replaced itself since it was installed."""
    try:
        with zipfile.ZipFile(io.BytesIO(service.folder.read(services.AGENT) or b"")) as archive:
            source = archive.read("gpulse_probe/__init__.py").decode("utf-8")
    except (KeyError, zipfile.BadZipFile):
        return None
    found = re.search(r'__version__ = "([^"]+)"', source)
    return found.group(1) if found else None


def _token_id(service):
    """Which token the node holds, without its secret."""
    found = re.match(rb"gp[nj]_([0-9a-f]{12})_", service.folder.read("token") or b"")
    return found.group(1).decode("ascii") if found else None


def _write(text):
    data = text.encode("ascii")
    while data:
        data = data[os.write(OUTPUT, data) :]
