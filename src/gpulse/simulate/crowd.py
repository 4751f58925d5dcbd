"""Very many nodes for little: each replays what a few simulated ones said, under its own name and cards.

An Update names neither node nor card, so that all who replay it share its bytes; only its head is made anew.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpulse.fleet.places import Place
from gpulse.simulate.cluster import RACK_NODES, SHARES, UP, Cluster, Condition, Shares
from gpulse.simulate.machines import MIX, Machine
from gpulse.simulate.people import PEOPLE, Person
from gpulse_probe.schema import SCHEMA


class Recording(NamedTuple):
    """What one node said, second by second; of each line the part behind its seq and time.

    `fulls` has, for the seconds at which a stream can begin and those at which processes came or went, the full
    Snapshot; `updates` has None at the latter.
    """

    name: str
    identity: str
    boot_id: str
    updates: list[bytes | None]
    fulls: dict[int, bytes]


class Crowd:
    """So many nodes, each somewhere else in a recording; at its end it begins anew, as a restarted probe does."""

    def __init__(
        self,
        nodes: int,
        seed: int = 1,
        start: float = 1_700_000_000.0,
        *,
        templates: int = 40,
        seconds: int = 120,
        every: int = 10,
        mix: Sequence[tuple[Machine, float]] = MIX,
        people: Sequence[Person] = PEOPLE,
        shares: Shares = SHARES,
    ):
        """`templates` nodes are recorded for so many seconds; streams begin at `every` so many of them."""
        cluster = Cluster(templates, seed, start, mix=mix, people=people, shares=shares, faults=False)
        self.recordings = _record(cluster, seconds, every)
        self.now = start
        self._seconds = seconds
        width = max(2, len(str(nodes)))
        self._places = [
            msgspec.structs.replace(
                place, name=f"gpu{number + 1:0{width}d}", rack=f"r{number // RACK_NODES + 1:0{width - 1}d}"
            )
            for number, place in zip(range(nodes), itertools.cycle(cluster.places()), strict=False)
        ]
        self._numbers = {place.name: number for number, place in enumerate(self._places)}
        # Nodes of one recording begin at different seconds: where each is in it, the seq of its next line, and that
        # of its last full one.
        self._begins = [number // templates * every % seconds for number in range(nodes)]
        self._at = list(self._begins)
        self._seq = [0] * nodes
        self._full_seq = [-1] * nodes

    def places(self) -> list[Place]:
        return self._places

    def advance(self, now: float) -> None:
        self.now = now

    def condition(self, _name: str) -> Condition:
        """None of a crowd fails."""
        return UP

    def new_stream(self, name: str) -> None:
        number = self._numbers[name]
        self._at[number] = self._begins[number]
        self._full_seq[number] = -1

    def line(self, name: str) -> bytes:
        """What this node says at its next second."""
        number = self._numbers[name]
        at, seq = self._at[number], self._seq[number]
        recording = self.recordings[number % len(self.recordings)]
        self._at[number] = (at + 1) % self._seconds
        self._seq[number] = seq + 1
        update = recording.updates[at]
        if update is None or self._full_seq[number] < 0:
            self._full_seq[number] = seq
            return self._full(recording, recording.fulls[at], number, seq)
        return b'{"update":%d,"seq":%d,"time":%.3f,' % (self._full_seq[number], seq, self.now) + update

    def _full(self, recording: Recording, rest: bytes, number: int, seq: int) -> bytes:
        name = self._places[number].name
        head = '{"schema":%d,"node":"%s","boot_id":"%s","time":%.3f,"seq":%d,'
        rest = rest.replace(f'"hostname":"{recording.name}"'.encode(), f'"hostname":"{name}"'.encode())
        # Every card's UUID begins with its node's identity.
        rest = rest.replace(f"-{recording.identity}-".encode(), b"-%08x-" % number)
        return (head % (SCHEMA, name, recording.boot_id, self.now, seq)).encode() + rest


def _record(cluster: Cluster, seconds: int, every: int) -> list[Recording]:
    recordings = []
    for node in cluster.nodes.values():
        recordings.append(Recording(node.name, node.identity, node.host.boot_id, [], {}))
    start = cluster.now
    for second in range(seconds):
        cluster.advance(start + second)
        for recording in recordings:
            update = cluster.update_line(recording.name)
            full = None
            if update is None:
                full = cluster.full_line(recording.name)
            elif second % every == 0:
                full = cluster.nodes[recording.name].restated_line()
            # The head of an Update ends with its time, that of a Snapshot with its seq.
            recording.updates.append(_behind(update, b'"time":') if update else None)
            if full is not None:
                recording.fulls[second] = _behind(full, b'"seq":')
    for recording in recordings:
        # Begun again, the updates are not about the Snapshot the recording ended with.
        recording.updates[0] = None
    return recordings


def _behind(line: bytes, mark: bytes) -> bytes:
    return line[line.index(b",", line.index(mark)) + 1 :]
