"""Whatever people do, in whichever process and order: nothing lets anybody in after its end."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from gpulse.auth.directory import Directory
from gpulse.auth.passwords import Passwords
from gpulse.errors import SignInRefused
from gpulse.store import Records
from tests.auth.conftest import QUICK, Clock

IDLE, WHOLE = 1000.0, 3000.0
PEOPLE = ("root", "ann", "bob")


class Shown(NamedTuple):
    """What the test knows of a session or a key: whose it is, and when it ends if nobody ends it."""

    account: str
    id: str
    began: float
    expires_at: float


class SignedIn(RuleBasedStateMachine):
    """The hub checks; it, or another process, changes. The model is what the words say."""

    empty: Path
    sessions = Bundle("sessions")
    keys = Bundle("keys")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        shutil.copytree(self.empty, self.folder, dirs_exist_ok=True)
        self.clock = Clock()
        self.runner = asyncio.Runner()
        self.opened = [Records(self.folder), Records(self.folder)]
        self.hub, self.command = (self._directory(records) for records in self.opened)
        self.live_sessions, self.live_keys = {}, {}
        self.all_sessions, self.all_keys = set(), set()
        self.seen, self.disabled = {}, set()

    def _directory(self, records):
        return Directory(records, self.clock, idle_seconds=IDLE, session_seconds=WHOLE, passwords=Passwords(QUICK))

    def run(self, by_command, work):
        """By one of the two, which has looked before; then the hub looks too."""
        directory = self.command if by_command else self.hub
        self.runner.run(directory.refresh())
        done = self.runner.run(work(directory))
        assert self.runner.run(self.hub.refresh()) == ""
        return done

    @initialize()
    def people(self):
        self.accounts = {
            name: self.run(
                False, lambda one, name=name: one.accounts.add(name, "admin" if name == "root" else "member")
            ).id
            for name in PEOPLE
        }

    @rule(target=sessions, name=st.sampled_from(PEOPLE), by_command=st.booleans())
    def begin(self, name, by_command):
        try:
            begun = self.run(by_command, lambda one: one.sessions.begin(self.accounts[name], "", ""))
        except SignInRefused:
            assert name in self.disabled
            return multiple()
        assert name not in self.disabled
        self.all_sessions.add(begun)
        self.live_sessions[begun] = Shown(name, begun.cookie.split("_")[1], self.clock.now, self.clock.now + WHOLE)
        self.seen[begun] = self.clock.now
        return begun

    @rule(target=keys, name=st.sampled_from(PEOPLE), by_command=st.booleans(), seconds=st.sampled_from([50, 500, None]))
    def create_key(self, name, by_command, seconds):
        end = None if seconds is None else self.clock.now + seconds
        try:
            key = self.run(by_command, lambda one: one.keys.create(self.accounts[name], "x", ["read"], end))
        except SignInRefused:
            assert name in self.disabled
            return multiple()
        assert name not in self.disabled
        self.all_keys.add(key)
        self.live_keys[key] = Shown(name, key.split("_")[1], self.clock.now, end or float("inf"))
        return key

    @rule(begun=consumes(sessions), by_command=st.booleans())
    def end(self, begun, by_command):
        self.run(by_command, lambda one: one.sessions.end(begun.cookie.split("_")[1]))
        self.live_sessions.pop(begun, None)

    @rule(name=st.sampled_from(PEOPLE), by_command=st.booleans())
    def end_all(self, name, by_command):
        self.run(by_command, lambda one: one.sessions.end_all(self.accounts[name]))
        self._drop(self.live_sessions, name)

    @rule(key=consumes(keys), by_command=st.booleans())
    def revoke(self, key, by_command):
        if key in self.live_keys:
            self.run(by_command, lambda one: one.keys.revoke(key.split("_")[1]))
            del self.live_keys[key]

    @rule(name=st.sampled_from(PEOPLE[1:]), by_command=st.booleans())
    def disable(self, name, by_command):
        self.run(by_command, lambda one: one.accounts.disable(self.accounts[name]))
        self.disabled.add(name)
        self._drop(self.live_sessions, name)
        self._drop(self.live_keys, name)

    @rule(name=st.sampled_from(PEOPLE), by_command=st.booleans())
    def enable(self, name, by_command):
        self.run(by_command, lambda one: one.accounts.enable(self.accounts[name]))
        self.disabled.discard(name)

    @rule(name=st.sampled_from(PEOPLE), by_command=st.booleans())
    def new_password(self, name, by_command):
        self.run(by_command, lambda one: one.accounts.set_password(self.accounts[name], "correct horse"))
        self._drop(self.live_sessions, name)

    @rule(seconds=st.sampled_from([1.0, 49.0, 60.0, 499.0, 999.0, 1000.0, 5000.0]))
    def time_passes(self, seconds):
        self.clock.now += seconds
        self.runner.run(self.hub.refresh())

    @rule()
    def restart(self):
        self.runner.run(self.hub.note_uses())
        self.opened[0].close()
        self.opened[0] = Records(self.folder)
        self.hub = self._directory(self.opened[0])

    def _drop(self, live, name):
        for one in [one for one, shown in live.items() if shown.account == name]:
            del live[one]

    @invariant()
    def only_what_is_live_lets_in(self):
        now = self.clock.now
        for begun in self.all_sessions:
            shown = self.live_sessions.get(begun)
            alive = shown is not None and now < shown.expires_at and now < self.seen[begun] + IDLE
            identity = self.hub.sessions.check(*begun)
            assert (identity is not None) == alive
            if alive:
                assert (identity.name, identity.credential) == (shown.account, shown.id)
                # It is kept to the minute.
                self.seen[begun] = now if now - self.seen[begun] >= 60 else self.seen[begun]
            else:
                self.live_sessions.pop(begun, None)
        for key in self.all_keys:
            shown = self.live_keys.get(key)
            if shown is not None and now >= shown.expires_at:
                shown = self.live_keys.pop(key) and None
            try:
                identity = self.hub.keys.check(key)
            except SignInRefused:
                assert shown is None
            else:
                assert (identity.name, identity.credential) == (shown.account, shown.id)

    def teardown(self):
        self.runner.close()
        for records in self.opened:
            records.close()
        shutil.rmtree(self.folder)


def test_nothing_lets_in_after_its_end(empty_folder):
    SignedIn.empty = empty_folder
    run_state_machine_as_test(
        SignedIn,
        settings=settings(
            max_examples=10,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


@pytest.mark.parametrize("way", ["anonymous", "session", "key", "local", "proxy"])
def test_who_is_nobody_stays_nobody(directory, way):
    from gpulse.auth.identity import Identity

    nobody = Identity(None, None, None, way, frozenset(), "0" * 12)
    assert directory.current(nobody) == (nobody if way == "anonymous" else None)
