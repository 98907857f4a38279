"""`autograder build`, `matrix`, `new-exercise`, `remove-exercise` and `reseed`: the commands for a course's author."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from .. import course, output_files
from .console import Units, console, fail, print_lines, printable, relative_path, results, to_stderr

if TYPE_CHECKING:
    from ..catalogue.mutation_report import Outcome, Way

PAGE = "docs/matrix.md"


def build(
    units: Units = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if something is out of date.")] = False,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Also make single_file/: notebooks that need no other file.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only units whose files have changed since they were built.")
    ] = False,
) -> None:
    """Make source/ from exercises/ and solutions/, and release/ from source/."""
    if check and single_file:
        fail("--check changes nothing, but --single-file writes notebooks: give only one of them.")
    if changed and (units or check or single_file):
        fail("--changed finds the units itself: do not combine it with units, --check or --single-file.")
    from .. import course
    from ..build import course_files

    names = units or []
    if changed:
        names = course_files.changed_units()
        others = [name for name in course.unit_names() if name not in names]
        copies = course_files.copy_released(others)
        with results():
            console.print(f"Up to date: {len(others)} units; {copies} files copied to source/.", highlight=False)
        if not names:
            return
    changes = course_files.differences(names) if check else course_files.build(names, in_single_files=single_file)
    with results():
        for change in changes:
            console.print(printable(f"{change.path}: {change.what}"), highlight=False)
    if check and changes:
        fail("source/ and release/ are not what exercises/ and solutions/ make: run `autograder build`.")
    of_units = f" of {', '.join(names)}" if names else ""
    with results():
        console.print(
            f"{len(changes)} files written." if changes else f"source/ and release/{of_units} are up to date."
        )


def new_exercise(
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The unit, which is begun too if it does not exist.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the function or class that students write.")],
    of_a_class: Annotated[bool, typer.Option("--class", help="Students write a class, not a function.")] = False,
) -> None:
    """Begin an exercise: files for its text, solution, hidden tests, known mistakes and alternative solutions."""
    from ..build.exercise_files import MARK
    from ..build.exercise_files import new_exercise as begin

    files = begin(unit, name, of_a_class=of_a_class)
    instruction = f"Replace each `{MARK}` by your text or code; `autograder build {unit}` lists those that are left."
    print_lines([*map(relative_path, files), instruction])


def remove_exercise(
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The exercise's unit.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The exercise: the name of its function or class.")],
) -> None:
    """Remove an exercise that no class has, and name all other lines that mention it."""
    from ..build.exercise_files import remove_exercise as remove

    removal = remove(unit, name)
    print_lines([f"changed  {relative_path(path)}" for path in removal.changed])
    print_lines([f"deleted  {relative_path(path)}" for path in removal.deleted])
    if removal.mentions:
        print_lines([f"`{name}` is still mentioned, by file and line:", *removal.mentions])
    print_lines(["Run `autograder build`, which writes source/ and release/."])


def reseed() -> None:
    """Give the hidden tests other random inputs, drawn from a new secret.

    Public tests and the released files stay the same. The next `autograder grade` grades every submission again.
    """
    from ..course import content, settings

    if not content.place(content.HIDDEN).is_dir():
        fail("This course has no hidden tests, so there are no hidden inputs to draw.")
    path = settings.write_secret()
    print_lines(
        [
            f"{path} has a new secret. Keep it private; if you delete it, the published numbers are used again.",
            "Run `autograder matrix`, which grades all known answers with the new numbers.",
        ]
    )


def matrix(
    units: Units = None,
    only: Annotated[
        str, typer.Option("-k", metavar="NAME", help="Only answers with NAME in their own or their exercise's name.")
    ] = "",
    sandboxed: Annotated[
        bool, typer.Option("--sandboxed", help="Type each answer into a notebook and grade it like a submission.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help=f"Write the figures to {PAGE}, and the golden record.")
    ] = False,
) -> None:
    """Grade all known answers: count the mistakes that are detected and diagnosed, and the right answers refused."""
    if write and (units or only):
        fail(f"{PAGE} has the figures of all known answers: give --write without a unit and without -k.")
    for unit in units or ():
        course.unit(unit)  # before anything is imported that takes seconds
    if write:
        _reject_secret()
        _reject_outdated()
    way: Way = "sandboxed" if sandboxed else "in process"
    outcomes = _outcomes(units or [], only, way)
    if write:
        _write_page(outcomes)
    with results():
        console.print(_table(outcomes, way))
        for one in outcomes:
            if not one.is_as_expected:
                names = one.report.diagnosis.names if one.report.diagnosis else "no name"
                console.print(f"{one.entry.exercise}: {one.entry.name}: {one.report.status}, {names}", markup=False)
        if write:
            console.print(f"{PAGE} written.")
    if not all(one.is_as_expected for one in outcomes):
        fail("Grading did not give these answers the expected results: see the lines above.")


def _outcomes(units: list[str], only: str, way: "Way") -> "list[Outcome]":
    """Grade the known answers, with a progress bar, and return the outcomes."""
    from ..catalogue.mutation_report import entries, outcome, outcomes
    from ..course.settings import load
    from ..pool.grading_pool import GradingProcess

    known = entries(tuple(dict.fromkeys(units)), only)
    if not known:
        of_units = f" of {', '.join(units)}" if units else ""
        wanted = f" with `{only}` in their own or their exercise's name" if only else ""
        fail(
            f"There are no known answers{of_units}{wanted}. Those of a new exercise are tried only after `autograder "
            "build`."
        )
    settings = load()
    with ExitStack() as stack:
        grading_process = stack.enter_context(GradingProcess("cpu", settings, own_code_alone=way == "in process"))
        graded = (
            (outcome(grading_process, unit, entry, way) for unit, entry in known)
            if way == "sandboxed"
            else outcomes(grading_process, known)
        )
        hidden = not to_stderr.is_terminal
        return list(track(graded, total=len(known), console=to_stderr, transient=True, disable=hidden))


def _table(outcomes: "list[Outcome]", way: "Way") -> Table:
    from ..catalogue.mutation_report import COLUMNS, count, count_by, count_by_kind

    table = Table(title=f"{len(outcomes)} known answers, graded {way}", title_justify="left")
    table.add_column("", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", overflow="fold")  # a cut heading could mean another column
    for exercise, counts in count_by(outcomes, lambda one: one.entry.exercise, COLUMNS):
        table.add_row(exercise, *map(str, counts))
    table.add_section()
    for kind, counts in count_by_kind(outcomes):
        if counts[0]:
            table.add_row(kind, *map(str, counts))
    table.add_section()
    table.add_row("all", *map(str, count(outcomes, COLUMNS)))
    return table


def _write_page(outcomes: "list[Outcome]") -> None:
    from ..catalogue.mutation_report import below_digest, check_verdicts, page, records
    from ..course.settings import folder

    checked = list(check_verdicts())
    before = folder() / PAGE
    others = below_digest(before.read_text()) if before.exists() else ""
    texts = {PAGE: page(outcomes, checked) + (others and f"\n{others}"), **records(outcomes, checked)}
    output_files.write({folder() / path: text.encode() for path, text in texts.items()}, makes_folder=True)


def _reject_secret() -> None:
    """Fail if the course has a secret, because the page reports on the published numbers."""
    from ..course.settings import SECRET_FILE, read_secret

    if read_secret():
        fail(
            f"{PAGE} reports on the published inputs, but {SECRET_FILE} replaces them: move this file elsewhere, "
            "or give the command without --write."
        )


def _reject_outdated() -> None:
    """Fail if the released files differ from those that a build makes now, because the page reports on them too."""
    from ..build import course_files

    if changes := course_files.differences():
        fail(f"{changes[0].path} is {changes[0].what}: run `autograder build` first.")
