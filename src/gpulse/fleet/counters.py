"""What has come in since the hub started, in figures that only grow."""


class Counters:
    """Plain numbers: whoever takes something in counts it here, /metrics tells them."""

    def __init__(self) -> None:
        # Live lines of all nodes, by whatever way.
        self.lines = 0
        self.line_bytes = 0
        self.bad_lines = 0
        # Lines of a time when the hub was away.
        self.late_lines = 0
        # Agents that connected; and what nodes asked for or sent and was refused, by the code of the error.
        self.connects = 0
        self.refused: dict[str, int] = {}
        # What all ticks together took.
        self.tick_seconds = 0.0

    def refuse(self, code: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1
