"""[reservations]: what people may book, and what is said when bookings and use differ."""

import zoneinfo
from typing import Annotated

import msgspec
from msgspec import Meta

from gpulse.config.checks import Tell
from gpulse.config.kinds import Word

Minutes = Annotated[float, Meta(ge=1, le=10080, description="minutes, 1 to 10080 (a week)")]
Days = Annotated[float, Meta(ge=0, le=3650, description="days, 0 to 3650; 0: no limit")]
Hours = Annotated[float, Meta(ge=0, le=87600, description="hours, 0 to 87600; 0: no limit")]
Count = Annotated[int, Meta(ge=0, le=1000000, description="a number, 0 to 1000000; 0: no limit")]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may book; None: as they like."""

    ahead_days: float | None = None
    longest_hours: float | None = None
    # Of one person at one time.
    most_gpus: int | None = None
    # Of one person, that are not over yet.
    most_reservations: int | None = None


class LimitSettings(msgspec.Struct, frozen=True):
    """A table of [reservations.limits]: as it stands in the file, which has no null: 0 is no limit."""

    ahead_days: Days = 0.0
    longest_hours: Hours = 0.0
    most_gpus: Count = 0
    most_reservations: Count = 0

    def limits(self) -> Limits:
        return Limits(
            ahead_days=self.ahead_days or None,
            longest_hours=self.longest_hours or None,
            most_gpus=self.most_gpus or None,
            most_reservations=self.most_reservations or None,
        )


class MemberLimits(LimitSettings, frozen=True):
    """[reservations.limits.member]."""

    ahead_days: Days = 60.0
    longest_hours: Hours = 336.0
    most_reservations: Count = 50


class RoleLimits(msgspec.Struct, frozen=True):
    """[reservations.limits]: by role. Viewers may book nothing; admins' limits are for what they book themselves."""

    member: MemberLimits = MemberLimits()
    admin: LimitSettings = LimitSettings()


class Reservations(msgspec.Struct, frozen=True):
    """[reservations]: what people may book, and what is said when bookings and use differ."""

    enabled: bool = True
    no_show_minutes: Minutes = 30.0
    release_no_shows: bool = False
    # After it was told that it is a no-show.
    release_minutes: Minutes = 15.0
    blocked_minutes: Minutes = 60.0
    hold_longest_minutes: Minutes = 30.0
    zone: Word | None = None
    limits: RoleLimits = RoleLimits()

    def limits_of(self, role: str) -> Limits:
        """What somebody with this role may book."""
        return (self.limits.admin if role == "admin" else self.limits.member).limits()


def check_reservations(reservations: Reservations, tell: Tell) -> None:
    """What no pattern can say."""
    if reservations.zone is not None:
        try:
            zoneinfo.ZoneInfo(reservations.zone)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            where = ("reservations", "zone")
            tell(where, f'"{reservations.zone:.80}" is no time zone; allowed: a name such as "Europe/Berlin"')
