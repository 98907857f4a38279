"""Reads the time stamp next to a submission: a student's text, which may be anything.

A stamp gives no time unless it determines one with certainty. A guess could make a punctual submission late.

Example, in a course with `c.Exchange.timezone = "Europe/Berlin"`:

- `2026-10-25 02:30:00.0 CEST` is 00:30 UTC, and `2026-10-25 02:30:00.0 CET` is 01:30 UTC.
- `2026-10-25 02:30:00.0 EDT` gives no time: Berlin has no EDT, and no other zone is searched for it.
- `2026-10-25 02:30:00.0` gives no time: clocks in Berlin showed 02:30 twice that night.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from dateutil.tz import gettz
from nbgrader.exchange.default import ExchangeSubmit

from ..course.notebook import printable
from ..course.submitted_files import NotAFile, OpenedFolder, read_up_to

TIMESTAMP = "timestamp.txt"
_LONGEST = 100  # bytes; nbgrader writes 30
_EARLIEST, _LATEST = datetime(1971, 1, 1), datetime(9998, 1, 1)
"""First and last accepted time: each has a date in every time zone."""
_LEAST_OFFSET, _LARGEST_OFFSET = timedelta(hours=-12), timedelta(hours=14)
_YEAR_IN_WEEKS = [timedelta(weeks=week) for week in range(-52, 53)]
_UTC = {"UTC", "GMT", "UCT", "Z"}

_WITH_OFFSET = re.compile(
    r"(.*(?::\d\d(?:[.,]\d+)?|\s))\s*(?:UTC|GMT)?([+-])(\d\d?)(?::?([0-5]\d))?", re.ASCII | re.IGNORECASE
)
_WITH_NAME = re.compile(r"(.*\d)\s*((?![AP]M$)[A-Z]+(?:/[A-Z0-9_+-]+){0,2})", re.ASCII | re.IGNORECASE)
"""A time with the name of a zone, in the form of the time zone database: dateutil opens any other path as a file."""
_DATE_AND_TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.]\d{1,6})?)?")


@dataclass(frozen=True)
class SubmissionTime:
    """Submission time according to the time stamp."""

    utc: datetime | None = None
    """The time without a time zone, as in the gradebook; None if it is unknown."""
    unresolved: str | None = None
    """The text of a stamp that does not determine a time; None if it does, or if there is no stamp."""


@dataclass(frozen=True)
class StampFormat:
    """Time zone and format in which a course's `submit` writes time stamps."""

    zone: tzinfo | None = UTC
    """The time zone; None if the course's settings name an unknown one."""
    format: str = "%Y-%m-%d %H:%M:%S.%f %Z"

    @classmethod
    def of_course(cls, directory: Any) -> "StampFormat":
        """Read the format from the settings of nbgrader's CourseDirectory, or of the program that created it."""
        settings = directory.parent or directory  # a program reads the settings after it has made the directory
        return cls.of_exchange(ExchangeSubmit(coursedir=directory, config=settings.config))

    @classmethod
    def of_exchange(cls, exchange: Any) -> "StampFormat":
        """Return the format in which nbgrader's exchange writes time stamps."""
        return cls(gettz(exchange.timezone), exchange.timestamp_format)

    def read(self, stamp: bytes | None) -> SubmissionTime:
        """Parse the content of a time stamp. stamp: None if the submission has no time stamp."""
        if stamp is None:
            return SubmissionTime()
        utc = time_in(stamp, self)
        return SubmissionTime(utc, None if utc else printable(stamp.decode("ascii", "replace").strip()))


_DEFAULT = StampFormat()


def stamp_in(folder: OpenedFolder) -> bytes | None:
    """Return the content of a folder's time stamp; None if the file is missing, empty if it cannot be read."""
    try:
        with folder.file(TIMESTAMP) as file:
            return read_up_to(file, _LONGEST) or b""
    except FileNotFoundError:
        return None
    except (NotAFile, OSError):
        return b""


def stamp_at(folder: Path) -> bytes | None:
    """Return the time stamp in the folder at a path STUDENT/UNIT, neither of which may be a link."""
    try:
        with OpenedFolder.of_student(folder) as opened:
            return stamp_in(opened)
    except (OSError, ValueError):
        return None


