"""Time stamps: each time that nbgrader's `submit` writes is parsed; ambiguous or invalid stamps give no time."""

from datetime import UTC, datetime, timedelta

import pytest
from dateutil.tz import gettz

from autograder.gradebook.time_stamp import StampFormat, SubmissionTime, time_in
from tests.typed import stored

FORMAT = "%Y-%m-%d %H:%M:%S.%f %Z"
OF_BERLIN = StampFormat(gettz("Europe/Berlin"))
ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Istanbul", "America/New_York", "America/Chicago",
    "America/Havana", "America/Sao_Paulo", "America/St_Johns", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Shanghai",
    "Asia/Jerusalem", "Asia/Colombo", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Chatham", "Africa/Casablanca",
    "Antarctica/Troll", "Etc/GMT+3", "EST5EDT", "UTC+3", "GMT-2", "EST5EDT4,M3.2.0,M11.1.0", "CET",
)  # fmt: skip


def moments_of_2026(zone):
    """One in each month, and those around each change of the zone's clocks."""
    hours = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=6 * number) for number in range(4 * 365)]
    offsets = [moment.astimezone(zone).utcoffset() for moment in hours]
    for earlier, before, after in zip(hours, offsets, offsets[1:], strict=False):
        if before != after:
            yield from (earlier + timedelta(minutes=15 * number) for number in range(-4, 30))
    yield from hours[:: 4 * 30]


@pytest.mark.parametrize("name", ZONES)
def test_every_time_that_nbgrader_writes_is_read(name):
    zone = gettz(name)
    for moment in moments_of_2026(zone):
        stamp = moment.astimezone(zone).strftime(FORMAT).encode()
        assert time_in(stamp, StampFormat(zone)) == moment.replace(tzinfo=None), stamp


@pytest.mark.parametrize(("stamp", "time"), stored("time_stamps"))
def test_a_stamp_determines_a_time_or_none(stamp, time):
    expected = time and datetime.fromisoformat(time)
    assert OF_BERLIN.read(stamp.encode()) == SubmissionTime(expected, None if time else stamp)


def test_a_name_for_two_offsets_is_none_in_the_hour_that_has_both():
    """Moscow's clocks were put back in 2014, and both times are called MSK."""
    moscow = StampFormat(gettz("Europe/Moscow"))
    assert time_in(b"2014-10-26 01:30:00 MSK", moscow) is None
    assert time_in(b"2014-10-26 02:30:00 MSK", moscow) == datetime(2014, 10, 25, 23, 30)


def test_without_a_zone_a_stamp_is_in_utc():
    assert time_in(b"2026-01-02 03:04:05") == time_in(b"2026-01-02T03:04:05Z\n") == datetime(2026, 1, 2, 3, 4, 5)


def test_the_courses_own_format_says_which_number_is_the_month():
    of_course = StampFormat(gettz("Europe/Berlin"), "%d/%m/%Y %H:%M %Z")
    assert time_in(b"03/04/2026 12:00 CEST", of_course) == datetime(2026, 4, 3, 10)
