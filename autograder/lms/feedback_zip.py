"""Pack the feedback pages into one zip file, under the names by which Canvas or Moodle knows the students."""

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
    """The ids of the students, in lists by what happened to their feedback pages."""

    packed: list[str] = field(default_factory=list)
    without_origin: list[str] = field(default_factory=list)
    """Students whose page was not packed, because their submission was not imported from Canvas or Moodle."""
    without_page: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    """Students whose page was packed but is older than a change of the grade or comments, or than the due date."""


def pack(output: Path, directory: Any, marks: UnitMarks, origins: Mapping[str, Origin]) -> Packed:
    """Write a zip file with the feedback pages of a unit, unless there are none; raises NotWritable.

    The file is written completely or not at all. output: its path. directory: nbgrader's `CourseDirectory`. marks: the
    grades of the unit. origins: by student, the platform that the submission was imported from.
    """
    packed = Packed()
    names: dict[Path, str] = {}
    for student in sorted({*origins, *marks.marks}):
        page = Path(directory.format_path(directory.feedback_directory, student, marks.unit)) / f"{marks.unit}.html"
        if not page.is_file():
            packed.without_page.append(student)
        elif student not in origins:
            packed.without_origin.append(student)
        else:
            names[page] = f"{origins[student].returned}{marks.unit}.html"
            packed.packed.append(student)
            mark = marks.marks.get(student)
            if mark and mark.page and mark.page != mark.shown.digest:
                packed.outdated.append(student)
    if names:
        with opened(output) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as pages:
            for page, name in names.items():
                pages.write(page, name)
    return packed
