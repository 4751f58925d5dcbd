"""The reservations of a simulated cluster: believable, and made anew at each start."""

import asyncio
import time
from pathlib import Path

from gpulse.config.reservations import Reservations as Settings
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.desk import Desk
from gpulse.reservations.table import Reservations
from gpulse.simulate.bookings import make_up
from gpulse.simulate.transport import SimulatedTransport, scene
from gpulse.store import Records


def test_a_demo_has_reservations_of_all_kinds(tmp_path: Path):
    simulated, fleet = scene(10), Fleet()
    for place in simulated.places():
        fleet.place(place)
    transport = SimulatedTransport(simulated, fleet)
    for number in range(25):
        transport.step(number)
    fleet.tick()
    now = time.time()
    for _ in range(2):
        asyncio.run(make_up(tmp_path, fleet, "me", now))
    with Records(tmp_path) as records:
        table = Reservations(records, lambda: now)
        current, coming = table.current(now), table.between(now + 1, now + 20 * 86400)
        assert len(current) >= 4
        assert len(coming) >= 10
        assert {one.person for one in current} >= {"me"}
        assert len({one.person for one in coming}) > 3
        held = [place for one in current for place in one.places]
        assert len(held) == len(set(held)), "those of the first start are over"
        desk = Desk(table, fleet, Settings(), lambda: now)
        desk.look()
        assert {one.kind for one in desk.findings} >= {"squatter", "blocked"}
