"""A small site with what is hard to show: long names, many GPUs, MIG, something broken, old, out of reach, empty."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.api.fleets import GIB, card, process, snapshot
from tests.system.agents import Site

LONG_NODE = "gpu-node-with-a-very-long-name-in-rack-07-of-hall-b-row-12-u"
LONG_USER = "extraordinarily_long_username_of_a_guest"
LONG_COMMAND = "python -m torch.distributed.run train.py --config " + "a/rather/long/path/" * 8 + "to.yaml"
CROWDED = "GPU-crowded"
# Nobody sends again: those that shall be up have much time.
CALM = {"version": "0.1.0", "python": "3.11", "interval_seconds": 600.0, "gpu_source": "nvml"}
HASTY = CALM | {"interval_seconds": 1.0}
# By name, an address and what is there only when the page has its data.
PLACES = {
    "cards": ("#/?view=cards", "main article li"),
    "filtered": (f"#/?view=cards&q=user:{LONG_USER}", "main article li"),
    "table": ("#/?view=table", "main [role=row] a"),
    "nodes": ("#/?view=table&rows=nodes", "main [role=row] a"),
    "map": ("#/?view=map", "main canvas"),
    "node": (f"#/nodes/{LONG_NODE}", ".uplot"),
    "silent": ("#/nodes/stale1", ".uplot"),
    "down": ("#/nodes/down1", "main ol li"),
    "no-gpu": ("#/nodes/login1", "main dl"),
    "gpu": (f"#/gpus/{CROWDED}", ".uplot"),
    "people": ("#/people", "main table a"),
    "person": (f"#/people/{LONG_USER}", "main article"),
    "reservations": ("#/reservations", "main form"),
    "bookings": ("#/reservations?shape=list", "main form"),
    "no-such-page": ("#/nowhere", "main h1"),
    "no-such-node": ("#/nodes/nowhere", "main h1"),
    "wrong-filter": ("#/?q=mem>banana", "[role=alert]:not(:empty)"),
}


def _busy(uuid: str, index: int, **more: Any) -> dict[str, Any]:
    return card(uuid, index, memory_used_bytes=70 * GIB, utilization_ratio=0.97, power_watts=650.0, **more)


def _long() -> bytes:
    """Sixteen cards: one with many people, one broken, one in two instances."""
    cards = [
        _busy(CROWDED, 0),
        _busy("GPU-broken", 1, ecc_uncorrected_volatile_total=3, temperature_celsius=91),
        card("GPU-split", 2, mig_enabled=True),
        *[card(f"MIG-{part}", 2, parent_uuid="GPU-split", mig_index=part, mig_profile="3g.40gb") for part in range(2)],
        *[card(f"GPU-{index}", index) for index in range(3, 16)],
    ]
    processes = [
        process(100, LONG_USER, CROWDED, LONG_COMMAND) | {"nice": 10},
        process(101, "alice", "GPU-broken", "python infer.py") | {"vanished": True, "children": [4711, 4712]},
        process(102, LONG_USER, "MIG-0", "python small.py", 2),
        *[process(200 + one, f"guest{one}", CROWDED, f"worker {one}", 1) for one in range(9)],
    ]
    return snapshot(LONG_NODE, cards, processes, probe=CALM)


@contextmanager
def awkward_site(folder: Path) -> Iterator[Site]:
    """Besides the long one: a node without GPUs, one that is silent, one where nobody listens (port 1)."""
    # Long commands are to be seen, too.
    settings = '[privacy]\nothers = "full"\n[[nodes]]\nhosts = ["down1"]\ntransport = "ssh"\nport = 1\n'
    (folder / "gpulse.toml").write_text(settings)
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "config").write_text("Host down1\n  HostName 127.0.0.1\n")
    old = [_busy("GPU-old", 0), card("GPU-old-free", 1)]
    sent = {
        LONG_NODE: _long(),
        "login1": snapshot("login1", [], probe=CALM),
        "stale1": snapshot("stale1", old, [process(5, "alice", "GPU-old", "python x.py")], probe=HASTY),
    }
    with Site(folder) as site:
        for node, body in sent.items():
            site.tell(node, body)
        site.until_up(LONG_NODE)
        site.until_state("stale1", "stale")
        site.until_state("down1", "down")
        yield site


def until_there(page: Page, name: str) -> None:
    if name in ("cards", "filtered"):
        # Far below the window, as on a phone, there are none yet.
        page.get_by_role("region", name="Nodes").scroll_into_view_if_needed()
    expect(page.locator(PLACES[name][1]).first).to_be_visible()
