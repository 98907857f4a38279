"""Takes the paths of the grading machine out of a report: an error of Python's likes to name them."""

import re

from ..report import Report

_FOLDERS = re.compile(r"(?:(?<=file://)|(?<![\w/.)\]}>]))(?:/[\w.@+~-]+)+/(?=[\w.@+~-])")


_LONGEST_MESSAGE = 2_000  # characters
_MOST_PRINTED = 200_000  # characters, by all cells together


def without_folders(text: str) -> str:
    """The text with `…/` in the place of the folders of every absolute path."""
    return _FOLDERS.sub("…/", text)


def redact(report: Report) -> Report:
    """The report, without absolute paths and endless messages in what a student reads."""
    report.message = _readable(report.message)
    for exercise in report.exercises:
        exercise.message = _readable(exercise.message)
        for test in exercise.tests:
            test.message = _readable(test.message)
    room = _MOST_PRINTED
    for cell in report.cells:
        cell.message, cell.printed = _readable(cell.message), without_folders(cell.printed[: max(room, 0)])
        room -= len(cell.printed)
    return report


def _readable(message: str) -> str:
    return without_folders(message[:_LONGEST_MESSAGE])
