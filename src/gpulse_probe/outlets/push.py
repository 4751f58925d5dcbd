"""Snapshots to a hub over a WebSocket, a line a tick; what it misses while it is away is told later."""

import os
import select
import time
from collections import deque

from gpulse_probe import hub_address, trust, websocket
from gpulse_probe.agent import TOKEN_VARIABLE
from gpulse_probe.backlog import Backlog, Line
from gpulse_probe.chance import fraction
from gpulse_probe.ending import ending
from gpulse_probe.log import Log
from gpulse_probe.options import UsageError
from gpulse_probe.tokens import NoToken, Tokens
from gpulse_probe.uplink import Uplink

# Whoever starts a thousand agents at once does not get a thousand connections at once.
LONGEST_START_SECONDS = 5.0
# With more than this unsent the hub is slower than the node: lines are left out, for the next says all that they said.
MOST_PENDING_BYTES = 1 << 16
LATE_LINES_A_TICK = 5
# Also where ticks are short, for the hub takes only so many lines a second.
LATE_PAUSE_SECONDS = 0.5
_UPDATE = b'{"update"'


def run(options, make_sampler):
    """Push until KeyboardInterrupt; a command line is returned when this process is to become it."""
    hub = hub_address.read(options.hub)
    trusted = trust.read(hub, options.ca, options.fingerprint)
    node = options.node or os.uname().nodename
    folder = options.folder or _default_folder(node)
    tokens = Tokens(folder, options.token_file, os.environ.get(TOKEN_VARIABLE))
    try:
        tokens.current()
    except NoToken as missing:
        raise UsageError(str(missing))
    log = Log()
    upgrade = None
    if options.upgrade:
        from gpulse_probe.upgrade import Upgrade

        upgrade = Upgrade(hub, folder, log, trusted)
    push = Push(Uplink(hub, tokens, node, log, trusted), log, upgrade)
    try:
        return _loop(push, make_sampler, options.interval)
    finally:
        push.close()


def _default_folder(node):
    if "/" in node or node.startswith(".") or not node.isprintable():
        raise UsageError("--node: %r cannot be the name of a folder; give --folder" % node)
    return os.path.join(os.path.expanduser("~"), ".local", "share", "gpulse-agent", node)


def _loop(push, make_sampler, interval):
    # Their own phase, so that many nodes do not tick together; the hub is told nothing before the first tick.
    time.sleep(fraction() * min(interval, LONGEST_START_SECONDS))
    sampler = make_sampler()
    push.tick(sampler.line())
    due = time.monotonic() + fraction() * interval
    while True:
        command = push.wait_until(due)
        if command:
            return command
        push.tick(sampler.line())
        now = time.monotonic()
        due += interval * max(1, -(-(now - due) // interval))


class Push:
    def __init__(self, uplink, log, upgrade=None, backlog=None):
        self._uplink = uplink
        self._log = log
        self._upgrade = upgrade
        self._backlog = Backlog() if backlog is None else backlog
        self._connection = None
        self._newest = None
        self._newest_sent = False
        # What was sent and may not have arrived: (bytes sent with it, line).
        self._in_flight = deque()
        # The whole Snapshots the hub has of this connection: of live lines, and of late ones.
        self._live_whole = self._late_whole = None
        self._late_sent = 0
        self._late_at = 0.0

    def tick(self, text):
        """Take the line of a tick, and send it if it can be."""
        # Half a line sent would be the end of the connection.
        with ending:
            self._tick(text)

    def _tick(self, text):
        before = self._newest
        if before is not None and not self._newest_sent:
            self._backlog.add(before)
        whole = before.whole if before is not None and text.startswith(_UPDATE) else text
        self._newest = Line(time.monotonic(), text, whole)
        self._newest_sent = False
        if self._connection is not None:
            self._drop_arrived()
            self._send_live()
            self._send_late()

    def wait_until(self, moment):
        """Keep the connection going until a moment of the monotonic clock; a command line when it is to be run."""
        while True:
            with ending:
                command = self._step()
            if command:
                return command
            now = time.monotonic()
            if now >= moment:
                return None
            readers, writers, due = self._uplink.wants()
            if self._upgrade is not None:
                more, upgrade_due = self._upgrade.wants()
                readers = readers + more
                if upgrade_due is not None and (more or self._connection is not None):
                    due = min(due, upgrade_due)
            select.select(readers, writers, [], max(0.0, min(moment, due) - now))

    def _step(self):
        self._uplink.step()
        self._notice_change()
        return self._upgrade.step(self._connection is not None) if self._upgrade is not None else None

    def close(self):
        self._uplink.close()
        if self._upgrade is not None:
            self._upgrade.close()

    def _notice_change(self):
        connection = self._uplink.connection
        if connection is self._connection:
            return
        if self._connection is not None:
            self._take_back()
        self._connection = connection
        self._live_whole = self._late_whole = None
        self._late_sent = 0
        if connection is not None:
            self._send_live()
            if self._upgrade is not None:
                hello = connection.hello
                self._upgrade.offer(hello["version"], self._uplink.token, hello["spread_seconds"])

    def _send_live(self):
        line = self._newest
        if line is None or self._connection.link.pending > MOST_PENDING_BYTES:
            return
        if self._live_whole is not line.whole:
            self._live_whole = line.whole
            self._connection.send(websocket.BINARY, line.whole)
        if line.text is not line.whole:
            self._connection.send(websocket.BINARY, line.text)
        self._newest_sent = True
        self._in_flight.append((self._connection.link.queued, line))

    def _send_late(self):
        now = time.monotonic()
        if now < self._late_at:
            return
        self._late_at = now + LATE_PAUSE_SECONDS
        for _ in range(LATE_LINES_A_TICK):
            line = self._backlog.first(now)
            if line is None or self._connection.link.pending:
                break
            if line.whole is not self._late_whole:
                self._late_whole = line.whole
                self._connection.send(websocket.TEXT, line.whole)
                if line.text is not line.whole:
                    continue
            else:
                self._connection.send(websocket.TEXT, line.text)
            self._in_flight.append((self._connection.link.queued, self._backlog.take()))
            self._late_sent += 1
        if self._late_sent and not self._backlog:
            self._log.say("told the hub what it missed: %d lines" % self._late_sent)
            self._late_sent = 0

    def _drop_arrived(self):
        arrived = self._connection.link.acknowledged()
        while self._in_flight and self._in_flight[0][0] <= arrived:
            self._in_flight.popleft()

    def _take_back(self):
        """The connection is over: what has not arrived is told later, the newest line at once when it can be."""
        self._drop_arrived()
        lost = [line for _, line in self._in_flight]
        self._in_flight.clear()
        if self._newest in lost:
            lost.remove(self._newest)
            self._newest_sent = False
        self._backlog.put_back(lost)
