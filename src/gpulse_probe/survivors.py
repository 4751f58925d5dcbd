"""Finds the children that outlived a process: they are what still holds its GPU memory.

While a process lives, its children are remembered with their start times, which no other process shares. Once it
is gone its process group and session still carry its pid, which the kernel gives to nobody else meanwhile.
"""

from gpulse_probe.proc_pid import parse_pids, parse_stat
from gpulse_probe.system import DEAD

_SCAN_SECONDS = 30.0
_SCAN_PROCESSES = 20000
_REMEMBERED = 256


class Survivors:
    def __init__(self, system):
        self._system = system
        self._scan_due = None

    def remember(self, pid, known):
        """The children of a living process, {pid: start}; those known already are not read again."""
        try:
            pids = parse_pids(self._system.read_bytes("/proc/%d/task/%d/children" % (pid, pid)))
        except OSError:
            return known
        children = {}
        for child in pids[:_REMEMBERED]:
            start = known[child] if child in known else self._start(child)
            if start is not None:
                children[child] = start
        return children

    def find(self, now, gone):
        """Bring the survivors of the processes that are gone up to date: {pid: {child: start}}, changed in place."""
        for children in gone.values():
            for child in [child for child, start in children.items() if self._start(child) != start]:
                del children[child]
        if not gone:
            return
        if self._scan_due is None or now >= self._scan_due:
            self._scan_due = now + _SCAN_SECONDS
            self._scan(gone)

    def _scan(self, gone):
        family = {}
        for name in self._system.names("/proc"):
            if name.isdigit() and len(family) < _SCAN_PROCESSES:
                pid = int(name)
                stat = self._stat(pid)
                if stat is not None:
                    family.setdefault(stat.parent, []).append((pid, stat.start_ticks))
                    for leader in {stat.group, stat.session} & gone.keys():
                        if len(gone[leader]) < _REMEMBERED:
                            gone[leader][pid] = stat.start_ticks
        for children in gone.values():
            waiting = list(children)
            while waiting and len(children) < _REMEMBERED:
                for child, start in family.get(waiting.pop(), ()):
                    if child not in children:
                        children[child] = start
                        waiting.append(child)

    def _stat(self, pid):
        """The Stat of a process that lives, None of one that is gone, dead or hidden."""
        try:
            stat = parse_stat(self._system.read_bytes("/proc/%d/stat" % pid))
        except OSError:
            return None
        return None if stat is None or stat.state in DEAD else stat

    def _start(self, pid):
        stat = self._stat(pid)
        return stat.start_ticks if stat else None
