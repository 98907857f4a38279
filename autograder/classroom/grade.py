"""`autograder grade`: a class goes through the sandbox into the gradebook, with one row for everyone on the roster."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from ..client.requests import Device, Ready
from ..course.settings import Settings
from ..feedback import page_filters
from ..gradebook import database
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.database import Database, said_in_a_sentence
from ..gradebook.entry import Entry
from ..report import Report
from .assignment import Assignment, NotGraded
from .hand_in import HandIn
from .marking_ahead import Marking, MarkingAhead
from .one_run import one_run
from .writer import Writer

_BEGINNING = 100
"""Characters of a message, which tell whether an exercise was written."""


@dataclass(frozen=True)
class Row:
    """One student's line in the table."""

    student: str
    report: Report
    """Without the exercises that passed and without the tests, because the rows of a whole class are held in memory;
    what is said of each is cut.
    """
    problem: str = ""
    """Why the mark could not be recorded; empty if it was."""
    is_new: bool = True
    """Whether it was marked in this run."""
    note: str = ""
    """What to know about the student's files, as they are now."""


@dataclass(frozen=True)
class ClassResult:
    """The state of a class once it is graded."""

    rows: list[Row]
    conditions: Ready | None
    """On what submissions were marked; None if none had to be."""
    pages: Path
    """The path of the feedback pages, with `<student>` for the student."""
    gradebook: Database
    waiting: int
    """How many written answers are waiting for a person."""
    late: dict[str, timedelta]
    """Who handed in after the due date, and how long after."""
    refused: list[NotGraded]
    """Folders and students that could not be graded."""


def grade(
    work: Assignment,
    *,
    device: Device,
    settings: Settings,
    markers: int,
    regrade: bool = False,
    marking: Callable[..., Marking] = MarkingAhead,
    on_start: Callable[[int], None] = lambda total: None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> ClassResult:
    """Grades everyone into the gradebook; submissions that are already graded are left alone, unless `regrade`.

    May be interrupted at any moment and run again. marking: makes the reports on the submissions to mark.
    Raises MarkerRefused and CourseProblem.
    """
    rows: dict[str, Row] = {}

    def finished(row: Row) -> None:
        rows[row.student] = row
        on_row(row)

    conditions = None
    with one_run(work.root), ExitStack() as open_things:
        with said_in_a_sentence(work.root):
            gradebook = open_things.enter_context(ClassGradebook(work.directory, work.unit.name))
            gradebook.enrol(work.students)
            formatter = open_things.enter_context(page_filters.formatter(settings))
            writer = Writer(work, gradebook, formatter)
        on_start(len(work.hand_ins))
        todo = []
        for hand_in in work.hand_ins:
            if hand_in.notebook is None:
                with said_in_a_sentence(work.root):
                    earlier = gradebook.entry(hand_in.student)
                finished(Row(hand_in.student, _nothing_handed_in(work, hand_in, earlier)))
                continue
            with said_in_a_sentence(work.root):
                kept = None if regrade else writer.left_alone(hand_in, device, settings)
            if kept is None:
                todo.append(hand_in)
            else:
                finished(Row(hand_in.student, _brief(kept), is_new=False, note=hand_in.note))
        with said_in_a_sentence(work.root):
            gradebook.commit()  # ends what was begun for reading
        if todo:
            formatter.start()  # while the markers start, which takes longer
            desks = open_things.enter_context(marking(work, todo, device=device, settings=settings, markers=markers))
            conditions = desks.start()
            for marked in desks.marked():
                with said_in_a_sentence(work.root):
                    problem = writer.record(marked)
                finished(Row(marked.hand_in.student, _brief(marked.report), problem))
        with said_in_a_sentence(work.root):
            waiting, late = gradebook.waiting(), gradebook.late()
    in_order = [rows[hand_in.student] for hand_in in work.hand_ins]
    its = database.of_directory(work.directory)
    return ClassResult(in_order, conditions, writer.page("<student>"), its, waiting, late, work.refused)


def _nothing_handed_in(work: Assignment, hand_in: HandIn, earlier: Entry | None) -> Report:
    """earlier: the gradebook's entry for the student, if a submission that was graded has since gone."""
    stands = " The gradebook keeps the mark of what was handed in before." if earlier else ""
    score = sum(given or 0.0 for given in earlier.automatic_scores().values()) if earlier else 0.0
    note = hand_in.note + stands
    return Report("", work.unit.name, "not_submitted", "", "", score, work.unit.max_score, [], note)


def _brief(report: Report) -> Report:
    """What the table shows of a report."""
    wrong = [
        msgspec.structs.replace(e, tests=[], message=e.message[:_BEGINNING], whereabouts=None, behaviour=None)
        for e in report.exercises
        if e.status != "passed"
    ]
    more = dict.fromkeys(("version", "kit", "torch", "cases", "submission"), "")
    return msgspec.structs.replace(report, exercises=wrong, cells=[], enforced=[], written=[], **more)
