"""Times as people write them, in commands, forms and the API."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from gpulse.errors import WhenError
from gpulse.reservations.dates import parse_moment, parse_span, parse_until

ZONES = [ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana")]
NOW = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
SEEDS = [
    b"\x00friday 18:00",
    b"\x012026-12-01T18:00:00.5+02:00",
    b"\x02end of next week",
    b"\x03in 3 days at 6:30 p.m.",
    b"\x002d 4h",
    b"\x011st of dec, 2026 24:00 EST",
    b"\x0201/02/2026",
    b"\x00Tue Dec  1 18:00:00 CET 2026",
    b"\x0120261201T180000Z",
    b"\x0218:00 Uhr Europe/Berlin",
    b"\x031,000h 1M",
]
WORDS = [
    "next ",
    "this ",
    "end of ",
    "week",
    "month",
    "noon",
    "midnight",
    "now",
    "ago",
    "utc",
    "pm",
    "feb",
    "tue",
    "tonight",
    "uhr",
]


def fuzz(data: bytes) -> None:
    now = NOW.astimezone(ZONES[data[0] % len(ZONES)]) if data else NOW
    text = data[1:].decode("utf-8", "replace")
    for end_of in (False, True):
        try:
            found = parse_moment(text, now, end_of=end_of)
        except WhenError as refused:
            assert refused.message
            continue
        assert parse_moment(found.understood, now).at.astimezone(UTC) == found.at.astimezone(UTC)
    for read in (lambda: parse_until(text, now, now), lambda: parse_span(text)):
        try:
            read()
        except WhenError as refused:
            assert refused.message
