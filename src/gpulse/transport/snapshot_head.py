"""The head of a full Snapshot: whose it is and how often its node tells something, without decoding the rest."""

import msgspec


class Probe(msgspec.Struct):
    """What tells."""

    interval_seconds: float | None = None


class Head(msgspec.Struct):
    """What every way in looks at before the fleet does."""

    schema: int | None = None
    node: str | None = None
    boot_id: str | None = None
    probe: Probe | None = None

    @property
    def interval_seconds(self) -> float | None:
        return self.probe.interval_seconds if self.probe is not None else None


read_head = msgspec.json.Decoder(Head).decode
