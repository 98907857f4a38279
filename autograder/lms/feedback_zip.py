"""The feedback pages in one zip file, under the names by which Canvas or Moodle knows whose they are."""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..gradebook.marks import UnitMarks
from ..output_files import opened
from .import_submissions import Origin


@dataclass
class Packed:
    """What came of it."""

    packed: list[str] = field(default_factory=list)
    without_origin: list[str] = field(default_factory=list)
    """Who has a page, but whose submission was not imported."""
    without_page: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    """Whose page was written before a person gave the last mark or comment."""


def pack(output: Path, directory: Any, marks: UnitMarks, origins: Mapping[str, Origin]) -> Packed:
    """Writes the zip file, whole or not at all, and none without a page in it; raises NotWritable.

    directory: the course as nbgrader has it. origins: where the submissions came from, by student.
    """
    unit = marks.unit
    done = Packed()
    pages: dict[Path, str] = {}
    for student in sorted({*origins, *marks.marks}):
        page = Path(directory.format_path(directory.feedback_directory, student, unit)) / f"{unit}.html"
        if not page.is_file():
            done.without_page.append(student)
        elif student not in origins:
            done.without_origin.append(student)
        else:
            pages[page] = f"{origins[student].returned}{unit}.html"
            done.packed.append(student)
            mark = marks.marks.get(student)
            if mark and mark.page and mark.page != mark.shown.digest:
                done.outdated.append(student)
    if pages:
        with (
            opened(output) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as packed,
        ):
            for page, name in pages.items():
                packed.write(page, name)
    return done
