"""Takes the paths of the grading machine out of a report: an error of Python's likes to name them."""

import re

from ..report import Report

_FOLDERS = re.compile(r"(?<![\w/.)\]}>])(?:/[\w.@+~-]+)+/(?=[\w.@+~-])")


def without_folders(text: str) -> str:
    """The text with `…/` in the place of the folders of every absolute path."""
    return _FOLDERS.sub("…/", text)


def redact(report: Report) -> Report:
    """The report, without absolute paths in anything that a student reads."""
    report.message = without_folders(report.message)
    for exercise in report.exercises:
        exercise.message = without_folders(exercise.message)
        for test in exercise.tests:
            test.message = without_folders(test.message)
    for cell in report.cells:
        cell.message, cell.printed = without_folders(cell.message), without_folders(cell.printed)
    return report
