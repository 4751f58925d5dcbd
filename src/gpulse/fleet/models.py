"""Models of GPUs: their short names, and a small number for each that is there, by which live frames name it."""

from collections.abc import Collection, Mapping

from gpulse.fleet.names import short_model

_MOST_KEPT = 1000


class Models:
    """There are few models and many GPUs."""

    def __init__(self, called: Mapping[str, str]):
        """`called`: what people call a model, where that is not its short name."""
        self._called = called
        self._short: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._unused: list[int] = []
        # By number; "" for one that is not used now.
        self.names: list[str] = []

    def short(self, name: str | None) -> str | None:
        if not name:
            return None
        short = self._short.get(name)
        if short is None:
            if len(self._short) >= _MOST_KEPT:
                self._short = {}
            short = self._short[name] = short_model(name, self._called)
        return short

    def number(self, model: str) -> int:
        number = self._numbers.get(model)
        if number is None:
            if not self._unused:
                self._unused.append(len(self.names))
                self.names.append("")
            number = self._numbers[model] = self._unused.pop()
            self.names[number] = model
        return number

    def keep(self, there: Collection[str]) -> None:
        """Only these are there: the numbers of all others may be given to new ones."""
        gone = self._numbers.keys() - there
        if not gone:
            return
        for model in gone:
            self.names[self._numbers.pop(model)] = ""
        while self.names and not self.names[-1]:
            self.names.pop()
        self._unused = [number for number, model in enumerate(self.names) if not model]
