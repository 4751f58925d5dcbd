"""Everything that can go wrong in words a person can act on.

GpulseError
├── BadLine          a node sent a line that is no snapshot of it
├── NodeLost         a node cannot be reached, or its connection ended
├── ListenError      the hub cannot listen where it should
├── TlsError         a certificate or its key cannot be used
├── BundleError      the probe's bundle cannot be made
├── ConfigError      gpulse.toml has mistakes; `problems` has them all
├── ExportError      a static site cannot be made or written
├── AgentError       an agent cannot be set up as asked
├── StoreError       what the hub keeps cannot be read or written
├── TokenError       a token cannot be made or revoked as asked
├── RequestError     a request cannot be answered; has a status and a word for programs
│   ├── TokenRefused   a token does not open what it should
│   ├── SignInRefused  who asks is not, or no longer, let in
│   ├── AccountError   an account, a key or a link cannot be made or changed as asked
│   ├── ReservationError  a reservation cannot be made or changed as asked
│   └── WhenError      a moment or a span is not understood
├── DiscoveryError   a list of nodes cannot be read
│   └── HostsError   text does not name hosts
└── HubError         a running hub cannot be asked
    ├── HubSilent    nothing answers there; it may later
    └── HubRefused   the hub says no, in its own words
"""

from collections.abc import Sequence
from typing import Any


class GpulseError(Exception):
    """A message that names the thing, the cause and the next step."""


class BundleError(GpulseError):
    """The probe's bundle cannot be made."""


class ConfigError(GpulseError):
    """gpulse.toml has mistakes; `problems` has them all, a line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DiscoveryError(GpulseError):
    """A list of nodes cannot be read."""


class HostsError(DiscoveryError):
    """Text does not name hosts."""


class HubError(GpulseError):
    """A running hub cannot be asked."""


class HubSilent(HubError):
    """Nothing answers where the hub should be; it may later."""


class HubRefused(HubError):
    """The hub says no, in its own words."""

    # Of a reservation: what is in the way and what could be had instead, as JSON.
    conflicts: Sequence[Any] = ()
    alternatives: Sequence[Any] = ()

    def __init__(self, code: str, message: str, detail: str = "", status: int = 0) -> None:
        super().__init__(f"{message}; {detail}" if detail else message)
        self.status = status
        self.code = code
        self.message = message
        self.detail = detail


class BadLine(GpulseError):
    """A node sent a line that is no snapshot of it; what was known of the node stays."""


class NodeLost(GpulseError):
    """A node cannot be reached, or its connection ended: what is wrong, what helps, and the check that found it."""

    def __init__(self, what: str, fix: str = "", check: str = "") -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what = what
        self.fix = fix
        self.check = check


class FilterError(GpulseError):
    """The text of a filter is not understood."""


class RequestError(GpulseError):
    """A request to the hub cannot be answered: which status it gets, a word for programs, and when to ask again."""

    def __init__(self, status: int, code: str, message: str, detail: str = "", retry_seconds: int | None = None):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.detail = detail
        self.retry_seconds = retry_seconds


class TokenRefused(RequestError):
    """A token does not open what it should."""


class SignInRefused(RequestError):
    """A password, a session, a key or a link does not, or no longer, let in who shows it."""


class AccountError(RequestError):
    """An account, a key or a link cannot be made or changed as asked."""

    def __str__(self) -> str:
        # Commands print it, the API has the two apart.
        return f"{self.message}; {self.detail}" if self.detail else self.message


class ReservationError(RequestError):
    """A reservation cannot be made or changed as asked; what is in the way, and what would be possible."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        detail: str = "",
        *,
        # Reservation and Alternative of gpulse.reservations, of which nothing is known down here.
        conflicts: Sequence[Any] = (),
        alternatives: Sequence[Any] = (),
    ) -> None:
        super().__init__(status, code, message, detail)
        self.conflicts = list(conflicts)
        self.alternatives = list(alternatives)

    def __str__(self) -> str:
        # Commands print it, the API has the two apart.
        return f"{self.message}; {self.detail}" if self.detail else self.message


class WhenError(RequestError):
    """A moment or a span as people write it is not understood: what was, and what was not."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(422, "when_unclear", message, detail)

    def __str__(self) -> str:
        # As of reservations.
        return f"{self.message}; {self.detail}" if self.detail else self.message


class AgentError(GpulseError):
    """An agent, or the hub as a service, cannot be set up as asked."""


class ExportError(GpulseError):
    """A static site cannot be made or written."""


class StoreError(GpulseError):
    """What the hub keeps cannot be read or written."""


class TokenError(GpulseError):
    """A token cannot be made or revoked as asked."""


class TlsError(GpulseError):
    """A certificate or its key cannot be used."""


class ListenError(GpulseError):
    """The hub cannot listen where it should."""
