"""People on GPUs: what to call them, and a small number for each, as live frames have no room for names.

Who is nowhere any more keeps the number for a while, as many come back. When those are many they are forgotten, and
the others are numbered anew.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from gpulse.fleet.model import Process
from gpulse.fleet.node import Node

NOBODY = 0
# Stands for those who get no number of their own.
OTHERS = "others"
MOST = 10_000
# A node may bring so many names at once that no node had before, and then another one every few seconds.
MOST_NEWCOMERS = 64
NEWCOMER_SECONDS = 10.0
MOST_GONE = 1000
_LONGEST_NAME = 100


class People:
    def __init__(self, aliases: Mapping[str, str]):
        self._aliases = aliases
        self._numbers: dict[str, int] = {}
        # By person, how many nodes have them on a GPU.
        self._nodes: dict[str, int] = {}
        # By number; 0 is nobody.
        self.names: list[str] = [""]
        # Grows when numbers stand for others than before.
        self.numbering = 0

    def person(self, process: Process) -> str | None:
        """Whose process it is, as people say."""
        return self.called(process.user)

    def called(self, user: str | None) -> str | None:
        """Who has this login, as people say."""
        return self._aliases.get(user, user)[:_LONGEST_NAME] if user else None

    def number_of(self, user: str) -> int:
        """The number of who has this login; NOBODY where there is none, or where it may be somebody else's."""
        person = self.called(user)
        shared = any(name == person and login != user for login, name in self._aliases.items())
        return NOBODY if person in (None, OTHERS) or shared else self._numbers.get(person, NOBODY)

    def take(self, node: Node, now: float) -> list[int]:
        """The node as told just now: for each GPU the number of the person who holds most of it."""
        told = self._main_people(node)
        there = dict.fromkeys(person for person in told if person is not None)
        if there.keys() != node.people:
            self._exchange(node, [self._numbered(person, node, now) for person in there])
        numbers = self._numbers
        others = numbers.get(OTHERS, NOBODY)
        return [NOBODY if person is None else numbers.get(person, others) for person in told]

    def release(self, node: Node) -> None:
        """The node is gone, and its people with it."""
        self._exchange(node, ())

    def forget(self) -> NDArray[np.uint16] | None:
        """By number the new one, without those who are nowhere any more; None: they are too few to begin anew."""
        gone = len(self._numbers) - len(self._nodes)
        if gone <= MOST_GONE and not (gone and len(self._numbers) >= MOST):
            return None
        renumbered = np.zeros(len(self.names), np.uint16)
        names = [person for person in self._numbers if person in self._nodes]
        for number, person in enumerate(names, 1):
            renumbered[self._numbers[person]] = number
        self._numbers = {person: number for number, person in enumerate(names, 1)}
        self.names = ["", *names]
        self.numbering += 1
        return renumbered

    def _main_people(self, node: Node) -> list[str | None]:
        held: dict[str | None, dict[str, int]] = {}
        for process in node.processes:
            person = self.person(process)
            if person:
                for use in process.gpus or ():
                    people = held.setdefault(use.uuid, {})
                    people[person] = people.get(person, 0) + (use.memory_bytes or 1)
        return [max(held[gpu.uuid], key=held[gpu.uuid].__getitem__) if gpu.uuid in held else None for gpu in node.gpus]

    def _numbered(self, person: str, node: Node, now: float) -> str:
        """The person, who has a number now; or OTHERS, where there is none for somebody new."""
        if person in self._numbers:
            return person
        node.newcomers = max(0.0, node.newcomers - (now - node.newcomers_at) / NEWCOMER_SECONDS)
        node.newcomers_at = now
        if person != OTHERS and (node.newcomers > MOST_NEWCOMERS - 1 or len(self._numbers) >= MOST):
            return self._numbered(OTHERS, node, now)
        node.newcomers += 1
        self._numbers[person] = len(self.names)
        self.names.append(person)
        return person

    def _exchange(self, node: Node, people: Iterable[str]) -> None:
        there = frozenset(people)
        for person in there - node.people:
            self._nodes[person] = self._nodes.get(person, 0) + 1
        for person in node.people - there:
            self._nodes[person] -= 1
            if not self._nodes[person]:
                del self._nodes[person]
        node.people = there
