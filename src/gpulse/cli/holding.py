"""Holds GPUs that were found free: a short reservation, so that nobody snaps them away before a program starts."""

import time
from collections.abc import Sequence

import msgspec

from gpulse.cli import booked, terminal
from gpulse.cli.booked import Reservation
from gpulse.cli.client import Hub
from gpulse.cli.figures import gpu_index
from gpulse.cli.places import text_of
from gpulse.errors import HubRefused
from gpulse.fleet.views import GpuView

# Nothing is left to hold: what is in the way has begun this moment, or begins where the own reservation ends.
_NO_TIME = ("ends_before_start", "in_the_past")
# How long what was waited for is held where nobody says, if the site allows as much.
_USUAL_MINUTES = 10.0
# Who asks is not known, may not reserve, or nobody here does: that stays so, however long they wait.
_NEVER = (401, 403, 404)


class _Terms(msgspec.Struct):
    hold_longest_minutes: float | None = None


class Hold:
    """`made` is the reservation as the hub told of it, once GPUs are held.

    Where it is only `offered`, as nobody has asked for it, what was found is told of also where it cannot be held.
    """

    def __init__(self, hub: Hub, length: str, *, offered: bool = False):
        self._hub = hub
        self.length = length
        self._offered = offered
        self._told: list[str] = []
        self.made: bytes | None = None

    def check(self, count: int) -> None:
        """HubRefused where it may not be, whichever GPUs it will be: before somebody waits for them all night."""
        try:
            self._send({"wish": {"n": count}, "for": self.length, "dry_run": True})
        except HubRefused as refusal:
            if refusal.code not in ("conflict", "no_gpus"):
                raise

    def take(self, gpus: Sequence[GpuView]) -> bool:
        """False where somebody else was faster."""
        try:
            return self._take(gpus)
        except HubRefused as refusal:
            if not self._offered:
                raise
            self._told.append(f"not held: {refusal}")
            return True

    def _take(self, gpus: Sequence[GpuView]) -> bool:
        free = [_place(gpu) for gpu in gpus if gpu.reservation is None]
        if free and not self._take_free(free):
            return False
        self._go_on([gpu for gpu in gpus if gpu.reservation is not None])
        return True

    def told(self) -> list[str]:
        """Sentences about what is held, or why it is not."""
        return self._told or ["they are reserved for you already"]

    def _take_free(self, places: list[dict[str, str]]) -> bool:
        try:
            self._note(self._send({"gpus": places, "for": self.length}))
        except HubRefused as refusal:
            if refusal.code != "conflict":
                raise
            return self._until_own({"gpus": places}, refusal)
        return True

    def _go_on(self, gpus: Sequence[GpuView]) -> None:
        """What is reserved for who asks already, and for less time than it shall be held, is held from then on."""
        from gpulse.reservations.dates import parse_span

        until = time.time() + parse_span(self.length).total_seconds()
        ending: dict[float, list[dict[str, str]]] = {}
        for gpu in gpus:
            if gpu.reservation is not None and gpu.reservation.end < until:
                ending.setdefault(gpu.reservation.end, []).append(_place(gpu))
        for end, places in sorted(ending.items()):
            wanted = {"gpus": places, "start": end}
            try:
                self._note(self._send(wanted | {"end": until}), f"your own reservation ends {booked.moment(end)}; ")
            except HubRefused as refusal:
                if refusal.code == "conflict" and self._until_own(wanted, refusal):
                    continue
                # They are theirs for now, which is what was found: that is no failure, but has to be known.
                self._told.append(f"not held after your own reservation ends {booked.moment(end)}: {refusal}")

    def _until_own(self, wanted: dict[str, object], refusal: HubRefused) -> bool:
        """Where only reservations of who asks are in the way, it is held until the first of them."""
        ahead = [self._hub.decode(raw, Reservation) for raw in refusal.conflicts]
        if not ahead or not all(one.mine for one in ahead):
            return False
        try:
            made = self._send(wanted | {"end": min(one.start for one in ahead)})
        except HubRefused as again:
            # It has begun this moment: the hub will say so when it is asked anew.
            if again.code not in ("conflict", *_NO_TIME):
                raise
            return "start" in wanted and again.code in _NO_TIME
        self._note(made, why=", when your own reservation begins")
        return True

    def _note(self, made: bytes, before: str = "", why: str = "") -> None:
        self.made = self.made or made
        one = self._hub.decode(made, Reservation)
        held = f"{text_of(one.gpus)} held" if before else "held"
        self._told.append(
            f"{before}{held} until {booked.moment(one.last)}{why}; gpulse cancel {one.id} lets go of them"
        )

    def _send(self, wanted: dict[str, object]) -> bytes:
        return self._hub.send("POST", "/reservations", wanted | {"hold": True, "comment": "gpulse free"})


def usual(hub: Hub, count: int) -> Hold | None:
    """That of what is waited for; None, and the reason is said, where whoever waits can hold nothing."""
    terms = hub.decode(hub.get("/reservations", {"limit": "1"}), _Terms)
    minutes = min(_USUAL_MINUTES, terms.hold_longest_minutes or _USUAL_MINUTES)
    hold = Hold(hub, f"{round(minutes * 60)}s", offered=True)
    try:
        hold.check(count)
    except HubRefused as refusal:
        if refusal.status in _NEVER:
            terminal.warn(f"what is found will not be held: {refusal}")
            return None
        terminal.warn(f"as things are, what is found could not be held: {refusal}")
    return hold


def _place(gpu: GpuView) -> dict[str, str]:
    return {"node": gpu.node, "index": gpu_index(gpu)}
