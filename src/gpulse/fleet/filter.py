"""The filter language of the page, the API and the command line: words in, a yes or no for each GPU out."""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ClusterShell.NodeSet import (  # type: ignore[import-untyped]  # ClusterShell has no types
    RESOLVER_NOGROUP,
    NodeSet,
    NodeSetException,
)

from gpulse.errors import FilterError
from gpulse.fleet.sizes import parse_size
from gpulse.fleet.views import GPU_STATES, GpuView, NodeView, ProcessView

LONGEST = 500
# ClusterShell keeps every name of a range in memory.
MOST_NODES = 100_000

KEYS = ("user", "model", "node", "group", "rack", "job", "state")
FIGURES = ("mem", "free_mem", "util", "temp", "power")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_TERM = re.compile(r"([a-z_]+)(:|>=|<=|>|<|=)(.*)", re.DOTALL)
_SLURM_JOB = re.compile(r"job_([0-9]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?:/[0-9]{1,9})?)?", re.ASCII)


class Subject(NamedTuple):
    """What a filter looks at: a GPU on its node, and the processes on it. A node may have no GPU to tell of."""

    node: NodeView
    gpu: GpuView | None
    processes: Sequence[ProcessView] = ()


Test = Callable[[Subject], bool]


class _Token(NamedTuple):
    text: str
    # Where the first quote stood: what comes before it may be a key, the rest is text.
    quoted_from: int | None


class Filter:
    """Every term must hold."""

    def __init__(self, tests: Sequence[Test], needs_processes: bool, about_states: bool):
        self._tests = tuple(tests)
        self._about_states = about_states
        # Whether the processes matter; a caller need not fetch them otherwise.
        self.needs_processes = needs_processes

    def matches(self, subject: Subject) -> bool:
        # A card split into MIG instances is neither free nor not free: its instances are.
        if self._about_states and subject.gpu is not None and not subject.gpu.counted:
            return False
        return all(test(subject) for test in self._tests)

    def matching(self, node: NodeView, processes: Iterable[ProcessView] = ()) -> list[GpuView] | None:
        """The GPUs of a node that match; None: nothing of this node does."""
        if not node.gpus:
            return [] if self.matches(Subject(node, None)) else None
        on: dict[str, list[ProcessView]] = {}
        for process in processes:
            for use in process.gpus or ():
                if use.uuid is not None:
                    on.setdefault(use.uuid, []).append(process)
        found = [gpu for gpu in node.gpus if self.matches(Subject(node, gpu, on.get(gpu.uuid or "", ())))]
        return found or None


def parse(text: str, me: str | None = None) -> Filter:
    """Read a filter; `me` is who `mine` stands for. Raises FilterError in words that name what is wrong."""
    if len(text) > LONGEST:
        raise FilterError(f"the filter has {len(text)} characters; at most {LONGEST} are allowed")
    tests: list[Test] = []
    needs_processes = about_states = False
    for written in _tokens(text):
        negated = written.text.startswith("-") and written.quoted_from != 0
        token = written
        if negated:
            token = _Token(written.text[1:], None if written.quoted_from is None else written.quoted_from - 1)
        if not token.text:
            raise FilterError('the filter has "-" with nothing behind it; put a word there: -free, -user:alice')
        test, looks_at_processes = _term(token, me)
        needs_processes = needs_processes or looks_at_processes
        about_states = about_states or _is_state(token)
        tests.append(_negation(test) if negated else test)
    return Filter(tests, needs_processes, about_states)


def _is_state(token: _Token) -> bool:
    return token.text.startswith("state:") or (token.quoted_from is None and token.text in GPU_STATES)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    current: list[str] = []
    quoted_from: int | None = None
    quote = False
    for character in text.casefold() + " ":
        if character == '"':
            quote = not quote
            quoted_from = len(current) if quoted_from is None else quoted_from
        elif character.isspace() and not quote:
            if current:
                tokens.append(_Token("".join(current), quoted_from))
            current, quoted_from = [], None
        else:
            current.append(character)
    if quote:
        raise FilterError(f'the filter has a quote that is not closed: "{"".join(current).strip()}; add a "')
    return tokens


def _term(token: _Token, me: str | None) -> tuple[Test, bool]:
    head = token.text if token.quoted_from is None else token.text[: token.quoted_from]
    match = _TERM.match(head)
    if match is not None:
        key, sign = match[1], match[2]
        return _keyed(token.text, key, sign, token.text[match.end(2) :])
    if token.quoted_from is None and token.text in GPU_STATES:
        return _in_state(token.text), False
    if token.quoted_from is None and token.text == "mine":
        if not me:
            raise FilterError('"mine" needs to know who you are; give your name beside the filter, as in me=alice')
        return _of_user(me.casefold()), True
    return _word(token.text), True


def _keyed(term: str, key: str, sign: str, value: str) -> tuple[Test, bool]:
    if key in FIGURES:
        if sign == ":":
            raise FilterError(f'"{term}": {key} is compared, as in {key}>{_example(key)}; allowed are > >= < <= =')
        return _figure(term, key, _OPERATORS[sign], value), False
    if key not in KEYS:
        raise FilterError(
            f'"{term}": there is no key "{key}"; allowed are {", ".join(f"{known}:" for known in KEYS)} and '
            f"{', '.join(f'{known}>' for known in FIGURES)}; put it in quotes to look for the text"
        )
    if sign != ":":
        raise FilterError(f'"{term}": {key} takes a colon, as in {key}:{value or "…"}')
    if not value:
        raise FilterError(f'"{term}" has nothing behind the colon; name what {key} shall be, as in {key}:…')
    if key == "state":
        if value not in GPU_STATES:
            raise FilterError(f'"{term}": there is no state "{value}"; allowed are {", ".join(GPU_STATES)}')
        return _in_state(value), False
    if key == "node":
        return _on_nodes(term, value), False
    if key == "user":
        return _of_user(value), True
    if key == "job":
        return lambda subject: any(value == job_of(process) for process in subject.processes), True
    if key == "group":
        return lambda subject: _same(subject.node.group, value), False
    if key == "rack":
        return lambda subject: _same(subject.node.rack, value), False
    return lambda subject: subject.gpu is not None and is_model(subject.gpu, value), False


