"""Makes a class's folder: a course for nbgrader, with units of its own, in which every command works at once."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .. import course
from ..course.folder import VARIABLE, folder
from ..errors import UserError
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.class_list import ROSTER
from ..gradebook.course_directory import SETTINGS, course_directory
from ..gradebook.database import said_in_a_sentence
from ..gradebook.roster import TEMPLATE

KINDS = (course.SOURCE, course.RELEASE)
_EVERYONE = 0o1777  # nbgrader's exchange: students' accounts write into it, and none moves what another put there
_ITS_OWNER = 0o700  # solutions, marks and submissions are nothing for the accounts of students

_CONFIG = '''\
"""nbgrader's settings for this class: those of the course, in this folder. Read by nbgrader, formgrader, autograder."""

import os
from pathlib import Path

here = Path(__file__).resolve().parent
course = (here / {course!r}).resolve()
# Without the course's settings nbgrader would go on, and run submissions without isolation.
if not (course / {settings!r}).is_file():
    raise SystemExit(f"{{course}} has no {settings}. Write where the course is now into {{__file__}}.")
os.environ.setdefault({variable!r}, str(course))

c = get_config()  # noqa: F821  (nbgrader provides it)
try:
    load_subconfig(str(course / {settings!r}))  # noqa: F821
except Exception as error:
    raise SystemExit(f"{{course}} cannot be used: {{error}}. Is this its environment?") from None

c.CourseDirectory.root = str(here)

# Classes that share an exchange each need an id of their own:
# c.CourseDirectory.course_id = "autumn"

# The zone of those who submit, whose names for it (CET, CEST) their time stamps have:
# c.Exchange.timezone = "Europe/Berlin"

# Where assignments are released and collected. Students' accounts cannot reach this one, since the folder around it has
# solutions and marks: name a folder outside of it that they can read and write.
c.Exchange.root = str(here / "exchange")
'''


class NotMade(UserError):
    """A course folder cannot be made or upgraded; `str()` says why and what to do."""


def new_course(place: Path, units: Sequence[str] = ()) -> list[str]:
    """Makes a course folder with these units, or with all, and returns their names; it is made whole or not at all.

    Raises NotMade, UnknownUnit and CourseProblem.
    """
    names = known(units)
    place = place.absolute()
    _refuse_unusable(place)
    part = place.with_name(f".{place.name}.part")
    made = [parent for parent in part.parents if not parent.exists()]
    try:
        if place.is_symlink() or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
            raise NotMade(f"{place} is there already, and not empty. Name a folder that is not there yet.")
        if part.exists():  # from a killed run
            shutil.rmtree(part)
        part.mkdir(parents=True)
        part.chmod(_ITS_OWNER)
        try:
            furnish(part, names)
            if part.is_relative_to(folder()):  # the records of a class are nothing to publish with the course
                (part / ".gitignore").write_text("*\n")
            part.rename(place)
        except BaseException:
            shutil.rmtree(part)
            for parent in made:
                parent.rmdir()
            raise
    except OSError as error:
        raise NotMade(
            f"{place} cannot be made: {error.strerror or error}. Name a folder that you can write to."
        ) from None
    return names


def _refuse_unusable(place: Path) -> None:
    """Raise NotMade if nbgrader would look for its settings elsewhere, and run submissions without isolation."""
    if not str(place).isprintable():
        raise NotMade(f"{place} has a character that does not show. Name another folder.")
    if os.path.expandvars(place) != str(place):
        raise NotMade(f"{place} has the name of an environment variable in it, which nbgrader replaces. Name another.")


def furnish(place: Path, units: Sequence[str]) -> None:
    """Puts into a folder what it lacks as a course folder with these units; what is there stays as it is.

    Raises CourseProblem and OSError.
    """
    for name in ("submitted", "exchange"):
        (place / name).mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError):  # somebody else's is as they want it
        (place / "exchange").chmod(_EVERYONE)
    for name, text in ((SETTINGS, _config(place)), (ROSTER, TEMPLATE)):
        if not (place / name).exists():
            (place / name).write_text(text)
    for unit in units:
        for kind in KINDS:
            if not (place / kind / unit).exists():
                (place / kind / unit).mkdir(parents=True)
                for path in course.unit_files(kind, unit):
                    shutil.copyfile(path, place / kind / unit / path.name)
    for unit in units:
        with said_in_a_sentence(place):
            ClassGradebook(course_directory(place), unit).close()


def known(units: Sequence[str]) -> list[str]:
    """These units of the course, or all of them; raises UnknownUnit, and NotMade if there are none to hand out."""
    names = list(dict.fromkeys(units)) or course.unit_names()
    for name in names:
        course.unit(name)
    if not names or not all(course.released(name).is_file() for name in names):
        raise NotMade("Nothing is built yet: run `autograder build` first.")
    return names


def _config(place: Path) -> str:
    """Within the course's own folder the two can be moved together, so the path is a relative one."""
    here = place.resolve()
    where = os.path.relpath(folder(), here) if here.is_relative_to(folder()) else str(folder())
    return _CONFIG.format(course=where, settings=SETTINGS, variable=VARIABLE)
