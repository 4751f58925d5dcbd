"""What one person sees of the others."""

from typing import Literal, NamedTuple

Level = Literal["full", "names", "anonymous"]
_ORDER: tuple[Level, ...] = ("anonymous", "names", "full")
# What others are called where they have no names.
SOMEBODY = "somebody"


class Sight(NamedTuple):
    """How much is told of others, and the logins of those that are told of in full all the same."""

    level: Level
    own: frozenset[str] = frozenset()

    def lowered(self, wanted: Level) -> "Sight":
        """What a stranger sees of everybody at the level `wanted`; never more than before."""
        if wanted == "full":
            return self
        return Sight(min(self.level, wanted, key=_ORDER.index))

    def key(self) -> str:
        """The same for those who see the same."""
        return "full" if self.level == "full" else f"{self.level}:{','.join(sorted(self.own))}"

    def names(self, user: str | None) -> bool:
        """Whether it is told who has this login."""
        return self.level != "anonymous" or user in self.own

    def login(self, user: str | None) -> str | None:
        """The login as it is told."""
        return user if self.names(user) else SOMEBODY


FULL = Sight("full")
