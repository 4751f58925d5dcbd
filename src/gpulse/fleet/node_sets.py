"""Sets of nodes as HPC people type them, gpu[01-16,20]: a name is compared with a set that is never written out."""

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from gpulse.errors import FilterError

# More than the largest fleet has; a set of more is a slip of the keyboard.
MOST_NODES = 100_000
# Patterns with brackets in one set: every name is compared with each of them.
MOST_PATTERNS = 100
# Brackets in one pattern; racks, chassis and slots are three.
MOST_BRACKETS = 8
# "," adds, "!" takes away, "&" keeps what is in both, "^" what is in one: from left to right.
_SIGNS = ",!&^"
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?:/([0-9]{1,9}))?)?", re.ASCII)


class _Span(NamedTuple):
    """Numbers from first to last, filled with zeros up to a width."""

    numbers: range
    width: int

    def has(self, digits: str) -> bool:
        # Only 0 itself and what is filled up begin with a zero.
        written = len(digits) == self.width or (len(digits) > self.width and (digits[0] != "0" or digits == "0"))
        return written and int(digits) in self.numbers

    def texts(self) -> list[str]:
        return [str(number).zfill(self.width) for number in self.numbers]


class _Numbers:
    """The content of one bracket."""

    def __init__(self, text: str):
        singles: set[str] = set()
        self._spans: list[_Span] = []
        for part in text.split(","):
            span = _span(part.strip())
            if isinstance(span, str):
                singles.add(span)
            else:
                self._spans.append(span)
        self._singles = frozenset(singles)
        longest = [len(str(span.numbers[-1]).zfill(span.width)) for span in self._spans]
        shortest = [len(str(span.numbers[0]).zfill(span.width)) for span in self._spans]
        lengths = [len(single) for single in singles]
        self._lengths = range(min(lengths + shortest), max(lengths + longest) + 1)

    def __len__(self) -> int:
        return len(self._singles) + sum(len(span.numbers) for span in self._spans)

    def ends(self, name: str, at: int) -> Iterator[int]:
        """Where a number of this bracket that begins at `at` can end."""
        for length in self._lengths:
            digits = name[at : at + length]
            if len(digits) < length or not (digits.isascii() and digits.isdigit()):
                return
            if self._has(digits):
                yield at + length

    def is_one(self, text: str) -> bool:
        """Whether the text is one of these numbers."""
        return len(text) in self._lengths and text.isascii() and text.isdigit() and self._has(text)

    def _has(self, digits: str) -> bool:
        if digits in self._singles:
            return True
        for span in self._spans:  # noqa: SIM110 - any() takes twice as long, and every name comes here
            if span.has(digits):
                return True
        return False

    def texts(self) -> set[str]:
        return {*self._singles, *(text for span in self._spans for text in span.texts())}


def _span(part: str) -> _Span | str:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise ValueError(f'"{part}" is not a number or a range of at most nine digits, such as 01-16')
    first, last = match[1], match[2]
    if last is None:
        return first
    if last.startswith("0") and len(last) != len(first):
        raise ValueError(f'both ends of "{part}" need the same number of digits, as in 01-16')
    step = int(match[3] or 1)
    if int(last) < int(first) or step < 1:
        raise ValueError(f'"{part}" counts backwards')
    return _Span(range(int(first), int(last) + 1, step), len(first) if first.startswith("0") else 1)


class _Pattern:
    """A name with brackets in it."""

    def __init__(self, text: str):
        self._head, *parts = re.split(r"\[([^\[\]]*)\]", text)
        if len(parts) // 2 > MOST_BRACKETS:
            raise ValueError(f"at most {MOST_BRACKETS} brackets are read in one name")
        # Each bracket with the text behind it.
        self._parts = [(_Numbers(inside), behind) for inside, behind in zip(parts[::2], parts[1::2], strict=True)]
        self._tail = parts[-1]

    def __len__(self) -> int:
        size = 1
        for numbers, _ in self._parts:
            size *= len(numbers)
        return size

    def matches(self, name: str) -> bool:
        if not name.startswith(self._head) or not name.endswith(self._tail):
            return False
        if len(self._parts) == 1:
            # Nearly always: all that is between head and tail.
            return self._parts[0][0].is_one(name[len(self._head) : len(name) - len(self._tail)])
        # All the places up to which the name can have been read: brackets may stand beside digits.
        places = {len(self._head)}
        for numbers, behind in self._parts:
            ends = {end for at in places for end in numbers.ends(name, at) if name.startswith(behind, end)}
            places = {end + len(behind) for end in ends}
        return len(name) in places

    def texts(self) -> Iterator[str]:
        for numbers in product(*(numbers.texts() for numbers, _ in self._parts)):
            yield self._head + "".join(n + behind for n, (_, behind) in zip(numbers, self._parts, strict=True))


