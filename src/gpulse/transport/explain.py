"""What went wrong between the hub and a node, in words a person can act on. Pure: facts in, words out."""

import errno
import re
import shlex
from collections.abc import Sequence

import msgspec

from gpulse.errors import NodeLost
from gpulse_probe.boot import EXIT_TOO_OLD

NAME, PORT, HOST_KEY, LOGIN, PYTHON, PROBE = "name", "port", "host key", "login", "python", "probe"

LOGIN_FIX = "see that `ssh {where} true` works without asking anything"


class Place(msgspec.Struct, frozen=True):
    """Who is connected to, as ssh would be told."""

    host: str
    port: int
    user: str

    def ssh(self) -> str:
        """The arguments of ssh that go to the same place."""
        where = shlex.quote(f"{self.user}@{self.host}" if self.user else self.host)
        return where if self.port == 22 else f"-p {self.port} {where}"

    def known_as(self) -> str:
        """How known_hosts names it."""
        return self.host if self.port == 22 else f"[{self.host}]:{self.port}"


class Attempt(msgspec.Struct, frozen=True):
    """What a login tried and what it was told."""

    keys: Sequence[str] = ()
    agent_keys: int | None = None
    # Key files that have a passphrase and that no agent holds.
    locked: Sequence[str] = ()
    # Ways to log in that the server asked for and that gpulse did not answer.
    asked: frozenset[str] = frozenset()
    banner: str = ""


# What a login says when it is refused for reasons other than the key: (words in it, what it means, what helps).
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        r"pam_slurm_adopt",
        "Slurm lets you log in only while you have a job there (pam_slurm_adopt)",
        "start a job on the node, or have the administrators run gpulse's agent there",
    ),
    (
        r"account (has|is) expired|account expired",
        "the account has expired there",
        "ask the administrators to extend it",
    ),
    (
        r"password (has|is) expired|change your password|password change required",
        "the password has expired there and must be changed first",
        "log in once with `ssh {where}` and change it",
    ),
    (
        r"system is (going down|booting up)|not permitted to log in|nologin|unprivileged users are not permitted",
        "the node takes no logins now (nologin): it is starting, ending or in maintenance",
        "wait, or ask the administrators",
    ),
    (
        r"too many (authentication failures|logins)|maximum (number of )?(logins|sessions)",
        "there are too many logins or tries at once there",
        "close other sessions, or name one key with IdentityFile and IdentitiesOnly yes in ~/.ssh/config",
    ),
    (
        r"account is (currently )?not available|account.{0,20}(locked|disabled)",
        "the account cannot log in there",
        "ask the administrators for a login shell",
    ),
)

# What a shell or a system says when it cannot run the probe.
_FAILURES: tuple[tuple[str, str, str], ...] = (
    (
        r"restricted: cannot|rbash:.*restricted|: restricted\b|lshell|\*\*\* forbidden|unrecognized command|"
        r"only (allows|allowed)|allows sftp connections only|no shell access",
        "its login shell is restricted and refuses to run the probe",
        "have the account's shell changed, or use gpulse's agent on that node",
    ),
    (
        r"No space left on device|Disk quota exceeded",
        "a disk is full there",
        "make room on the node",
    ),
    (
        r"Resource temporarily unavailable|fork.*retry|Cannot fork|can't fork|fork failed|Too many processes",
        "it is out of processes for this account",
        "end some there, or raise the limit (ulimit -u)",
    ),
    (
        r"Cannot allocate memory|Out of memory|MemoryError",
        "it is out of memory",
        "free some there",
    ),
)
_NOT_FOUND = re.compile(r"not found|No such file|Unknown command|could not be found", re.IGNORECASE)


def unresolved(host: str, message: str) -> NodeLost:
    if re.search(r"temporary failure", message, re.IGNORECASE):
        return NodeLost(f"the name {host} cannot be looked up now: {message}", "look at this machine's DNS", NAME)
    return NodeLost(
        f"the name {host} does not resolve", "check its spelling, or give it a HostName in ~/.ssh/config", NAME
    )


def unreachable(place: Place, error: OSError | TimeoutError) -> NodeLost:
    where = f"{place.host} port {place.port}"
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ECONNREFUSED:
        return NodeLost(f"{where} refuses connections", "see that sshd runs there, and its port", PORT)
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return NodeLost(
            f"there is no route to {where}", "see that the node is on, and whether a jump host is needed", PORT
        )
    if number in (None, errno.ETIMEDOUT):
        return NodeLost(f"{where} does not answer", "see that the node is on and no firewall is between", PORT)
    return NodeLost(f"{where} cannot be connected to: {error.strerror or error}", "", PORT)


