"""When something was handed in, as the file next to it says: a stranger's text, which may be anything."""

import re
import warnings
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from ..handed_in.opened_folder import NotAFile, OpenedFolder, bytes_of

TIMESTAMP = "timestamp.txt"
_LONGEST = 100  # bytes; nbgrader writes 30
_EARLIEST, _LATEST = datetime(1971, 1, 1), datetime(9998, 1, 1)
"""Far enough from the first and last possible dates that the time is a date in every time zone."""

# dateutil opens a zone as a file, whatever its path: so only names like the time zone database's, and UTC offsets.
_ZONE = re.compile(r"[+-]?\d{1,5}|[A-Za-z]+[+-]?\d{0,2}[A-Za-z]*|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)


def stamp_in(folder: OpenedFolder) -> bytes | None:
    """The content of a folder's timestamp; None if there is none that could be one."""
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
    """The time in a timestamp, in UTC; None if it has none that can be used."""
    try:
        text = (stamp or b"").decode("ascii").strip()
        words = text.split(" ")
        if not text or (len(words) == 3 and not _ZONE.fullmatch(words[2])):
            return None
        with warnings.catch_warnings(action="ignore"):  # about zones that it does not know
            found: datetime = parse_utc(text)
        return found if _EARLIEST <= found <= _LATEST else None
    except Exception:  # dateutil documents two, but raises others
        return None
