"""`autograder grade`."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from .. import course
from ..classroom import processors
from ..client.requests import Device
from ..course import version
from ..course.folder import folder, use
from ..course.settings import BadSettings
from .isolation import Require, Trust, asked
from .saying import aside, console, refuse, remark, results, shown

if TYPE_CHECKING:  # nbgrader takes seconds to import, and `autograder mark` and `--help` do not need it
    from ..classroom.assignment import Assignment

_MOST_NAMED = 20


def grade(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    submitted: Annotated[
        Path | None, typer.Option(help="Submissions, as STUDENT/UNIT/UNIT.ipynb; COURSE/submitted if not given.")
    ] = None,
    roster: Annotated[
        Path | None, typer.Option(help="A CSV file with a column id; COURSE/roster.csv where there is one.")
    ] = None,
    markers: Annotated[
        int, typer.Option("--markers", "--workers", min=1, help="Marking processes side by side.")
    ] = processors.count(),
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say whose marks would change.")] = False,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Mark everyone again, even what is already graded.")
    ] = False,
    course_folder: Annotated[
        Path | None,
        typer.Option(
            "--course", help="The class's folder, with submissions and gradebook; the default: the course's own."
        ),
    ] = None,
    require_isolation: Require = None,
    trust_submissions: Trust = False,
) -> None:
    """Grade a class: into the gradebook, with a table here and a feedback page for everyone."""
    from ..classroom.assignment import NothingToGrade, assignment
    from ..classroom.grade import grade as grade_class
    from ..classroom.preview import preview
    from ..client.marker import MarkerRefused, MarkerStopped
    from ..gradebook.course_directory import CourseProblem
    from ..gradebook.roster import BadRoster
    from .class_table import changes_table, class_table

    try:
        settings = asked(require_isolation, trust_submissions)
        if course_folder:
            use(course_folder)
        work = assignment(unit, course_folder or folder(), submitted, roster)
        if dry_run:
            changes = preview(work, device=device, settings=settings, markers=markers)
            with results():
                console.print(changes_table(unit, changes))
            for one in work.refused:
                remark(f"NOT GRADED: {one.name}: {one.reason}")
            return
        with Progress(console=aside, transient=True, disable=not aside.is_terminal) as progress:
            task = progress.add_task(f"starting to grade {unit}", total=None)
            result = grade_class(
                work,
                device=device,
                settings=settings,
                markers=markers,
                regrade=regrade,
                on_start=lambda total: progress.update(task, total=total, description=unit),
                on_row=lambda row: progress.advance(task),
            )
    except (course.UnknownUnit, course.UnusableUnit, BadSettings, NothingToGrade, BadRoster, CourseProblem) as reason:
        refuse(reason)
    except (MarkerRefused, MarkerStopped) as reason:
        refuse(reason)
    except KeyboardInterrupt:
        kept = (
            "" if dry_run else " What was graded so far is in the gradebook; run the same command again for the rest."
        )
        refuse(f"Interrupted.{kept}")
    with results():
        console.print(class_table(work.unit, result))
        if result.conditions:
            console.print(
                f"Isolation {result.conditions.isolation}: {', '.join(result.conditions.enforced)}.", highlight=False
            )
        if alone := sum(not row.is_new for row in result.rows):
            console.print(f"Unchanged since they were graded, and left alone: {alone}. `--regrade` marks them again.")
        if result.waiting:
            console.print(f"Answers for a person to read, in formgrader: {result.waiting}. Until then they count 0.")
        console.print(shown(f"Gradebook: {_short(result.gradebook)}"), highlight=False, soft_wrap=True)
        console.print(shown(f"Feedback pages: {_short(result.pages)}"), highlight=False, soft_wrap=True)
        of_class = ["--course", str(course_folder)] if course_folder else []
        class_report = shlex.join(["autograder", "report", unit, *of_class])
        console.print(shown(f"Class report: {class_report}"), highlight=False, soft_wrap=True)
    for sentence in _remarks(work):
        remark(sentence)
    if work.refused or any(row.problem or row.report.status == "grader_error" for row in result.rows):
        raise typer.Exit(1)


def _remarks(work: "Assignment") -> Iterator[str]:
    """What an instructor has to know about who is in the class and what was handed in."""
    if work.passed_over:
        yield (
            f"NOT LOOKED AT in {_short(work.submitted)}: {_some(work.passed_over)}. "
            "A submission is STUDENT/UNIT/UNIT.ipynb; put it there, or take it out."
        )
    if work.not_on_roster:
        yield f"NOT ON THE ROSTER, and graded all the same: {_some(work.not_on_roster)}."
    if not version.is_the_courses(work.unit.name, work.root):
        yield (
            f"{_short(work.root)} keeps {work.unit.name} as it was given out, and this version of the kit has another: "
            "marked are the exercises that the folder has, at its points. `autograder upgrade-course "
            f"{_short(work.root)} {work.unit.name}` brings the new one, as long as nothing of it is graded."
        )
    if not (work.root / "nbgrader_config.py").is_file():
        yield (
            f"{_short(work.root)} has no nbgrader_config.py: nbgrader's own commands, and formgrader, would run "
            f"submissions there without isolation. `autograder upgrade-course {_short(work.root)} {work.unit.name}` "
            "gives it one."
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
