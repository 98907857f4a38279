"""The course: its folder and settings, its units and their exercises, and notebooks read as data.

`units` says which exercises a unit has and what they are worth. `notebook` decodes a notebook that a student submitted
and `cells` relates its cells to those of the unit. Nothing here executes a student's code, and nothing needs torch.
"""

from .units import (
    CHECK_PREFIX,
    RELEASE,
    SOURCE,
    Exercise,
    Unit,
    UnknownUnit,
    UnusableUnit,
    accompanying_files,
    refuse_removed_exercises,
    released,
    source,
    unit,
    unit_files,
    unit_names,
    units_root,
)

__all__ = [
    "CHECK_PREFIX",
    "RELEASE",
    "SOURCE",
    "Exercise",
    "Unit",
    "UnknownUnit",
    "UnusableUnit",
    "accompanying_files",
    "refuse_removed_exercises",
    "released",
    "source",
    "unit",
    "unit_files",
    "unit_names",
    "units_root",
]
