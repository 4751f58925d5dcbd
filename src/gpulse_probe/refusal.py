"""What a hub, or whatever answers in its place, means when it does not do what it was asked for."""

import json

# Somebody has to change something, so there is no point in asking again soon; all other codes may pass by themselves.
_PASSING = (408, 425, 429)
_LONGEST_PAUSE_SECONDS = 600.0
_MOST_CHARACTERS = 500


class Refused(Exception):
    """The message has the hub's words. passing: whether it may well say yes soon; pause: the seconds it asks for."""

    def __init__(self, words, status=0, passing=False, pause=0.0):
        super().__init__(words)
        self.status = status
        self.passing = passing
        self.pause = pause


def refused(status, headers, body):
    """What an answer says that is not the one hoped for. headers: by lower-case name."""
    passing = status >= 500 or status in _PASSING
    return Refused(_words(status, headers, body)[:_MOST_CHARACTERS], status, passing, _pause(headers))


def _words(status, headers, body):
    try:
        error = json.loads(body.decode("utf-8"))["error"]
        return "%s (%d %s)" % (error["message"], status, error["code"])
    except (ValueError, LookupError, TypeError, RecursionError):
        # Not the hub's own way to say no: a proxy, or another program.
        pass
    if 300 <= status < 400 and "location" in headers:
        return "it answers %d, which leads to %s; give --hub the address it really has" % (status, headers["location"])
    if status >= 500:
        return "it answers %d; it or the proxy before it is not ready" % status
    return "it answers %d; is it the address of a gpulse hub?" % status


def _pause(headers):
    text = headers.get("retry-after", "")
    # isdigit() also takes digits that are none for float().
    return min(float(text), _LONGEST_PAUSE_SECONDS) if text and not text.strip("0123456789") else 0.0
