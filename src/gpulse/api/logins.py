"""Whose a reservation shall be: the login that is meant by what somebody writes."""

from collections.abc import Iterable

from gpulse.api.hub import Hub
from gpulse.auth.account_names import folded
from gpulse.errors import RequestError


class Logins:
    """Those that are known at this moment: of accounts, of processes, and of people whose names are in the config."""

    def __init__(self, hub: Hub):
        self._accounts = hub.access.directory.accounts
        self._called = hub.fleet.settings.people
        self._logins = _alike((login, login) for login in {*filter(None, hub.fleet.logins), *self._called})
        self._names = _alike((name, login) for login, name in self._called.items())

    def of(self, person: str) -> str:
        """A login, also where somebody writes what people call them, or in other letters; else what was written."""
        wanted = person.strip()
        if not wanted:
            raise RequestError(422, "no_person", "the person has no name", "write their login name")
        account = self._accounts.by_name(wanted)
        if account is not None:
            return account.name
        if wanted in self._called:
            return wanted
        key = folded(wanted)
        logins, named = self._logins.get(key, set()), self._names.get(key, set())
        exactly = {login for login in named if self._called[login] == wanted}
        if len(exactly) == 1:
            return exactly.pop()
        # On nodes Bob and bob may be two people: only where no other can be meant, other letters are the same.
        meant = logins | named
        return meant.pop() if wanted not in logins and len(meant) == 1 else wanted


def login_of(hub: Hub, person: str) -> str:
    return Logins(hub).of(person)


def _alike(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The logins by what they are written like."""
    found: dict[str, set[str]] = {}
    for written, login in pairs:
        found.setdefault(folded(written), set()).add(login)
    return found
