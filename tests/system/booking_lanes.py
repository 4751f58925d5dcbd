"""Somebody who books two cards again and again, makes bookings longer, ends and cancels them; what they were told."""

import threading
from collections import defaultdict
from itertools import pairwise
from typing import Any

import httpx

from tests.system.booking import HOUR, NODE, wanted

_HALF_HOUR = HOUR / 2


class Lane:
    """What is known of two cards, over all hubs: what was acknowledged, and what was asked for without an answer."""

    def __init__(self, gpus: list[int], hour: float) -> None:
        self.gpus = gpus
        # Of each reservation by its id what was done, and how it was afterwards.
        self.told: defaultdict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        self.unanswered: defaultdict[str, list[str]] = defaultdict(list)
        # The comments of those that were to be made when there was no answer.
        self.unanswered_makes: list[str] = []
        self.wrong: list[tuple[int, str]] = []
        self._hour = hour
        self._count = 0

    def book(self, client: httpx.Client) -> None:
        """One after the other: a booking of now that is ended, then one of later that is kept or cancelled."""
        number, later = self._count, self._count % 2 == 1
        comment = f"{self.gpus} {number}"
        body = wanted(self.gpus, self._hour, comment)
        if not later:
            body = {"gpus": body["gpus"], "for": "1h", "comment": comment}
        try:
            answer = client.post("api/v1/reservations", json=body)
        except httpx.TransportError:
            self.unanswered_makes.append(comment)
            raise
        # What is not answered is asked for again.
        self._count += 1
        self._hour += later * 2 * HOUR
        if answer.status_code == 409 and not later:
            # In the way may only be what a hub saved before it could say so, or did not end when it was told to.
            for one in answer.json()["error"]["conflicts"]:
                self._do(client, one["id"], "ended", "POST", "/end")
            return
        if answer.status_code == 201:
            made = answer.json()
            self.told[made["id"]].append(("made", made))
            self._do(client, made["id"], "changed", "PATCH", "", {"extend": "30m"})
            if not later:
                self._do(client, made["id"], "ended", "POST", "/end")
            elif number % 4 == 1:
                self._do(client, made["id"], "cancelled", "DELETE", "")
        elif answer.status_code != 409 or comment not in self.unanswered_makes:
            self.wrong.append((answer.status_code, answer.text))

    def _do(self, client: httpx.Client, identity: str, what: str, method: str, path: str, body: Any = None) -> None:
        try:
            answer = client.request(method, f"api/v1/reservations/{identity}{path}", json=body)
        except httpx.TransportError:
            self.unanswered[identity].append(what)
            raise
        if answer.status_code == 200:
            self.told[identity].append((what, answer.json()))
        else:
            self.wrong.append((answer.status_code, answer.text))


class Booker(threading.Thread):
    """Goes on until the hub no longer answers."""

    def __init__(self, lane: Lane, client: httpx.Client) -> None:
        super().__init__()
        self._lane = lane
        self._client = client
        # Set when something was acknowledged, or when nothing will be.
        self.begun = threading.Event()

    def run(self) -> None:
        try:
            while not self._lane.wrong:
                self._lane.book(self._client)
                self.begun.set()
        except httpx.TransportError:
            pass
        finally:
            self.begun.set()


def check(lane: Lane, found: list[dict[str, Any]], histories: dict[str, list[tuple[str, dict[str, Any]]]]) -> int:
    """Looks at all bookings of the lane; how many changes there were that nobody was told of."""
    assert lane.wrong == [], lane.wrong
    own = [one for one in found if one["comment"].startswith(f"{lane.gpus} ")]
    assert {identity for identity, told in lane.told.items() if told} <= {one["id"] for one in own}
    # None twice, and of none a part.
    assert len({one["comment"] for one in own}) == len(own)
    places = [(NODE, str(index)) for index in lane.gpus]
    assert all([(gpu["node"], gpu["index"]) for gpu in one["gpus"]] == places for one in own)
    surprises = 0
    for one in own:
        history = histories[one["id"]]
        told = [(what, view["revision"]) for what, view in lane.told[one["id"]]]
        done = [(what, after["revision"]) for what, after in history]
        # All that was acknowledged, in order; besides only what was asked for.
        assert [each for each in done if each in told] == told
        untold = [what for what, revision in done if (what, revision) not in told]
        asked = lane.unanswered[one["id"]] + ["made"] * (one["comment"] in lane.unanswered_makes)
        assert all(untold.count(what) <= asked.count(what) for what in untold), (untold, asked)
        surprises += len(untold)
        for (_, view), (_, after) in zip(
            lane.told[one["id"]], [each for each in history if _of(each) in told], strict=True
        ):
            assert (view["start"], view["end"], view["ending"]) == (after["start"], after["end"], after["ending"])
        last = history[-1][1]
        assert all(one[name] == last[name] for name in ("start", "end", "ended_at", "ending", "revision", "person"))
        longer = any(what == "changed" for what, _ in history)
        assert one["end"] - history[0][1]["end"] == longer * _HALF_HOUR
    held = sorted((one["start"], one["last"]) for one in own if one["last"] > one["start"])
    assert all(before[1] <= after[0] for before, after in pairwise(held))
    return surprises


def _of(entry: tuple[str, dict[str, Any]]) -> tuple[str, int]:
    return entry[0], entry[1]["revision"]
