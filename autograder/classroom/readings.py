"""Share written answers out among several readers, and record the points from their filled sheets.

A sheet is a CSV file with a row for each answer. The column `key` identifies the answer and its text, so a sheet may be
sorted, merged with another, or read again. The gradebook's table `autograder_reading` stores each answer's reader.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .. import UserError, course
from ..course.submitted_files import RULE, can_be_id
from ..course.units import CHECK_PREFIX, released_cells
from ..gradebook.class_gradebook import ClassGradebook, of_units
from ..gradebook.entry import Entry
from ..gradebook.nbgrader_course import course_directory, course_lock, explained_errors
from ..gradebook.records import Reading
from ..gradebook.tables import BadTable, as_csv, number, read_csv, text
from ..output_files import file_name
from .student_folders import Autograded

QUESTIONS = "questions.md"
"""Name of the file with the questions and their model answers, next to the sheets."""
_COLUMNS = ("reader", "question", "student", "answer", "points", "out_of", "comment", "key")
_LONGEST = 30_000
"""Maximum number of characters of an answer in a sheet. Spreadsheets allow 32,767 in a cell."""
_CUT = "\n[The rest of this answer is in formgrader.]"


class NothingToRead(UserError):
    """Nothing can be shared out; `str()` says why."""


@dataclass(frozen=True)
class Answer:
    """The answer to one written question in one graded file."""

    question: str
    code: str
    """Code of the file, which stands for its students. Only the course's gradebook resolves it."""
    text: str
    entries: Mapping[str, Entry]
    """The entries by student: several if the file counts for a group."""

    @property
    def key(self) -> str:
        """Key of the answer and its text. It begins with a letter, so that no spreadsheet reads it as a number."""
        return f"{self.code}-{hashlib.sha256(self.text.encode(errors='replace')).hexdigest()[:8]}"

    @property
    def is_waiting(self) -> bool:
        """True if a person has still to give points."""
        return any(self.question in entry.waiting() for entry in self.entries.values())

    @property
    def reader(self) -> str:
        """The reader of the answer; empty if the answer is not shared out."""
        readings = (entry.readings().get(self.question) for entry in self.entries.values())
        return next((reading.reader for reading in readings if reading), "")

    def __str__(self) -> str:
        return f"{self.question} of {' and '.join(self.entries)}"


def share_out(
    answers: Iterable[tuple[str, str]], readers: Collection[str], earlier: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], str]:
    """Return each answer's reader. An answer is a question and the code of a file.

    earlier: readers as shared out before, which are kept; those who are not in `readers` are replaced. The numbers of
    answers of any two readers differ by one at most, in all and for each question, if no earlier readers are kept.
    The order of answers and readers does not matter.
    """
    ordered = sorted(answers)
    shared = {answer: earlier[answer] for answer in ordered if earlier.get(answer) in readers}
    counts = Counter(shared.values())
    for answer in ordered:
        if answer not in shared:
            shared[answer] = min(sorted(readers), key=lambda reader: counts[reader])
            counts[shared[answer]] += 1
    return shared


def share(
    root: Path, unit_name: str, readers: Sequence[str], students: Collection[str] | None, *, hide_names: bool
) -> tuple[dict[Path, bytes], dict[str, int]]:
    """Share out the answers that wait for points, and record their readers.

    students: ids of the students whose answers are shared out; None for all. hide_names: write codes instead of ids.
    Return the files by name, a sheet for each reader and QUESTIONS, and the number of answers by reader.
    Raises NothingToRead, NoGrades, UnknownUnit and CourseProblem.
    """
    if len(set(readers)) < len(readers) or not all(map(can_be_id, readers)):
        raise NothingToRead(f"Name each reader once, and separate the names by commas. A name has {RULE}.")
    unit = course.unit(unit_name, root)
    with _opened(root, unit) as (gradebook, answers):
        waiting = {
            (answer.question, answer.code): answer
            for answer in answers
            if answer.is_waiting and (students is None or not answer.entries.keys().isdisjoint(students))
        }
        if not waiting:
            raise NothingToRead(f"No written answer of {unit_name} waits for points, so there is nothing to share out.")
        shared = share_out(waiting, readers, {place: answer.reader for place, answer in waiting.items()})
        rows: dict[str, list[Sequence[object]]] = {reader: [_COLUMNS] for reader in readers}
        for place, answer in waiting.items():
            for entry in answer.entries.values():
                entry.put_reading(answer.question, Reading(shared[place]))
            student = answer.code if hide_names else ", ".join(answer.entries)
            shown = answer.text if len(answer.text) <= _LONGEST else answer.text[:_LONGEST] + _CUT
            most = number(unit.points[answer.question])
            row = (shared[place], answer.question, text(student), text(shown), "", most, "", answer.key)
            rows[shared[place]].append(row)
        gradebook.commit()
    sheets = {Path(f"{file_name(name)}.csv"): as_csv(its).encode("utf-8-sig", "replace") for name, its in rows.items()}
    counts = {reader: len(its) - 1 for reader, its in rows.items()}
    return {**sheets, Path(QUESTIONS): _questions(unit, root).encode()}, counts


@dataclass
class Outcome:
    """Result of recording the points in filled sheets."""

    recorded: int = 0
    unchanged: int = 0
    """Number of answers whose points were recorded before."""
    not_recorded: list[str] = field(default_factory=list)
    """Messages on points that were not recorded."""
    missing: Counter[str] = field(default_factory=Counter)
    """Number of answers of the class that still wait for points, by reader; of nobody's under an empty text."""


