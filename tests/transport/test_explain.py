"""What people are told of every kind of failure, as a table."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.transport import explain
from gpulse.transport.explain import Attempt, Place

PLACE = Place("gpu07", 22, "ada")
OTHER = Place("gpu07", 2222, "ada")


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ECONNREFUSED, "gpu07 port 22 refuses connections; see that sshd runs there, and its port"),
        (errno.EHOSTUNREACH, "there is no route to gpu07 port 22; see that the node is on"),
        (errno.ENETUNREACH, "there is no route to gpu07 port 22; see that the node is on"),
        (errno.ETIMEDOUT, "gpu07 port 22 does not answer; see that the node is on and no firewall is between"),
        (errno.EACCES, "gpu07 port 22 cannot be connected to: Permission denied"),
    ],
)
def test_connections(number, words):
    told = explain.unreachable(PLACE, error(number))
    assert str(told).startswith(words)
    assert told.check == "port"


def test_names():
    assert str(explain.unresolved("gpu7", "Name or service not known")).startswith(
        "the name gpu7 does not resolve; check"
    )
    assert "look at this machine's DNS" in str(explain.unresolved("g", "Temporary failure in name resolution"))


def test_host_keys():
    assert 'run "ssh -p 2222 ada@gpu07" once' in explain.host_key_unknown(OTHER, "ssh-ed25519 SHA256:x").fix
    changed = explain.host_key_changed(OTHER, "ssh-ed25519 SHA256:x", ["/home/ada/.ssh/known_hosts"])
    assert changed.fix.endswith("ssh-keygen -f /home/ada/.ssh/known_hosts -R '[gpu07]:2222'")
    assert "somebody may be in between" in changed.what


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (Attempt(), "ada@gpu07 denies the login (there was no key to try)"),
        (
            Attempt(keys=["~/.ssh/id_rsa"], agent_keys=2, asked=frozenset({"publickey", "password"})),
            "ada@gpu07 denies the login (keys tried: ~/.ssh/id_rsa, 2 of the agent); see that `ssh ada@gpu07 true`",
        ),
        (
            Attempt(locked=["~/.ssh/id_rsa"], asked=frozenset({"publickey"})),
            "the key ~/.ssh/id_rsa has a passphrase and no agent holds it; run: ssh-add ~/.ssh/id_rsa",
        ),
        (
            Attempt(keys=["k"], asked=frozenset({"keyboard-interactive"})),
            "ada@gpu07 wants a second factor or a password (keyboard-interactive)",
        ),
        (
            Attempt(banner="Access denied by pam_slurm_adopt: you have no active jobs on this node"),
            "Slurm lets you log in only while you have a job there (pam_slurm_adopt); start a job",
        ),
        (Attempt(banner="Your account has expired; please contact"), "the account has expired there"),
        (Attempt(banner="System is booting up. See pam_nologin(8)"), "the node takes no logins now (nologin)"),
        (Attempt(banner="Too many logins for 'ada'."), "there are too many logins or tries at once"),
        (Attempt(banner="You are required to change your password immediately"), "the password has expired there"),
    ],
)
def test_logins(attempt, words):
    told = explain.denied(PLACE, attempt)
    assert str(told).startswith(words)
    assert told.check == "login"


@pytest.mark.parametrize(
    ("status", "told", "words"),
    [
        (127, "sh: 1: python3: not found", "there is no python3 on the node's PATH"),
        (1, "python3: Command not found.", "there is no python3 on the node's PATH"),
        (127, "fish: Unknown command: python3", "there is no python3 on the node's PATH"),
        (8, "gpulse: Python 3.4 is too old, the probe needs 3.6", "gpulse: Python 3.4 is too old"),
        (
            127,
            "rbash: /usr/bin/python3: restricted: cannot specify `/' in command names",
            "its login shell is restricted",
        ),
        (1, "This service allows sftp connections only.", "its login shell is restricted"),
        (128, "fatal: unrecognized command 'python3 -c'", "its login shell is restricted"),
        (1, "This account is currently not available.", "the account cannot log in there"),
        (254, "System is going down.", "the node takes no logins now"),
        (2, "bash: cannot create temp file: No space left on device", "a disk is full there"),
        (254, "bash: fork: retry: Resource temporarily unavailable", "it is out of processes for this account"),
        (1, "MemoryError", "it is out of memory"),
        (1, "Traceback\nValueError: no such thing", "its probe ended with code 1: ValueError: no such thing"),
        (None, "", "its probe ended without a word"),
    ],
)
def test_commands(status, told, words):
    assert str(explain.ended(status, None, told, "python3", PLACE)).startswith(words)


def test_signals():
    assert str(explain.ended(None, "KILL", "", "python3", PLACE)) == "its probe ended by signal KILL"


def test_hanging_up():
    early = explain.hung_up(PLACE, Attempt(), "Connection lost", logged_in=False)
    assert str(early).startswith("gpu07 hung up before the login was done (Connection lost); see sshd's log there")
    assert str(explain.hung_up(PLACE, Attempt(), "Connection lost", logged_in=True)) == (
        "the connection was lost (Connection lost)"
    )


@given(st.none() | st.integers(-1, 300), st.text())
def test_any_text(status, told):
    assert str(explain.ended(status, None, told, "python3", PLACE))
    assert str(explain.denied(PLACE, Attempt(banner=told)))
