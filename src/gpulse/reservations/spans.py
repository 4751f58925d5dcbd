"""Lengths of time as people write them: 2d 4h, 90m, 1.5 hours, half an hour."""

import re
from datetime import timedelta

from gpulse.errors import WhenError

LONGEST_TEXT = 120
# More than anybody books, and little enough that no date leaves the calendar.
LONGEST_SPAN = timedelta(days=36_525)
_UNITS = (
    ("w", "weeks", r"weeks?|wks?|w", 7 * 86400),
    ("d", "days", r"days?|d", 86400),
    ("h", "hours", r"hours?|hrs?|h", 3600),
    ("m", "minutes", r"minutes?|mins?|m", 60),
    ("s", "seconds", r"seconds?|secs?|s", 1),
)
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
_UNIT = "|".join(f"(?P<{letter}>{words})" for letter, _, words, _ in _UNITS)
_PIECE = re.compile(
    rf"(?P<count>\d{{1,9}}(?:[.,]\d{{1,3}})?|half an?|an?|{'|'.join(_NUMBERS)}) ?(?:{_UNIT})(?![a-z])", re.ASCII
)
_UNEVEN = re.compile(rf"(?:\d+|an?|{'|'.join(_NUMBERS)}) ?(?P<unit>month|year)s?(?![a-z])", re.ASCII)
# A comma or a dot that parts thousands for some and begins a fraction for others; 0.125 and 1234.567 are fractions.
_TWO_NUMBERS = re.compile(r"(?P<whole>[1-9]\d{0,2})[.,](?P<rest>\d{3})", re.ASCII)
_CAPITAL = re.compile(r"(?<![\w:./-])(?P<count>[0-9]+(?:[.,][0-9]+)?) ?M(?!\w)")
_BETWEEN = re.compile(r" ?(?:, ?|and |, ?and )?")
_HINT = 'write it like "2d 4h", "90m", "1.5h" or "1 week"'


def parse_span(text: str) -> timedelta:
    """A length of time; WhenError says what of it was understood."""
    told = tidy(text)
    bare = told.removeprefix("for ").removeprefix("+").lstrip()
    if not bare:
        raise WhenError("no length of time is given", _HINT)
    span, end = scan(bare, 0)
    if end == 0:
        raise WhenError(f"{quoted(told)} is no length of time", _HINT)
    if end < len(bare):
        raise WhenError(f"in {quoted(told)} I understood {quoted(bare[:end])}, but not {quoted(bare[end:])}", _HINT)
    return span


def scan(text: str, at: int) -> tuple[timedelta, int]:
    """The length of time that stands at a place of tidy text, and where it ends; there where it is none."""
    seconds, end, begin, used = 0.0, at, at, set[str]()
    while match := _PIECE.match(text, begin):
        letter, word, size = next((letter, word, size) for letter, word, _, size in _UNITS if match[letter])
        if letter in used:
            raise WhenError(f"{quoted(text[at : match.end()])} has {word} twice", _HINT)
        used.add(letter)
        if two := _TWO_NUMBERS.fullmatch(match["count"]):
            raise _two_numbers(match[0], two, letter, word)
        seconds += _count(match["count"]) * size
        end = match.end()
        between = _BETWEEN.match(text, end)
        begin = between.end() if between else end
    if uneven := _UNEVEN.match(text, begin):
        raise WhenError(f"{quoted(uneven[0])} is no length of time: {uneven['unit']}s differ", "write weeks or days")
    if end == at:
        return timedelta(), at
    if seconds > LONGEST_SPAN.total_seconds():
        raise WhenError(f"{quoted(text[at:end])} is longer than a hundred years", _HINT)
    # To the second, as everything that is shown back.
    span = timedelta(seconds=round(seconds))
    if not span:
        raise WhenError(f"{quoted(text[at:end])} is no time at all", _HINT)
    return span, end


def _two_numbers(text: str, match: "re.Match[str]", letter: str, word: str) -> WhenError:
    large = match["whole"] + match["rest"]
    small = f"{int(large) / 1000:g}"
    of_small = word.removesuffix("s") if small == "1" else word
    return WhenError(
        f"{quoted(text)} is {small} {of_small} to some and {large} {word} to others",
        f'write "{small}{letter}" or "{large}{letter}"',
    )


def _count(word: str) -> float:
    if word[0].isdigit():
        return float(word.replace(",", "."))
    return 0.5 if word.startswith("half") else _NUMBERS.get(word, 1)


def tidy(text: str) -> str:
    """In small letters with single blanks; WhenError where it is too long to be a time."""
    if len(text) > LONGEST_TEXT:
        raise WhenError(f"{quoted(text)} is too long to be a time", _HINT)
    single = " ".join(text.split())
    _check_capital(single)
    return single.lower()


def _check_capital(text: str) -> None:
    """WhenError for 1M; after other units it can be minutes alone: 2H 30M."""
    match = _CAPITAL.search(text)
    if match and not _PIECE.search(text[: match.start()].lower()):
        raise WhenError(
            f"{quoted(match[0])} is minutes to some and months to others",
            f'write "{match["count"]}m" for minutes, and months as weeks or days',
        )


def quoted(text: str) -> str:
    """As it may stand in a sentence: one line, and no more than shows which text is meant."""
    seen = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return f'"{seen}"' if len(seen) <= 60 else f'"{seen[:59]}…"'
