"""What one person sees of the others."""

from typing import Literal, NamedTuple

Level = Literal["full", "names", "anonymous"]
_ORDER: tuple[Level, ...] = ("anonymous", "names", "full")


class Sight(NamedTuple):
    """How much is told of others, and the names of those that are told of in full all the same."""

    level: Level
    own: frozenset[str] = frozenset()

    def lowered(self, wanted: Level) -> "Sight":
        """No more than `wanted`, and never more than it was."""
        return self if _ORDER.index(self.level) <= _ORDER.index(wanted) else self._replace(level=wanted)

    def key(self) -> str:
        """The same for those who see the same."""
        return "full" if self.level == "full" else f"{self.level}:{','.join(sorted(self.own))}"


FULL = Sight("full")