class _Operand:
    """Names and patterns with the sign before them."""

    def __init__(self, sign: str):
        self.sign = sign
        self.names: set[str] = set()
        self.patterns: list[_Pattern] = []

    def has(self, name: str) -> bool:
        if name in self.names:
            return True
        for pattern in self.patterns:  # noqa: SIM110 - any() takes longer, and every name comes here
            if pattern.matches(name):
                return True
        return False

    def texts(self) -> set[str]:
        return {*self.names, *(text for pattern in self.patterns for text in pattern.texts())}


class NodeSet:
    """`name in nodes` costs the same however many nodes the set names."""

    def __init__(self, key: str, value: str):
        """Read `value`; `key` is the text before it, "node:" or "nodes=". FilterError says what is wrong."""
        self.text = key + value
        try:
            self._operands = list(_operands(value))
        except ValueError as error:
            raise FilterError(
                f'"{_short(self.text)}" is not a set of nodes ({error}); write it like {key}gpu[01-16,20]'
            ) from None
        patterns = [pattern for operand in self._operands for pattern in operand.patterns]
        if len(patterns) > MOST_PATTERNS:
            raise FilterError(f'"{_short(self.text)}" has more than {MOST_PATTERNS} names with brackets; write fewer')
        # How many names it has at most.
        self.size = sum(len(operand.names) for operand in self._operands) + sum(len(pattern) for pattern in patterns)
        check_size(self.size, self.text)

    def __contains__(self, name: str) -> bool:
        found = False
        for operand in self._operands:
            if operand.sign == ",":
                found = found or operand.has(name)
            elif operand.sign == "^":
                found = found != operand.has(name)
            else:
                found = found and operand.has(name) == (operand.sign == "&")
        return found

    def names(self) -> frozenset[str]:
        """Write the set out; at most `size` names."""
        found: set[str] = set()
        for operand in self._operands:
            names = operand.texts()
            if operand.sign == ",":
                found |= names
            elif operand.sign == "^":
                found ^= names
            elif operand.sign == "&":
                found &= names
            else:
                found -= names
        return frozenset(found)


def check_size(size: int, text: str) -> None:
    """FilterError where a question names more nodes than any fleet has."""
    if size > MOST_NODES:
        raise FilterError(f'"{_short(text)}" names more than {MOST_NODES:,} nodes; write a smaller range')


def _operands(value: str) -> Iterator[_Operand]:
    operand = _Operand(",")
    for sign, text in _signed(value):
        name = text.strip()
        if not name:
            raise ValueError(f'a name is missing beside "{sign}"')
        if name.startswith("@"):
            raise ValueError(f'"{name}" is a group, and groups are not known here')
        # Names that are added one after the other are looked up at once.
        if (sign, operand.sign) != (",", ","):
            yield operand
            operand = _Operand(sign)
        if "[" in name:
            operand.patterns.append(_Pattern(name))
        else:
            operand.names.add(name)
    yield operand


def _signed(value: str) -> Iterator[tuple[str, str]]:
    """Each name with the sign before it; signs within brackets belong to their ranges."""
    sign, start, inside = ",", 0, False
    for at, letter in enumerate(value):
        if letter in "[]":
            if inside == (letter == "["):
                raise ValueError(f'a "{letter}" is too many')
            inside = not inside
        elif letter in _SIGNS and not inside:
            yield sign, value[start:at]
            sign, start = letter, at + 1
    if inside:
        raise ValueError("a bracket is not closed")
    yield sign, value[start:]


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"