def _negation(test: Test) -> Test:
    return lambda subject: not test(subject)


def _same(told: str | None, wanted: str) -> bool:
    return told is not None and told.casefold() == wanted


def _in_state(state: str) -> Test:
    def test(subject: Subject) -> bool:
        if subject.gpu is None:
            return subject.node.state == state
        return subject.gpu.state == state

    return test


def _of_user(name: str) -> Test:
    def test(subject: Subject) -> bool:
        people = subject.gpu.people if subject.gpu is not None else ()
        # A person may go by an alias; the login counts as well.
        return any(_same(use.person, name) for use in people) or any(
            _same(process.user, name) for process in subject.processes
        )

    return test


def _on_nodes(term: str, value: str) -> Test:
    if "*" in value or "?" in value:
        return lambda subject: any(fnmatchcase(name, value) for name in _names(subject.node))
    named = _node_set(term, value)
    return lambda subject: any(name in named for name in _names(subject.node))


def _names(node: NodeView) -> tuple[str, str]:
    return node.name.casefold(), node.display_name.casefold()


def _node_set(term: str, value: str) -> frozenset[str]:
    size = 0
    # Commas inside brackets list ranges, those outside list patterns.
    for pattern in re.split(r",(?![^\[]*\])", value):
        of_pattern = 1
        for inside in re.findall(r"\[([^\]]*)\]", pattern):
            of_pattern *= sum(_length(term, part) for part in inside.split(","))
        size += of_pattern
    if size > MOST_NODES:
        raise FilterError(f'"{term}" names more than {MOST_NODES:,} nodes; write a smaller range')
    try:
        names = frozenset(str(name) for name in NodeSet(value, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise FilterError(f'"{term}" is not a set of nodes ({error}); write it like node:gpu[01-16,20]') from error
    if not names:
        raise FilterError(f'"{term}" names no node; write it like node:gpu[01-16,20]')
    return names


def _length(term: str, part: str) -> int:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise FilterError(f'"{term}": "{part}" is not a number or a range of at most nine digits, such as 01-16')
    return max(1, int(match[2]) - int(match[1]) + 1) if match[2] else 1


def _figure(term: str, key: str, holds: Callable[[float, float], bool], value: str) -> Test:
    if key in ("mem", "free_mem"):
        size = parse_size(value)
        if size is None:
            raise FilterError(f'"{term}": "{value}" is not an amount of memory; write it like {key}>{_example(key)}')
        limit = float(size)
    else:
        unit = {"util": "%", "temp": "c", "power": "w"}[key]
        text = value.removesuffix(unit)
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text, re.ASCII) is None:
            raise FilterError(f'"{term}": "{value}" is not a number; write it like {key}>{_example(key)}')
        limit = float(text)

    def test(subject: Subject) -> bool:
        figure = None if subject.gpu is None else _reading(subject.gpu, key)
        return figure is not None and holds(figure, limit)

    return test


def _reading(gpu: GpuView, key: str) -> float | None:
    if key == "mem":
        return gpu.memory_total_bytes
    if key == "free_mem":
        return free_memory(gpu)
    if key == "util":
        return None if gpu.utilization_ratio is None else round(gpu.utilization_ratio * 100, 6)
    return gpu.temperature_celsius if key == "temp" else gpu.power_watts


def _example(key: str) -> str:
    return {"mem": "40G", "free_mem": "20G", "util": "10", "temp": "80", "power": "300"}[key]


def free_memory(gpu: GpuView) -> int | None:
    """What a new process could still take."""
    if gpu.memory_total_bytes is None or gpu.memory_used_bytes is None:
        return None
    return max(0, gpu.memory_total_bytes - gpu.memory_used_bytes - (gpu.memory_reserved_bytes or 0))


def job_of(process: ProcessView) -> str | None:
    """The Slurm job a process belongs to, by its control group."""
    match = _SLURM_JOB.search(process.cgroup or "")
    return match[1] if match else None


def is_model(gpu: GpuView, wanted: str) -> bool:
    """Whether all words of `wanted` are words of the card's name: "A10" is not "A100", "rtx3090" is "RTX 3090"."""
    known = _words(gpu.model) | _words(gpu.name) | _words(gpu.mig_profile)
    compact = "".join(re.findall(r"\w+", wanted.casefold()))
    return bool(compact) and (
        _words(wanted) <= known or any(compact == "".join(_listed(name)) for name in (gpu.model, gpu.name) if name)
    )


def _listed(text: str | None) -> list[str]:
    return re.findall(r"\w+", (text or "").casefold())


def _words(text: str | None) -> set[str]:
    return set(_listed(text))


def _word(word: str) -> Test:
    def test(subject: Subject) -> bool:
        node, gpu = subject.node, subject.gpu
        texts: list[str | None] = [node.name, node.display_name, node.group, node.rack]
        if gpu is not None:
            texts += [gpu.model, gpu.name, gpu.id, gpu.mig_profile, *(use.person for use in gpu.people)]
        for process in subject.processes:
            texts += [process.user, process.person, process.name, process.command, job_of(process)]
        return any(text is not None and word in text.casefold() for text in texts)

    return test
