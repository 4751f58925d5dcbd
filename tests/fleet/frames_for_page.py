"""Prints frames of a small fleet, made by the hub's own code, and what they say: for web/src/lib/live/frame.test.ts."""

import base64
import json
import sys

from gpulse.fleet.fleet import Fleet
from gpulse.fleet.frames import Frames
from gpulse.fleet.places import Place
from tests.fleet.lines import GIB, gpu, process, snapshot, update

fleet = Fleet(wall=lambda: 1000.0)
fleet.place(Place(name="n2", rack="r1", group="lab"))
fleet.place(Place(name="n10", display_name="Ten"))
fleet.place(Place(name="n11"))
named, nameless = Frames(fleet), Frames(fleet, nameless=True)
told = []


def step(frames: Frames, delta: bool) -> None:
    fleet.tick()
    frames.step(1000.5)
    frame = frames.delta() if delta else frames.full()
    assert frame is not None
    nodes = [fleet.node(name) for name in fleet.names()]
    told.append(
        {
            "frame": base64.b64encode(frame).decode(),
            "states": [one.state for node in nodes if node for one in node.gpus],
            "utilization": [one.utilization_ratio for node in nodes if node for one in node.gpus],
            "power": [one.power_watts for node in nodes if node for one in node.gpus],
            "people": [[use.person for use in one.people] for node in nodes if node for one in node.gpus],
            "nodes": [node.state for node in nodes if node],
            "nameless": frames is nameless,
        }
    )


first = [gpu(0, uuid="A", utilization_ratio=0.5, memory_used_bytes=40 * GIB, power_watts=301.0), gpu(1, uuid="B")]
fleet.line("n2", snapshot(*first))
fleet.line("n10", snapshot(gpu(0, uuid="C", utilization_ratio=None), processes=[process(1, "C", "bob")]))
step(named, delta=False)
fleet.line("n2", update(0, 1, 1001.0, gpus={"utilization_ratio": [0.25, 1.0], "power_watts": [70.0, 65000.0]}))
step(named, delta=True)
fleet.line("n10", snapshot(gpu(0, uuid="C"), processes=[process(2, "C", "carol")], seq=1))
step(named, delta=True)
step(nameless, delta=False)
fleet.line("n2", snapshot(*first, processes=[process(3, "B", "dave")], seq=1))
step(nameless, delta=True)
sys.stdout.write(json.dumps(told))
