"""Messages of an agent's connection, live and late ones."""

from gpulse.auth.tokens import NodeToken
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport.limits import Budget
from gpulse.transport.pushed import Connection
from tests.fuzz.targets import fleet_lines

# A line that begins with "T" is a late one.
SEEDS = [b"\n".join([*fleet_lines.SEEDS, b"T" + fleet_lines.SEEDS[0]]), fleet_lines.SEEDS[0]]
WORDS = [*fleet_lines.WORDS, "\\x0aT{", '"interval_seconds":-1e308']


class _Line:
    def __init__(self) -> None:
        self.closed: list[tuple[int, str]] = []

    def send(self, text: str) -> None:
        raise AssertionError(f"nothing is to be said: {text}")

    def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))


def fuzz(data: bytes) -> None:
    fleet = Fleet()
    fleet.place(Place(name="x"))
    line, gone = _Line(), []
    token = NodeToken("0" * 12, "x")
    connection = Connection(
        token, "0" * 16, "127.0.0.1", line, fleet, fleet.counters, Budget(), lambda _, reason: gone.append(reason)
    )
    for message in data.split(b"\n"):
        if message.startswith(b"T"):
            connection.text(message[1:])
        else:
            connection.binary(message)
        # What comes after its end is passed over; time passes only for those that are there.
        if not line.closed:
            connection.second()
    fleet.tick()
    fleet.nodes()
    # It is ended once, with words, and the fleet hears why.
    assert len(line.closed) == len(gone) <= 1
    assert all(4400 <= code < 4500 and reason for code, reason in line.closed)
