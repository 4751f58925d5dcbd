"""Keeps a connection to the hub: begins it anew when it is lost, joins first where it must, and never gives up."""

import binascii
import json
import os
import time

from gpulse_probe import websocket
from gpulse_probe.chance import fraction
from gpulse_probe.connection import Closed, Connection
from gpulse_probe.errand import Errand, ErrandFailed
from gpulse_probe.link import Distrusted, Lost
from gpulse_probe.refusal import Refused
from gpulse_probe.tokens import JOIN, NoToken
from gpulse_probe.trust import SYSTEM

# Until the hub has said what suits it.
FIRST_SPREAD_SECONDS = 2.5
LONGEST_PAUSE_SECONDS = 60.0
REFUSED_PAUSE_SECONDS = 60.0
# A connection that lasted so long was a good one.
GOOD_SECONDS = 10.0
JOIN_SECONDS = 60.0
# With these codes the hub closes what somebody has to put right; but silence and too much at once are of the moment.
_REFUSING = range(4400, 4500)
_PASSING = (4408, 4429)


class Uplink:
    """connection: the open one, None while there is none. step() as of Connection, but it raises nothing."""

    def __init__(self, hub, tokens, node, log, trust=SYSTEM):
        self.connection = None
        self._hub = hub
        self._tokens = tokens
        self._node = node
        self._log = log
        self._trust = trust
        self._instance = binascii.hexlify(os.urandom(8)).decode("ascii")
        self._token = self._joined = None
        self._under_way = self._joining = None
        self._spread = FIRST_SPREAD_SECONDS
        self._failures = 0
        self._opened_at = 0.0
        self._begin_at = time.monotonic()

    @property
    def token(self):
        """The one the connection was opened with."""
        return self._token

    def wants(self):
        """What to wait for, and until when: (readable, writable, moment)."""
        if self._joining is not None:
            return [self._joining], [], self._joining.due
        if self._under_way is not None:
            readable, writable = self._under_way.wants()
            return readable, writable, self._under_way.due
        return [], [], self._begin_at

    def step(self):
        try:
            if self._joining is not None:
                self._go_on_joining()
            elif self._under_way is not None:
                self._go_on()
            elif time.monotonic() >= self._begin_at:
                self._begin()
        except Refused as refused:
            self._refuse(refused)
        except Closed as closed:
            if closed.code in _REFUSING and closed.code not in _PASSING:
                self._refuse(Refused(str(closed)))
            else:
                self._lose(str(closed))
        except Distrusted as stranger:
            self._log.say("no connection to %s: %s; trying on" % (self._hub, stranger))
            self._pause(_about(REFUSED_PAUSE_SECONDS))
        except Lost as lost:
            self._lose(str(lost))
        except OSError as error:
            # This node is short of something: processes, descriptors, memory.
            self._lose("this node: %s" % error.strerror)
        except NoToken as missing:
            self._log.say(str(missing))
            self._pause(_about(REFUSED_PAUSE_SECONDS))

    def close(self):
        if self._joining is not None:
            self._joining.close()
        if self._under_way is not None:
            self._under_way.close(websocket.GOING_AWAY)
        self.connection = self._under_way = self._joining = None

    def _begin(self):
        self._token = token = self._tokens.current()
        if token.startswith(JOIN):
            self._joining = Errand(lambda: self._tokens.join(self._hub, token, self._node, self._trust), JOIN_SECONDS)
        else:
            self._under_way = Connection(self._hub, token, self._instance, self._trust)
            self._go_on()

    def _go_on(self):
        self._under_way.step()
        if self.connection is None and self._under_way.hello is not None:
            self.connection = self._under_way
            self._opened_at = time.monotonic()
            self._joined = None
            self._spread = self.connection.hello["spread_seconds"]
            hello = self.connection.hello
            self._log.say("connected to %s as %s (gpulse %s)" % (self._hub, hello["node"], hello["version"]))

    def _go_on_joining(self):
        try:
            answer = self._joining.result()
        except ErrandFailed as failure:
            raise Lost("joining: %s" % failure)
        if answer is None:
            return
        self._joining = None
        told = json.loads(answer.decode("ascii"))
        if "distrusted" in told:
            raise Distrusted(told["distrusted"])
        if "token" not in told:
            self._tokens.forgive()
            raise Refused(**told)
        self._joined = told["token"]
        if "lost" in told:
            self._tokens.keep(self._joined)
            self._log.say("joined %s, but the token cannot be kept: %s" % (self._hub, told["lost"]))
        else:
            self._log.say("joined %s as %s" % (self._hub, self._node))
        self._pause(0.0)

    def _lose(self, why):
        was_open = self.connection is not None
        self._log.say("%s %s: %s; trying on" % ("lost" if was_open else "no connection to", self._hub, why))
        if was_open and time.monotonic() - self._opened_at >= GOOD_SECONDS:
            self._failures = 0
        self._back_off(0.0)

    def _refuse(self, refused):
        unknown = refused.status == 401 and not self._token.startswith(JOIN)
        # One that was got a moment ago and is not taken is no reason to get another.
        if unknown and self._token != self._joined and self._tokens.refuse(self._token):
            self._pause(0.0)
            return
        self._log.say("%s refuses this node: %s; trying on" % (self._hub, refused))
        if refused.passing:
            self._back_off(refused.pause)
        else:
            self._pause(max(refused.pause, _about(REFUSED_PAUSE_SECONDS)))

    def _back_off(self, least):
        """The first try after a loss is spread as the hub asks for, the next ones over ever longer times."""
        longest = self._spread
        if self._failures:
            longest = min(LONGEST_PAUSE_SECONDS, max(1.0, longest) * 2 ** min(self._failures, 10))
        self._failures += 1
        self._pause(least + fraction() * longest)

    def _pause(self, seconds):
        if self._under_way is not None:
            self._under_way.close()
        self.connection = self._under_way = self._joining = None
        self._begin_at = time.monotonic() + seconds


def _about(seconds):
    """A quarter more or less."""
    return seconds * (0.75 + fraction() / 2)
