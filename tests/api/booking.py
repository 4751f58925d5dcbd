"""A hub with reservations, for tests of the API: a small fleet, people of every role, and a clock that is set."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import msgspec

from gpulse.api.application import create_app
from gpulse.config import Access as AccessSettings
from gpulse.config import Config, Privacy
from gpulse.config.reservations import MemberLimits, Reservations, RoleLimits
from gpulse.fleet.fleet import Fleet
from gpulse.reservations.desk import Desk
from gpulse.reservations.model import Place, Wanted
from gpulse.reservations.rules import By
from gpulse.reservations.table import Reservations as Table
from tests.api.asking import ask
from tests.api.fleets import add
from tests.api.people import HOSTS, make_people

# A Monday, 9:00 UTC.
NOW = 1_794_819_600.0
HOUR = 3600.0
MEMBER_LIMITS = MemberLimits(ahead_days=30, longest_hours=72, most_gpus=4, most_reservations=5)


class Clock:
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Site:
    """gpu1 and gpu2 with four cards each, of which alice is on the first. `member`, `admin` … are people there."""

    def __init__(self, folder: Path, others: Any = "names", now: float = NOW, **settings: Any) -> None:
        self.clock = Clock(now)
        # By its own clock no time passes: no node becomes stale, however slow the machine is.
        self.fleet = Fleet(clock=lambda: 5000.0, wall=self.clock)
        for name in ("gpu1", "gpu2"):
            add(self.fleet, name, 4)
        self.fleet.tick()
        self.people = make_people(folder)
        self.settings = Reservations(zone="Europe/Berlin", limits=RoleLimits(member=MEMBER_LIMITS), **settings)
        self.table = Table(self.people.records, self.clock)
        self.desk = Desk(self.table, self.fleet, self.settings, self.clock)
        config = Config(access=AccessSettings(hosts=HOSTS), privacy=Privacy(others=others))
        access = self.people.access(anonymous=True, config=config)
        self.app = create_app(self.fleet, access=access, desk=self.desk)
        self._keys: dict[str, dict[str, str]] = {}

    def headers(self, who: str | None) -> dict[str, str]:
        if who is None:
            return {}
        if who not in self._keys:
            self._keys[who] = {"Authorization": f"Bearer {self.people.key(who)}"}
        return self._keys[who]

    def ask(self, path: str, method: str = "GET", body: Any = None, who: str | None = "member") -> httpx.Response:
        content = None if body is None else msgspec.json.encode(body)
        return ask(self.app, f"/api/v1/{path}", method, self.headers(who), content)

    def reserve(self, *places: str, who: str = "member", **more: Any) -> httpx.Response:
        """Places as "gpu1:0"; for two hours unless told."""
        gpus = [{"node": place.split(":")[0], "index": place.split(":")[1]} for place in places]
        when = {} if "end" in more or "for" in more else {"for": "2h"}
        return self.ask("reservations", "POST", {"gpus": gpus, **when, **more}, who)

    def made(self, *places: str, **more: Any) -> dict[str, Any]:
        answer = self.reserve(*places, **more)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def made_elsewhere(self, *places: str, start: float | None = None, end: float, who: str = "admin") -> None:
        """By another process: the fleet does not know of it before the next look."""
        where = tuple(Place(*place.split(":")) for place in places)
        begin = self.clock.now if start is None else start
        wanted = Wanted(person=who, places=where, start=begin, end=end)
        asyncio.run(self.table.make(wanted, By(who, admin=True)))

    def tick(self, seconds: float = 1.0) -> None:
        self.clock.now += seconds
        self.desk.look()
        self.fleet.tick()

    def close(self) -> None:
        self.people.records.close()


def code(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["error"]["code"])
