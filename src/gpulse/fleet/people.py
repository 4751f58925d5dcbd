"""People on GPUs: what to call them, and a small number for each, as live frames have no room for names."""

from collections.abc import Mapping

from gpulse.fleet.model import Process
from gpulse.fleet.node import Node

NOBODY = 0
# More people than a frame's two bytes can number share the last one.
_MOST = 0xFFFF
_LONGEST_NAME = 100


class People:
    def __init__(self, aliases: Mapping[str, str]):
        self._aliases = aliases
        self._numbers: dict[str, int] = {}
        # By number; 0 is nobody.
        self.names: list[str] = [""]

    def person(self, process: Process) -> str | None:
        """Whose process it is, as people say."""
        return self._aliases.get(process.user, process.user)[:_LONGEST_NAME] if process.user else None

    def number(self, person: str) -> int:
        number = self._numbers.get(person)
        if number is None:
            if len(self.names) > _MOST:
                return _MOST
            number = self._numbers[person] = len(self.names)
            self.names.append(person)
        return number

    def main_person_numbers(self, node: Node) -> list[int]:
        """For each GPU the person who holds most of it."""
        held: dict[str | None, dict[str, int]] = {}
        for process in node.processes:
            person = self.person(process)
            if person:
                for use in process.gpus or ():
                    people = held.setdefault(use.uuid, {})
                    people[person] = people.get(person, 0) + (use.memory_bytes or 1)
        return [
            self.number(max(held[gpu.uuid], key=held[gpu.uuid].__getitem__)) if gpu.uuid in held else NOBODY
            for gpu in node.gpus
        ]
