"""`autograder upgrade-course`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import course
from .paths import named
from .saying import console, refuse, results, shown


def upgrade_course(
    place: Annotated[Path, typer.Argument(parser=named, metavar="DIR", help="The class's folder.")],
    units: Annotated[
        list[str] | None, typer.Argument(metavar="[UNIT]...", help="The units; all that the folder keeps if not given.")
    ] = None,
) -> None:
    """Bring a class's units to this version of the kit, and add what its folder lacks; nothing graded is changed."""
    from ..classroom.new_course import NotMade
    from ..classroom.upgrade import upgrade_course as upgrade
    from ..course.folder import use
    from ..gradebook.course_directory import CourseProblem

    try:
        use(place)
        changed = upgrade(place, units or ())
    except (course.UnknownUnit, course.UnusableUnit, CourseProblem, NotMade) as reason:
        refuse(reason)
    said = (
        f"{place}: {', '.join(changed)} brought to this version of the kit. Release it again if it was released."
        if changed
        else f"{place} has its units as this version of the kit has them."
    )
    with results():
        console.print(shown(said), highlight=False, soft_wrap=True)
