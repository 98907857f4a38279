"""Makes and upgrades a class's folder: a course for nbgrader with units of its own, in which every command works."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from nbgrader.api import Assignment, Notebook
from sqlalchemy import select

from .. import UserError, course, output_files
from ..course import content
from ..course.settings import VARIABLE, folder
from ..course.submitted_files import new_folder
from ..gradebook import nbgrader_course
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.nbgrader_course import GRADEBOOK, SETTINGS, course_directory, course_lock
from ..gradebook.roster import ROSTER, TEMPLATE

_KINDS = (course.SOURCE, course.RELEASE)
_EVERYONE = 0o1777  # nbgrader's exchange: students' accounts write into it, and cannot move each other's files
_OWNER_ONLY = 0o700  # the folder holds solutions, grades and submissions
_MODE = 0o644
_FORMER_FILES = [
    f"{data}.json.gz" for data in ("guesses_and_hints", "known_mistakes", "public_examples", "right_steps")
]
"""Data of the student check in earlier versions. One file named after the unit has replaced them."""

_TEMPLATE = Path(__file__).parent / "templates" / "nbgrader_config.txt"


class NotMade(UserError):
    """A course folder cannot be made or upgraded; `str()` says why and what to do."""


def new_course(place: Path, units: Sequence[str] = ()) -> list[str]:
    """Make a course folder with these units, or with all; make nothing if that fails. Return the units' names.

    Raises NotMade, UnknownUnit and CourseProblem.
    """
    names = _known(units)
    place = place.absolute()
    _refuse_unusable(place)
    try:
        if place.is_symlink() or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
            raise NotMade(f"{place} already exists and is not empty. Name a new folder.")
        with new_folder(place) as part:
            part.chmod(_OWNER_ONLY)
            furnish(part, names)
            if part.is_relative_to(folder()):  # the records of a class must not be published with the course
                (part / ".gitignore").write_text("*\n")
            part.rename(place)
    except OSError as error:
        raise NotMade(
            f"{place} cannot be created: {error.strerror or error}. Name a folder that you can write to."
        ) from None
    return names


def _refuse_unusable(place: Path) -> None:
    """Raise NotMade if nbgrader would look for its settings elsewhere, and run submissions without isolation."""
    if not str(place).isprintable():
        raise NotMade(f"The name {place} contains an invisible character. Name another folder.")
    if os.path.expandvars(place) != str(place):
        raise NotMade(
            f"{place} contains the name of an environment variable, which nbgrader replaces. Name another folder."
        )


def furnish(place: Path, units: Sequence[str]) -> None:
    """Add to a folder what a course folder with these units needs; leave everything that is there unchanged.

    Raises CourseProblem and OSError.
    """
    for name in ("submitted", "exchange"):
        (place / name).mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError):  # the folder belongs to another account, which chose its permissions
        (place / "exchange").chmod(_EVERYONE)
    for name, text in ((SETTINGS, _config(place)), (ROSTER, TEMPLATE)):
        if not (place / name).exists():
            (place / name).write_text(text)
    for unit in units:
        for kind in _KINDS:
            if not (place / kind / unit).exists():
                (place / kind / unit).mkdir(parents=True)
                for path in course.unit_files(kind, unit):
                    shutil.copyfile(path, place / kind / unit / path.name)
    for unit in units:
        with nbgrader_course.explained_errors(place):
            ClassGradebook(course_directory(place), unit).close()


def _known(units: Sequence[str]) -> list[str]:
    """Return these units of the course, or all; raise UnknownUnit, and NotMade if one is not released."""
    names = list(dict.fromkeys(units)) or course.unit_names()
    for name in names:
        course.unit(name)
    if not names or not all(course.released(name).is_file() for name in names):
        raise NotMade("Nothing is built yet: run `autograder build` first.")
    return names


def _config(place: Path) -> str:
    """Return the settings of a class's folder; within the course's folder, with a relative path to the course.

    The relative path lets both folders be moved together.
    """
    here = place.resolve()
    path = os.path.relpath(folder(), here) if here.is_relative_to(folder()) else str(folder())
    return _TEMPLATE.read_text().format(course=path, settings=SETTINGS, variable=VARIABLE)


class Upgrade(NamedTuple):
    """The units that `upgrade_course` has changed, and those that it left alone."""

    changed: list[str]
    """Units that have the course's version now."""
    graded: list[str]
    """Units that keep their released version, because submissions to them are graded."""


def upgrade_course(place: Path, units: Sequence[str] = ()) -> Upgrade:
    """Replace these units of a course folder, or all that are not graded yet, by the course's version.

    Add units and settings that the folder lacks. Change nothing unless everything can be changed.
    Raises NotMade, also if a given unit is graded, UnknownUnit and CourseProblem.
    """
    root = place.resolve()
    if not root.is_dir():
        raise NotMade(f"There is no course folder {place}. `autograder new-course` makes one.")
    if root == folder():
        raise NotMade(f"{place} is the course itself: `autograder build` makes its units.")
    if not any((root / name).exists() for name in (SETTINGS, GRADEBOOK, course.SOURCE)):
        raise NotMade(
            f"{place} is not a class's folder: name the folder with your gradebook, or make one with new-course."
        )
    present = course.unit_names(root) if (root / course.SOURCE).is_dir() else []
    names = _known(units or present)
    with course_lock(root):
        differing = [unit for unit in names if _differing(root, unit)]
        graded = [unit for unit in differing if not units and _num_graded(root, unit)]
        changed = [unit for unit in differing if unit not in graded]
        for unit in changed:
            _refuse_loss(root, unit)
        try:
            for unit in changed:
                for target, content in _differing(root, unit).items():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    output_files.replace_file(target, content, _MODE)
                for kind in _KINDS:
                    for name in _FORMER_FILES:
                        (root / kind / unit / name).unlink(missing_ok=True)
            furnish(root, names)
        except OSError as error:
            raise NotMade(
                f"{error.filename} cannot be written: {error.strerror}. Correct this, then run the same command again."
            ) from None
    return Upgrade(changed, graded)


def _differing(root: Path, unit: str) -> dict[Path, bytes]:
    """Return the unit's files that the class's folder lacks or has in another version, with the course's content.

    The notebook that identifies the version comes last, so that the next run completes one that was ended.
    """
    files = {
        root / kind / unit / path.name: path.read_bytes()
        for kind in reversed(_KINDS)
        for path in reversed(course.unit_files(kind, unit))
    }
    return {path: content for path, content in files.items() if not path.is_file() or path.read_bytes() != content}


def _num_graded(root: Path, unit: str) -> int:
    """Return the number of students with a grade in this unit."""
    with nbgrader_course.database_of(root).reading() as session:
        query = select(Notebook.num_submissions).join(Assignment, Assignment.id == Notebook.assignment_id)
        query = query.where(Assignment.name == unit, Notebook.name == unit)
        return (session.scalar(query) or 0) if session else 0


def _refuse_loss(root: Path, unit: str) -> None:
    """Raise NotMade if an upgrade would lose grades or the instructor's changes."""
    notebook = root / course.SOURCE / unit / f"{unit}.ipynb"
    if not notebook.is_file():
        return
    if students := _num_graded(root, unit):
        raise NotMade(
            f"{unit} is already graded in {root} ({students} of the class), so its released version is kept. To use "
            "the new version, make another folder: `autograder new-course`."
        )
    if content.is_edited(notebook):
        raise NotMade(
            f"{notebook} was changed by hand, and upgrading would lose these changes. Move this file to another "
            "place, and upgrade again."
        )
