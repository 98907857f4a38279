"""When something was handed in, as a file beside it says: text of a stranger's, which may be anything."""

import re
import warnings
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from ..handed_in.opened_folder import NotAFile, OpenedFolder, bytes_of

TIMESTAMP = "timestamp.txt"
_LONGEST = 100  # bytes; nbgrader writes 30
_EARLIEST, _LATEST = datetime(1971, 1, 1), datetime(9998, 1, 1)
"""So far from the ends of what a date can be that any time zone's time is one too."""

# dateutil looks zones up as files, of any path: only those of the time zone database, and distances from Greenwich.
_ZONE = re.compile(r"[+-]?\d{1,5}|[A-Za-z]+[+-]?\d{0,2}[A-Za-z]*|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)


def stamp_in(folder: OpenedFolder) -> bytes | None:
    """What stands in a folder's timestamp; None where there is none that could be one."""
    try:
        with folder.file(TIMESTAMP) as file:
            return bytes_of(file, _LONGEST)
    except (NotAFile, OSError):
        return None


def stamp_at(folder: Path) -> bytes | None:
    """The timestamp in the folder at a path STUDENT/UNIT, neither of which may be a link."""
    try:
        with OpenedFolder.of_student(folder) as opened:
            return stamp_in(opened)
    except (OSError, ValueError):
        return None


def time_in(stamp: bytes | None) -> datetime | None:
    """The time that a timestamp says, in UTC; None where it says none that can be worked with."""
    try:
        text = (stamp or b"").decode("ascii").strip()
        words = text.split(" ")
        if not text or (len(words) == 3 and not _ZONE.fullmatch(words[2])):
            return None
        with warnings.catch_warnings(action="ignore"):  # of zones that it does not know
            found: datetime = parse_utc(text)
        return found if _EARLIEST <= found <= _LATEST else None
    except Exception:  # dateutil documents two, and raises others
        return None