def host_key_unknown(place: Place, fingerprint: str) -> NodeLost:
    return NodeLost(
        f"the SSH host key of {place.known_as()} is not in known_hosts ({fingerprint})",
        f'run "ssh {place.ssh()}" once, or "gpulse doctor --trust", or set ssh.host_keys = "accept-new"',
        HOST_KEY,
    )


def host_key_changed(place: Place, fingerprint: str, files: Sequence[str]) -> NodeLost:
    file = f" -f {shlex.quote(files[0])}" if files else ""
    return NodeLost(
        f"the SSH host key of {place.known_as()} has CHANGED (now {fingerprint}): somebody may be in between",
        f"if the node was installed anew, run: ssh-keygen{file} -R {shlex.quote(place.known_as())}",
        HOST_KEY,
    )


def host_key_refused(place: Place, message: str) -> NodeLost:
    return NodeLost(
        f"the SSH host key of {place.known_as()} is refused: {message}",
        "look for its lines in known_hosts; a revoked key or certificate is never accepted",
        HOST_KEY,
    )


def denied(place: Place, attempt: Attempt) -> NodeLost:
    """The server let nobody in."""
    told = refusal(place, attempt.banner)
    if told:
        return told
    where = f"{place.user}@{place.host}"
    interactive = sorted(attempt.asked & {"keyboard-interactive", "password"})
    if interactive and "publickey" not in attempt.asked:
        return NodeLost(
            f"{where} wants a second factor or a password ({', '.join(interactive)}), which gpulse does not ask for",
            "use a key that suffices there, or gpulse's agent on that node",
            LOGIN,
        )
    if attempt.locked:
        return NodeLost(
            f"the key {', '.join(attempt.locked)} has a passphrase and no agent holds it",
            f"run: ssh-add {_path(attempt.locked[0])}",
            LOGIN,
        )
    tried = list(attempt.keys)
    if attempt.agent_keys:
        tried.append(f"{attempt.agent_keys} of the agent")
    keys = f"keys tried: {', '.join(tried)}" if tried else "there was no key to try"
    return NodeLost(
        f"{where} denies the login ({keys})",
        LOGIN_FIX.format(where=place.ssh()) + (f", for instance by ssh-copy-id {place.ssh()}" if tried else ""),
        LOGIN,
    )


def _path(path: str) -> str:
    """A file as one word of a shell, which still finds the home folder in ~/."""
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)


def refusal(place: Place, told: str) -> NodeLost | None:
    """The meaning of what a server said while it refused a login; None where it says nothing known."""
    for words, meaning, fix in _REFUSALS:
        if re.search(words, told, re.IGNORECASE):
            return NodeLost(meaning, fix.format(where=place.ssh()), LOGIN)
    return None


def hung_up(place: Place, attempt: Attempt, message: str, logged_in: bool) -> NodeLost:
    """The server ended the connection."""
    if not logged_in:
        told = refusal(place, attempt.banner)
        if told:
            return told
        said = last_line(attempt.banner)
        return NodeLost(
            f"{place.host} hung up before the login was done ({said or message})",
            "see sshd's log there; too many logins at once (MaxStartups) look like this too",
            LOGIN,
        )
    return NodeLost(f"the connection was lost ({message})", "", PROBE)


def ended(status: int | None, signal: str | None, told: str, python: str, place: Place) -> NodeLost:
    """The remote command ended, before or after it became the probe. `told` is what it and the shell printed."""
    if python_missing(status, told, python):
        return no_python(python)
    if status == EXIT_TOO_OLD:
        return NodeLost(last_line(told) or "its Python is too old", "set another `python` for this node", PYTHON)
    for words, meaning, fix in _FAILURES:
        if re.search(words, told, re.IGNORECASE):
            return NodeLost(f"{meaning} ({last_line(told)})", fix, PYTHON)
    refused = refusal(place, told)
    if refused:
        return refused
    how = f"by signal {signal}" if signal else f"with code {status}" if status is not None else "without a word"
    said = last_line(told)
    return NodeLost(f"its probe ended {how}" + (f": {said}" if said else ""), "", PROBE)


def python_missing(status: int | None, told: str, python: str) -> bool:
    """Shells say so by code 127; tcsh by code 1 and words."""
    if re.search(_FAILURES[0][0], told, re.IGNORECASE):
        return False
    return status == 127 or (status in (1, 126) and bool(_NOT_FOUND.search(told)) and python.rpartition("/")[2] in told)


def no_python(python: str) -> NodeLost:
    return NodeLost(
        f"there is no {python} on the node's PATH, and no nvidia-smi",
        "install Python 3.6 or later there, or set `python` for this node",
        PYTHON,
    )


def bad_settings(message: str) -> NodeLost:
    return NodeLost(f"ssh's settings cannot be used: {message}", "correct ~/.ssh/config", NAME)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