def record(root: Path, unit_name: str, sheets: Iterable[Path]) -> Outcome:
    """Record the points and comments from filled sheets, whose order does not matter.

    Points that somebody else gave are not replaced. If two readers give an answer different points, neither are
    recorded. Raises BadTable, NoGrades, UnknownUnit and CourseProblem; then nothing is recorded.
    """
    rows = [row for sheet in sheets for row in _filled_rows(sheet)]
    outcome = Outcome()
    unit = course.unit(unit_name, root)
    with _opened(root, unit) as (gradebook, answers):
        by_code = {(answer.question, _code(entry)): answer for answer in answers for entry in answer.entries.values()}
        filled: dict[tuple[str, str], list[tuple[str, float, str]]] = defaultdict(list)
        for sheet, row in rows:
            answer = by_code.get((row["question"], row["key"].partition("-")[0]))
            problem = _problem(row, answer, unit)
            if answer is None or problem:
                outcome.not_recorded.append(f"{sheet}: {row['question']} of {row['student']}: {problem}")
            else:
                filled[answer.question, answer.code].append((row["reader"], _points(row), row["comment"]))
        for place, given in sorted(filled.items()):
            _record(by_code[place], sorted(set(given)), outcome)
        outcome.missing.update(answer.reader for answer in answers if answer.is_waiting)
        gradebook.commit()
    return outcome


def _record(answer: Answer, given: Sequence[tuple[str, float, str]], outcome: Outcome) -> None:
    """Record the points for an answer. given: reader, points and comment from each sheet."""
    readers, (points, *others) = {one[0] for one in given}, sorted({one[1] for one in given})
    said = " and ".join(f"{reader} gives {number(its)}" for reader, its, _ in given)
    if others:
        outcome.not_recorded.append(f"{answer}: marked twice and differently: {said}. Neither was recorded.")
        return
    for student, entry in answer.entries.items():
        before, reading = entry.manual_score(answer.question), entry.readings().get(answer.question)
        author = reading.reader if reading and reading.points == before else "a person in formgrader"
        if before not in (None, points) and author not in readers:
            outcome.not_recorded.append(
                f"{answer}: {student} has {number(before or 0.0)} points from {author}, which are kept; {said}. To "
                "change them, use formgrader."
            )
            return
    comment = "\n\n".join(filter(None, dict.fromkeys(one[2] for one in given)))
    changed = [entry for entry in answer.entries.values() if entry.grade_by_hand(answer.question, points, comment)]
    for entry in changed:
        entry.put_reading(answer.question, Reading(given[0][0], points))
    outcome.recorded += bool(changed)
    outcome.unchanged += not changed


def _filled_rows(sheet: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield the rows of a sheet that have points or a comment. Raises BadTable."""
    for row in read_csv(sheet):
        if missing := [name for name in _COLUMNS if name not in row]:
            raise BadTable(f"{sheet} is not a reader's sheet: it has no column {missing[0]}. Nothing was recorded.")
        if row["points"] or row["comment"]:
            yield sheet, row


def _problem(row: Mapping[str, str], answer: Answer | None, unit: course.Unit) -> str:
    """Return why a row's points cannot be recorded; empty if they can."""
    if answer is None:
        return "the gradebook has no answer with this key."
    if row["key"] != answer.key:
        return "the student has changed the answer since the sheet was written. Share it out again."
    if not row["reader"]:
        return "the column reader is empty."
    if not row["points"]:
        return "there is a comment, but no points."
    most = unit.points[answer.question]
    if not 0 <= _points(row) <= most:  # also if it is no number
        return f"`{row['points']}` is not a number of points from 0 to {number(most)}."
    return ""


def _points(row: Mapping[str, str]) -> float:
    try:
        return float(row["points"].replace(",", "."))
    except ValueError:
        return math.nan


@contextmanager
def _opened(root: Path, unit: course.Unit) -> Iterator[tuple[ClassGradebook, list[Answer]]]:
    """Lock the course and open its gradebook, with the unit's answers in the order of questions and codes."""
    directory = course_directory(root)
    questions = [name for name in unit.points if not name.startswith(CHECK_PREFIX)]
    with course_lock(root), explained_errors(root):
        (grades,) = of_units(root, [unit.name])
        with ClassGradebook(directory, unit.name) as gradebook:
            files: dict[str, dict[str, Entry]] = defaultdict(dict)
            for student, grade in grades.grades.items():
                entry = gradebook.entry(student)
                assert entry is not None
                files[grade.submission or student][student] = entry
            answers = [
                Answer(question, _code(next(iter(entries.values()))), text, entries)
                for entries in files.values()
                for question, text in _texts(Autograded(directory, unit.name), next(iter(entries)), questions)
            ]
            yield gradebook, sorted(answers, key=lambda answer: (questions.index(answer.question), answer.code))


def _texts(autograded: Autograded, student: str, questions: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each written question with the text of a student's answer cell."""
    for cell in autograded.notebook(student).cells if questions else ():
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in questions:
            yield name, cell.source


def _code(entry: Entry) -> str:
    """Return the code of a student's file: the beginning of its random id in the gradebook."""
    return f"a{entry.id[:12]}"


def _questions(unit: course.Unit, root: Path) -> str:
    """Return the unit's written questions with the model answers, as markdown."""
    cells = released_cells(unit.name, root)
    parts = [f"# {unit.title}: written questions"]
    for position, cell in enumerate(cells):
        if cell.grade_id in unit.model_answers and position:
            points = f"`{cell.grade_id}`, {number(unit.points[cell.grade_id])} points"
            parts += [f"## {points}", cells[position - 1].text, "### Model answer", unit.model_answers[cell.grade_id]]
    return "\n\n".join(parts) + "\n"