def time_in(stamp: bytes | None, written: StampFormat = _DEFAULT) -> datetime | None:
    """Return the time in a time stamp, in UTC without a time zone; None if the stamp does not determine it.

    written: how the course writes time stamps. A stamp without a zone is in the course's own.
    """
    try:
        text = (stamp or b"").decode("ascii").strip()
        utc = _utc(text, written) if text and len(text) <= _LONGEST else None
        return utc if utc and _EARLIEST <= utc <= _LATEST else None
    except (ValueError, OverflowError):
        return None


def time_near(stamp: bytes, clock: datetime, written: StampFormat) -> datetime | None:
    """Return the time in a stamp, only to find a student's newest submission; None if the stamp has no date.

    clock: the file system's time of the submission, in UTC. Of the times that an unknown zone allows, the nearest to
    the clock is returned.
    """
    if (utc := time_in(stamp, written)) is not None:
        return utc
    match = _DATE_AND_TIME.match(stamp)
    local = time_in(match[0]) if match else None
    return local and min(max(clock, local - _LARGEST_OFFSET), local - _LEAST_OFFSET)


def in_zone(moment: datetime, zone: tzinfo | None) -> str:
    """Return a time in UTC as text in a time zone, such as `2026-12-01 18:00 CET`, with seconds unless they are 0."""
    local = moment.replace(tzinfo=UTC).astimezone(zone or UTC)
    return f"{local:{'%Y-%m-%d %H:%M:%S %Z' if local.second else '%Y-%m-%d %H:%M %Z'}}"


def _utc(text: str, written: StampFormat) -> datetime | None:
    with_offset, with_name = _WITH_OFFSET.fullmatch(text), _WITH_NAME.fullmatch(text)
    match = with_offset or with_name
    local = _local(match[1].strip() if match else text, written)
    if local is None:
        return None
    if local.tzinfo is not None:
        return None if match else local.astimezone(UTC).replace(tzinfo=None)
    if with_offset:
        _, sign, hours, minutes = with_offset.groups()
        offset: timedelta | None = timedelta(hours=int(sign + hours), minutes=int(sign + (minutes or "0")))
    elif with_name:
        offset = _offset_of_name(local, with_name[2], written.zone)
    else:
        offset = _offset_at(local, written.zone or UTC)
    return local - offset if offset is not None and _LEAST_OFFSET <= offset <= _LARGEST_OFFSET else None


def _local(text: str, written: StampFormat) -> datetime | None:
    """Return the date and the time of day in a text in the course's format or in ISO's; None for other texts."""
    try:
        return datetime.strptime(text, re.sub("%[zZ]", "", written.format).strip())
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text) if re.search(r"[T ]\d", text) else None
    except ValueError:
        return None


def _offset_of_name(local: datetime, name: str, zone: tzinfo | None) -> timedelta | None:
    """Return the offset of the course's zone if it has this name at a local time, or else at any time in a year.

    `UTC` and names such as Europe/Berlin have a meaning of their own. None if the name does not determine an offset.
    """
    for weeks in ([timedelta()], _YEAR_IN_WEEKS):
        pairs = {pair for week in weeks for pair in _names_at(local + week, zone)}
        if offsets := {offset for abbreviation, offset in pairs if abbreviation == name}:
            return offsets.pop() if len(offsets) == 1 else None
    if name.upper() in _UTC:
        return timedelta()
    named = gettz(name) if "/" in name else None
    return _offset_at(local, named) if named else None


def _offset_at(local: datetime, zone: tzinfo) -> timedelta | None:
    """Return the zone's offset at a local time; None if its clocks show that time twice, or never."""
    offsets = {offset for _, offset in _names_at(local, zone)}
    return offsets.pop() if len(offsets) == 1 else None


def _names_at(local: datetime, zone: tzinfo | None) -> set[tuple[str, timedelta]]:
    """Return the zone's abbreviation and UTC offset at a local time; two pairs if its clocks show that time twice."""
    moments = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return {(moment.tzname() or "", moment.utcoffset() or timedelta()) for moment in moments}
