"""A node's place in the cluster: what people call it and where it stands. It comes from config and discovery."""

import msgspec


class Place(msgspec.Struct, frozen=True):
    """How a node is known. `name` is unique in the fleet; the rest is for people."""

    name: str
    display_name: str | None = None
    group: str | None = None
    rack: str | None = None
    # How it is reached, in words: "ssh me@gpu40:22", "this machine", "simulated".
    address: str | None = None
    interval_seconds: float = 1.0
