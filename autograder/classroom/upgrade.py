"""Brings the units of a class's folder to the course's version, as long as nothing of them is graded."""

from collections.abc import Sequence
from pathlib import Path

from .. import course
from ..course import digests
from ..course.folder import folder
from ..gradebook.course_directory import SETTINGS
from ..gradebook.database import FILE, reading
from ..gradebook.entry import graded
from . import whole_files
from .new_course import KINDS, NotMade, furnish, known
from .one_run import one_run

_MODE = 0o644
_FORMER_FILES = [
    f"{data}.json.gz" for data in ("guesses_and_hints", "known_mistakes", "public_examples", "right_steps")
]
"""Data of the student check in earlier versions. One file named after the unit has replaced them."""


def upgrade_course(place: Path, units: Sequence[str] = ()) -> list[str]:
    """Makes these units of a course folder, or all that it keeps, what they are in the course; returns those changed.

    Units and settings that the folder lacks are added. Nothing is changed unless all can be.
    Raises NotMade, UnknownUnit and CourseProblem.
    """
    root = place.resolve()
    if not root.is_dir():
        raise NotMade(f"The course folder {place} is not there. `autograder new-course` makes one.")
    if root == folder():
        raise NotMade(f"{place} is the course itself: `autograder build` makes its units.")
    if not any((root / name).exists() for name in (SETTINGS, FILE, course.SOURCE)):
        raise NotMade(
            f"{place} is no course folder: name the one that has your gradebook, or make one with new-course."
        )
    keeps = course.unit_names(root) if (root / course.SOURCE).is_dir() else []
    names = known(units or keeps)
    with one_run(root):
        changed = [unit for unit in names if _differing(root, unit)]
        for unit in changed:
            _refuse(root, unit)
        try:
            for unit in changed:
                for target, content in _differing(root, unit).items():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    whole_files.write(target, content, _MODE)
                for kind in KINDS:
                    for name in _FORMER_FILES:
                        (root / kind / unit / name).unlink(missing_ok=True)
            furnish(root, names)
        except OSError as error:
            raise NotMade(
                f"{error.filename} cannot be written: {error.strerror}. Run this again when it can."
            ) from None
    return changed


def _differing(root: Path, unit: str) -> dict[Path, bytes]:
    """The unit's files that are not in the class's folder as the course has them; the notebook that tells its version
    comes last, so that a run that was ended is taken up again.
    """
    files = {
        root / kind / unit / path.name: path.read_bytes()
        for kind in reversed(KINDS)
        for path in reversed(course.unit_files(kind, unit))
    }
    return {path: content for path, content in files.items() if not path.is_file() or path.read_bytes() != content}


def _refuse(root: Path, unit: str) -> None:
    """Raises NotMade where an upgrade would lose something; a unit that the folder does not have yet loses nothing."""
    kept = root / course.SOURCE / unit / f"{unit}.ipynb"
    if not kept.is_file():
        return
    with reading(root) as session:
        students = graded(session, unit) if session else 0
    if students:
        raise NotMade(
            f"{unit} is graded in {root} already ({students} of the class), and stays as it was given out. For the "
            "new version make another folder: `autograder new-course`."
        )
    if digests.is_edited(kept):
        raise NotMade(
            f"{kept} was changed by hand, and upgrading would lose that. Keep your copy elsewhere, take this file "
            "out, and upgrade again."
        )
