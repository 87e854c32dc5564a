"""RFC 3339 times as the format reads and writes them: nanoseconds, the offset kept, years 0000 to 9999."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", flags=re.ASCII
)
_DAYS_IN_400_YEARS = (
    146_097  # after which the calendar repeats: dates outside of Python's years are moved by that
)


class Moment(NamedTuple):
    """A point in time: local seconds since 0001-01-01T00:00:00, nanoseconds, and the offset from UTC in seconds."""

    local: int
    nanos: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> Moment:
        """Read RFC 3339 text; raises ValueError saying what is wrong with it.

        Besides what the standard allows, a comma before the fraction, a one-digit hour, and offsets up to 24:60 are
        accepted; digits after the ninth are cut off. Lower-case letters and a second of 60 are not.
        """
        found = _TIME.fullmatch(text)
        if found is None:
            raise ValueError(f"the time {text!r} is not RFC 3339")
        year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
        fraction, sign, offset_hour, offset_minute = found.group(7, 8, 9, 10)
        if (
            hour > 23
            or minute > 59
            or second > 59
            or int(offset_hour or 0) > 24
            or int(offset_minute or 0) > 60
        ):
            raise ValueError(f"the time {text!r} is out of range")
        cycle, year = divmod(year, 400)
        try:
            days = date(year + 400, month, day).toordinal() - 1 + (cycle - 1) * _DAYS_IN_400_YEARS
        except ValueError:
            raise ValueError(f"the time {text!r} names no day of the calendar") from None
        offset = int(offset_hour or 0) * 3600 + int(offset_minute or 0) * 60
        return cls(
            days * 86_400 + hour * 3600 + minute * 60 + second,
            int((fraction or "")[:9].ljust(9, "0")),
            -offset if sign == "-" else offset,
        )

    @property
    def instant(self) -> tuple[int, int]:
        """Seconds since 0001-01-01T00:00:00Z, and nanoseconds: what two moments are ordered by."""
        return self.local - self.offset, self.nanos

    @property
    def is_zero(self) -> bool:
        """Whether this is the instant 0001-01-01T00:00:00Z, which stands for no time."""
        return self.instant == (0, 0)

    @property
    def writable(self) -> bool:
        """Whether the offset is less than a day, as it must be to be written."""
        return abs(self.offset) < 86_400

    def __str__(self) -> str:
        """RFC 3339 text without trailing zeros in the fraction, in the local time of its offset."""
        fraction = f".{self.nanos:09}".rstrip("0") if self.nanos else ""
        if not self.offset:
            return f"{_text(self.local)}{fraction}Z"
        minutes = abs(self.offset) // 60
        return f"{_text(self.local)}{fraction}{'-' if self.offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"

    def utc(self) -> str:
        """The time in UTC, as whole seconds."""
        return f"{_text(self.local - self.offset)}Z"


def _text(seconds: int) -> str:
    days, second = divmod(seconds, 86_400)
    cycle, day = divmod(days, _DAYS_IN_400_YEARS)
    at = date.fromordinal(day + 1)
    year = at.year + cycle * 400
    written = f"{year:04}" if year >= 0 else f"{year:05}"
    return f"{written}-{at:%m-%d}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
