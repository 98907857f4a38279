"""`autograder grade`: a class goes through the sandbox into the gradebook, with one row for everyone on the roster."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from ..client.requests import Device, Ready
from ..course.settings import Settings
from ..gradebook import database
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.database import Database, said_in_a_sentence
from ..gradebook.entry import Entry
from ..report import Report
from ..reports import page_filters
from .assignment import Assignment, NotGraded
from .feedback_page import FeedbackPages, page_path
from .hand_in import HandIn
from .marking_ahead import MarkedHandIn, Marking, MarkingAhead
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
    updates: tuple[str, ...] = ()
    """Changes to the student's record without grading the submission again: the roster entry, the late penalty."""


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
    """Time between the due date and the submission, by student; only late submissions."""
    penalised: dict[str, float]
    """Points deducted for lateness, by student; only students who lose points."""
    unresolved: dict[str, str]
    """Text of each time stamp that does not determine a time, by student. Lateness is unknown for these students."""
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
    with one_run(work.root), ExitStack() as open_things:
        with said_in_a_sentence(work.root):
            gradebook = open_things.enter_context(ClassGradebook(work.directory, work.unit.name))
            formatter = open_things.enter_context(page_filters.formatter(settings))
            pages = FeedbackPages(work.directory, work.unit.name, formatter)
        on_start(len(work.hand_ins))
        grading = Grading(work, gradebook, pages, device=device, settings=settings, regrade=regrade, on_row=on_row)
        todo = grading.leave_alone()
        conditions = None
        if todo:
            formatter.start()  # while the markers start, which takes longer
            desks = open_things.enter_context(marking(work, todo, device=device, settings=settings, markers=markers))
            conditions = desks.start()
            for marked in desks.marked():
                grading.record(marked)
        with said_in_a_sentence(work.root):
            late, penalised, unresolved = gradebook.late(), gradebook.penalised(), gradebook.unresolved()
            waiting = gradebook.waiting()
    its = database.of_directory(work.directory)
    page = page_path(work.directory, work.unit.name, "<student>")
    return ClassResult(grading.rows, conditions, page, its, waiting, late, penalised, unresolved, work.refused)


class Grading:
    """The steps of a run, which a dry run takes with a copy of the gradebook."""

    def __init__(
        self,
        work: Assignment,
        gradebook: ClassGradebook,
        pages: FeedbackPages | None,
        *,
        device: Device,
        settings: Settings,
        regrade: bool,
        on_row: Callable[[Row], None] = lambda row: None,
    ) -> None:
        """Enrols the class. pages: None for a dry run, see `Writer`. Raises CourseProblem."""
        self._work = work
        self._gradebook = gradebook
        self._terms = device, settings
        self._regrade = regrade
        self._on_row = on_row
        self._rows: dict[str, Row] = {}
        with said_in_a_sentence(work.root):
            self._writer = Writer(work, gradebook, pages)
            self._new_on_roster = set(gradebook.enrol(work.students))

    @property
    def rows(self) -> list[Row]:
        """Everyone's, in the order of the class."""
        return [self._rows[hand_in.student] for hand_in in self._work.hand_ins]

    def leave_alone(self) -> list[HandIn]:
        """Makes the rows of everyone who is not graded in this run; returns the submissions that are."""
        todo = []
        for hand_in in self._work.hand_ins:
            student = hand_in.student
            with said_in_a_sentence(self._work.root):
                if hand_in.notebook is None:
                    is_penalty_new = self._writer.update(student)
                    report = _nothing_handed_in(self._work, hand_in, self._gradebook.entry(student))
                    self._finish(Row(student, report, updates=self._updates(student, is_penalty_new)))
                elif self._regrade or (kept := self._writer.left_alone(hand_in, *self._terms)) is None:
                    todo.append(hand_in)
                else:
                    updates = self._updates(student, kept.is_penalty_new)
                    self._finish(Row(student, _brief(kept.report), "", False, hand_in.note, updates))
        with said_in_a_sentence(self._work.root):
            self._gradebook.commit()  # ends what was begun for reading
        return todo

    def record(self, marked: MarkedHandIn) -> None:
        """Records a mark."""
        with said_in_a_sentence(self._work.root):
            problem = self._writer.record(marked)
        self._finish(Row(marked.hand_in.student, _brief(marked.report), problem))

    def _updates(self, student: str, is_penalty_new: bool) -> tuple[str, ...]:
        updates = {"roster entry": student in self._new_on_roster, "late penalty": is_penalty_new}
        return tuple(name for name, is_new in updates.items() if is_new)

    def _finish(self, row: Row) -> None:
        self._rows[row.student] = row
        self._on_row(row)


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
