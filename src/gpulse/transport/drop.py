"""Nodes that write files: a folder is watched, and what changes there goes into the fleet."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import msgspec

from gpulse.errors import BadLine
from gpulse.fleet.fleet import Fleet
from gpulse.fleet.places import Place
from gpulse.transport import dropped, folder
from gpulse.transport.dropped import Dropped
from gpulse.transport.folder import ENDING, Mark
from gpulse.transport.in_thread import Result, in_thread

EVERY_SECONDS = 1.0
# A file server that takes longer than this is said to hang.
HANG_SECONDS = 10.0
# A file that is being copied is not whole for a while.
UNFINISHED_SECONDS = 10.0
# A node whose file has not changed for so long, or so many intervals, is down.
QUIET_SECONDS = 60.0
QUIET_INTERVALS = 10.0
REMOVE_SECONDS = 3600.0
# Of a node that says no interval, and whose file has not changed often enough to tell.
UNKNOWN_INTERVAL_SECONDS = 60.0
LONGEST_INTERVAL_SECONDS = 3600.0
# A machine that has been silent for so many intervals may be followed by another of the same name: it was rebooted.
RIVAL_INTERVALS = 3.0
MOST_SENTENCES = 5
# So many files are in memory at once.
_BATCH = 64


class _File:
    """What is known of one file."""

    def __init__(self) -> None:
        # Of what was last read; None: it is to be read.
        self.mark: Mark | None = None
        self.seen = False
        # When what it says was written, and when that was seen, by the hub's own clock.
        self.told_at = 0.0
        self.changed_at: float | None = None
        self.gaps: deque[float] = deque(maxlen=3)
        self.place: Place | None = None
        self.down = False
        self.unfinished_since: float | None = None
        self.trouble = ""
        self.gone_since: float | None = None
        self.boot_id: str | None = None
        self.rival: str | None = None

    def interval(self, told: float | None) -> float:
        """How often it changes: as it says, unless files come more slowly than they are written, as with scp."""
        least = min(self.gaps) if self.gaps else 0.0
        if not told:
            return min(least or UNKNOWN_INTERVAL_SECONDS, LONGEST_INTERVAL_SECONDS)
        return min(least if least > 1.5 * told else told, LONGEST_INTERVAL_SECONDS)


class DropFolder:
    def __init__(
        self,
        path: Path,
        fleet: Fleet,
        claim: Callable[[str], bool],
        problem: Callable[[str], None],
        place_for: Callable[[str], Place] = lambda name: Place(name=name),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`claim`: whether a node may be read from here, asked before anything is said of it to the fleet.

        `problem` is told what people should know, a sentence at a time. `place_for`: group, rack and name for people.
        """
        self._path = path
        self._fleet = fleet
        self._claim = claim
        self._problem = problem
        self._place_for = place_for
        self._clock = clock
        self._wall = wall
        self._files: dict[str, _File] = {}
        self._trouble = ""
        self._left_out = False
        self._sentences: list[str] = []

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            began = self._clock()
            await self.look()
            await asyncio.sleep(max(0.1, began + EVERY_SECONDS - self._clock()))

    async def look(self) -> None:
        """Take what has changed. It returns when the folder has answered, however long that takes."""
        try:
            listing = await self._in_thread(partial(folder.scan, self._path, self._files.keys(), self._overdue()))
            marks = listing.marks
            changed = [name for name, mark in marks.items() if self._is_new(name, mark)]
            for start in range(0, len(changed), _BATCH):
                names = changed[start : start + _BATCH]
                for one in await self._in_thread(partial(dropped.read, self._path, names)):
                    self._take(one)
                    # A megabyte takes its time: others have their turn after each.
                    await asyncio.sleep(0)
        except OSError as problem:
            # Stale beats partial: its nodes stay, and age.
            self._set_trouble(f"the folder {self._path} cannot be read: {problem.strerror or problem}")
            return
        self._set_trouble("")
        self._set_left_out(listing.left_out)
        now = self._clock()
        for name, file in list(self._files.items()):
            if name in marks:
                self._look_after(name, file, now)
            else:
                self._miss(name, file, now)
        self._say()

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await in_thread(work, HANG_SECONDS, self._hangs)

    # What is in the files.

    def _overdue(self) -> Collection[str]:
        now = self._clock()
        return [
            name
            for name, file in self._files.items()
            if file.place is not None and now - file.told_at > 1.5 * file.place.interval_seconds
        ]

    def _is_new(self, name: str, mark: Mark) -> bool:
        file = self._files.get(name)
        if file is None or file.mark != mark:
            return True
        # The clock of a file system is coarse: what was not whole is read again, until it is told of.
        since = file.unfinished_since
        return since is not None and self._clock() - since <= UNFINISHED_SECONDS + 2 * EVERY_SECONDS

    def _take(self, one: Dropped) -> None:
        file = self._files.setdefault(one.name, _File())
        now = self._clock()
        file.mark = one.mark
        if one.unfinished:
            # One that could not even be opened tells nothing.
            file.seen = file.seen or one.written_at > 0
            if file.unfinished_since is None:
                file.unfinished_since = now
            if now - file.unfinished_since >= UNFINISHED_SECONDS:
                self._tell(one.name, file, one.trouble)
            return
        file.unfinished_since = None
        if one.trouble:
            self._tell(one.name, file, one.trouble)
        elif self._is_rival(one, file, now):
            return
        elif not self._claim(one.name):
            file.place = None
            self._tell(one.name, file, f"{one.name} is read in another way, so its file is not taken")
        else:
            self._accept(one, file, now)

    def _accept(self, one: Dropped, file: _File, now: float) -> None:
        # How old a file is that was there before us only a clock knows that may be wrong.
        age = 0.0 if file.seen else max(0.0, self._wall() - one.written_at)
        if file.changed_at is not None:
            file.gaps.append(now - file.changed_at)
        if file.seen:
            file.changed_at = now
        file.seen = True
        if file.place is None:
            file.told_at = now - age
        self._place(one, file)
        try:
            self._fleet.line(one.name, one.line, age_seconds=age)
        except BadLine as problem:
            self._tell(one.name, file, f"it is no snapshot: {problem}")
            return
        file.told_at = now - age
        file.boot_id = one.boot_id
        file.down = False
        if file.rival is None:
            file.trouble = ""

    def _place(self, one: Dropped, file: _File) -> None:
        interval = file.interval(one.interval_seconds)
        before = file.place.interval_seconds if file.place is not None else 0.0
        if not self._has(one.name) or not 0.8 * before < interval < 1.25 * before:
            address = f"file {self._path / (one.name + ENDING)}"
            file.place = msgspec.structs.replace(
                self._place_for(one.name), name=one.name, address=address, interval_seconds=round(interval, 2)
            )
            self._fleet.place(file.place)

    def _has(self, name: str) -> bool:
        """Whether the fleet has the node: it may have been another's for a while, and gone with that."""
        try:
            self._fleet.known(name)
        except KeyError:
            return False
        return True

    def _is_rival(self, one: Dropped, file: _File, now: float) -> bool:
        """Whether another machine writes the same file, by turns. A reboot takes longer than that."""
        if file.boot_id is None or one.boot_id is None or file.place is None:
            return False
        if one.boot_id == file.boot_id:
            if file.rival is not None:
                words = f"two machines write it by turns; give one of them another name with --node {one.name}-2"
                self._tell(one.name, file, words)
            return False
        if now - file.told_at > RIVAL_INTERVALS * file.place.interval_seconds:
            file.rival = None
            return False
        file.rival = one.boot_id
        return True

    # What becomes of them.

    def _look_after(self, name: str, file: _File, now: float) -> None:
        file.gone_since = None
        if file.place is None or file.down:
            return
        quiet = now - file.told_at
        if quiet > max(QUIET_SECONDS, QUIET_INTERVALS * file.place.interval_seconds):
            reason = f"its file {name}{ENDING} has not changed for {quiet:.0f} s"
            fix = "see that `gpulse agent drop` runs on the node; if the node is no more, remove the file"
            if file.trouble:
                reason, fix = f"its file {name}{ENDING} is not taken", file.trouble
            self._put_down(name, file, f"{reason}; {fix}")

    def _miss(self, name: str, file: _File, now: float) -> None:
        if file.place is None:
            del self._files[name]
        elif file.gone_since is None:
            # Whoever does not rename removes the old file first: it may be back at the next look.
            file.gone_since = now
        elif file.mark is not None:
            # Should it come back, it is as one that was not seen before.
            file.mark, file.seen, file.changed_at = None, False, None
            self._put_down(name, file, f"its file is gone from {self._path}")
        elif now - file.gone_since >= REMOVE_SECONDS:
            del self._files[name]
            if self._claim(name):
                self._fleet.remove(name)

    def _put_down(self, name: str, file: _File, reason: str) -> None:
        if self._claim(name):
            file.down = True
            self._fleet.down(name, reason)
        else:
            # Somebody else reads it now, and knows better.
            file.place = None

    # What people are told.

    def _hangs(self) -> None:
        self._set_trouble(
            f"the folder {self._path} has not answered for {HANG_SECONDS:g} s; its nodes are as last told until it does"
        )

    def _set_trouble(self, words: str) -> None:
        if words == self._trouble:
            return
        self._trouble, before = words, self._trouble
        if words:
            self._problem(words)
        elif before:
            self._problem(f"the folder {self._path} can be read again")

    def _set_left_out(self, count: int) -> None:
        if count and not self._left_out:
            self._problem(
                f"the folder {self._path} has {count} files more than the {folder.MOST_FILES} that are taken;"
                " remove those of nodes that are no more, or see who writes them"
            )
        self._left_out = count > 0

    def _tell(self, name: str, file: _File, trouble: str) -> None:
        """Once, and again when it is another."""
        if file.trouble != trouble:
            file.trouble = trouble
            self._sentences.append(f"{self._path / (name + ENDING)}: {trouble}")
            if file.place is not None:
                self._fleet.log(name, f"its file: {trouble}")

    def _say(self) -> None:
        for words in self._sentences[:MOST_SENTENCES]:
            self._problem(words)
        if len(self._sentences) > MOST_SENTENCES:
            self._problem(f"{len(self._sentences) - MOST_SENTENCES} more files in {self._path} are not taken either")
        self._sentences = []
