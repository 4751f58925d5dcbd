"""The token this node shows the hub: given by people, or got in exchange for one that many nodes may join with."""

import errno
import json
import os

from gpulse_probe.link import Distrusted
from gpulse_probe.refusal import refused

JOIN, NODE = "gpj_", "gpn_"
_MOST_CHARACTERS = 200


class NoToken(Exception):
    """There is none to be used; the message says where it was looked for."""


class Tokens:
    def __init__(self, folder, file=None, text=None):
        """folder: where one that was got is kept; file, text: where people gave one."""
        self._file = file
        self._text = text
        self._kept = os.path.join(folder, "token")
        self._refused = None
        self._got = None

    def current(self):
        """The token to try now. Files are read anew each time: whoever replaces one need not restart the agent."""
        given = _checked(self._text, "GPULSE_TOKEN") if self._file is None else _read(self._file)
        if given is not None and given.startswith(NODE):
            return given
        kept = self._got or _read(self._kept)
        if kept is not None and (kept != self._refused or given is None):
            return kept
        if given is None:
            where = self._file or "%s, and GPULSE_TOKEN is not set" % self._kept
            raise NoToken("there is no token in %s; make one on the hub with: gpulse token create" % where)
        return given

    def refuse(self, token):
        """The hub does not know this token: join anew, where that can be done. Whether there is another to try."""
        self._refused, self._got = token, None
        try:
            return self.current() != token
        except NoToken:
            return False

    def forgive(self):
        """No other token works either: try the one that was refused again."""
        self._refused = None

    def join(self, hub, token, node, trust):
        """Trade a token to join with for the node's own; to be done in an errand.

        JSON: the token, and why it could not be kept; or why it was refused, as what Refused takes; or why the hub is
        distrusted.
        """
        from gpulse_probe.http_request import request

        # Before anything else: the hub gives no token twice.
        os.makedirs(os.path.dirname(self._kept), mode=0o700, exist_ok=True)
        new = self._kept + ".new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            answer = request(hub, "POST", "/join", token, json.dumps({"node": node}).encode("ascii"), trust)
            if answer.status != 201:
                why = refused(answer.status, answer.headers, answer.body)
                told = {"words": str(why), "status": why.status, "passing": why.passing, "pause": why.pause}
                return json.dumps(told).encode("ascii")
            told = {"token": _got(answer.body)}
            try:
                os.write(descriptor, told["token"].encode("ascii") + b"\n")
                os.fsync(descriptor)
                os.rename(new, self._kept)
                new = None
            except OSError as error:
                told["lost"] = "%s: %s" % (self._kept, error.strerror)
            return json.dumps(told).encode("ascii")
        except Distrusted as stranger:
            return json.dumps({"distrusted": str(stranger)}).encode("ascii")
        finally:
            os.close(descriptor)
            if new is not None:
                os.unlink(new)

    def keep(self, token):
        """Remember a token that could not be written down, as long as this process lives."""
        self._got = token


def _got(body):
    try:
        token = _checked(json.loads(body.decode("utf-8"))["token"], "the hub's answer")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        token = None
    if token is None or not token.startswith(NODE):
        raise NoToken("the hub gave no token")
    return token


def _read(path):
    """The token in a file, None where there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise NoToken("no token: %s: %s" % (path, error.strerror))
    return _checked(text, path)


def _checked(text, where):
    if not text or not text.strip():
        return None
    token = text.strip()
    plain = token.isalnum() or token.replace("_", "").isalnum()
    if not token.startswith((JOIN, NODE)) or len(token) > _MOST_CHARACTERS or not plain or not _is_ascii(token):
        raise NoToken("what is in %s is no token of a gpulse hub: those begin with %s or %s" % (where, NODE, JOIN))
    return token


def _is_ascii(text):
    return all(character < "\x80" for character in text)
