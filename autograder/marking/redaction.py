"""Takes the paths of the grading machine out of a report: an error of Python's likes to name them."""

import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from ..course.folder import folder
from ..notebook import printable_lines
from ..report import CellReport, ExerciseReport

_NAME = r"[\w.@+~%-]"
_USUAL = (
    "Applications|bin|boot|dev|etc|home|lib|lib64|Library|media|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys|tmp|"
    "usr|Users|var|Volumes"
)
_TOP = "|".join([_USUAL, *(re.escape(place.name) for place in Path("/").iterdir())])
"""What a path of some machine, or of this one, begins with."""


def _home() -> Path:
    """The home directory; in a container its user may have none, and then `/`."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


_OWN = sorted(
    {
        str(place)
        for place in (folder(), _home(), Path(sys.prefix), Path(sys.base_prefix), Path(tempfile.gettempdir()))
        if len(place.parts) > 2  # `/root` alone is too short to be known for a path wherever it stands
    },
    key=len,
    reverse=True,
)

_FOLDERS = re.compile(
    rf"""
    # A folder of this machine's that is known by name, whatever stands before it.
    (?:{"|".join(map(re.escape, _OWN)) or "(?!)"})(?:/+{_NAME}+)*/+(?={_NAME})
    # In quotes, a path that begins as paths do, up to its last part: names in it may have any characters.
    | (?<=['"])/+(?:{_TOP})/[^'"\n]*/(?=[^'"\n/])
    # A path that begins as paths do, after anything but a word, or a network address, or what a program escapes.
    | (?:(?<=file://)|(?<=file:)(?!//)|(?<![\w./:])|(?<=:)(?!//)|(?<=\\[abfnrtv]))/+(?:{_TOP})
      (?:/+{_NAME}+)*/+(?={_NAME})
    # Any other, where it cannot be a fraction or a division.
    | (?:(?<=file://)|(?<![\w/.)\]}}>]))(?:/{_NAME}+)+/(?={_NAME})
    """,
    re.VERBOSE,
)

_LONGEST_MESSAGE = 2_000  # characters
_MOST_PRINTED = 200_000  # characters, by all cells together


def without_folders(text: str) -> str:
    """The text with `…/` in the place of the folders of every absolute path."""
    return _FOLDERS.sub("…/", text)


def exercise(report: ExerciseReport) -> ExerciseReport:
    """One exercise's mark, with nothing of this machine in what a student reads."""
    tests = [replace(test, message=readable(test.message)) for test in report.tests]
    return replace(report, message=readable(report.message), note=readable(report.note), tests=tests)


def cells(reports: Sequence[CellReport]) -> list[CellReport]:
    """What cells did and printed, likewise, and no more than anyone reads."""
    room, redacted = _MOST_PRINTED, []
    for cell in reports:
        printed = without_folders(cell.printed[: max(room, 0)])
        room -= len(printed)
        redacted.append(replace(cell, message=readable(cell.message), printed=printed))
    return redacted


def readable(message: str) -> str:
    """A message without absolute paths and without end."""
    try:
        return without_folders(printable_lines(message[:_LONGEST_MESSAGE].expandtabs()))
    except Exception:  # a fault of ours costs the sentence alone
        traceback.print_exc()
        return ""
