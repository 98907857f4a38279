"""The mutation report: grading of every known answer by the hidden tests and by the student check, and its two records.

A misconception is a mutant of the solution; both must detect and diagnose it. A right answer must not lose points.

One record is a page of the documentation. It contains a digest of the course's content that it reports on, so that a
test can find quickly whether the page is outdated.

The other is the golden record, with which every changed verdict shows after a change of the code. It has one line for
each known answer: the exercise, the answer, its points, the outcome of each hidden test as a letter, the diagnosis, and
the verdict of the student check, where `?` stands for a hidden test without an example:

    online_softmax old_sum_not_rescaled 1/5 FFFFF.FFFFF.F. old_sum_not_rescaled check 1.25/5 FFFFF.FFFFF.F? diagnosed

Faulty lines are not recorded, because only the sandbox finds them, and the known answers are not run in it.

For one answer in 45, the whole report and the output of the student check are recorded as well, in a second file for
each unit. In this file, `#` replaces numbers with decimals, whose digits may differ between machines.
"""

import contextlib
import hashlib
import importlib.util
import io
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from types import ModuleType
from typing import Any, Literal, TypeVar

import msgspec
import torch

from .. import catalogue, course
from ..course import content
from ..course.cells import filled_in
from ..course.settings import FILE, folder, load
from ..graders.collection import collect
from ..pool.grading_pool import GradingProcess
from ..pool.requests import Known
from ..report import ExerciseReport
from ..student_check.unit_data import EXAMPLES, MISTAKES, STEPS, WRITTEN, data_file, read_unit

T = TypeVar("T")
Way = Literal["in process", "sandboxed"]
"""Ways to grade a known answer: run it in the grading process, or grade a notebook with it like a submission."""
_LETTERS = {"passed": ".", "FAILED": "F", "not tried": "-"}
FOLDER = "tests/golden"
CHECK = " check "
"""The text before the part of a line that is about the student check."""
_ONE_IN = 45
_DECIMALS = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")
_OUTCOME_LETTERS = {"passed": ".", "failed": "F", "withheld": "w", "not_run": "-", "grader_error": "!"}
_GRADING = """# Mutation report

Every known misconception is a mutant of a solution. `autograder matrix --write` grades all of them, and all alternative
solutions, with the hidden tests, and writes this page. A test compares the digest at its end with the present files.

- *Detected*: the misconception fails the hidden test that it must fail, and loses points.
- *Advisory*: it fails that test, which has no weight.
- *Diagnosed*: the student reads the misconception's own message, or which library must not be called.
- *Misdiagnosed*: the student reads the message of another misconception.
- *Alternatives*: alternative solutions. *False positives*: those that lose points.

## By exercise

{exercises}

## By kind of misconception

{kinds}
"""
_CHECK = """
## In the student check

The released check tries the same answers. *Unreported*: the check shows all points and reports no fault. *False
positives*: alternative solutions for which the check shows fewer points.
{not_tried}

{units}

{exercises}

{kinds}
"""
_LINE = "About the content with the digest `{}`."


@dataclass(frozen=True)
class Outcome:
    """The report of grading one known answer."""

    unit: str
    entry: catalogue.Candidate
    report: ExerciseReport

    @property
    def is_detected(self) -> bool:
        """True for a misconception that fails the hidden test that must detect it, and loses points."""
        if self.entry.caught_by == catalogue.FORBIDDEN:
            return self.report.status == "forbidden"
        return self._fails_its_test and self.report.score < self.report.max_score

    @property
    def is_advised(self) -> bool:
        """True for a misconception that fails the hidden test that must detect it, but loses no points by that."""
        return self._fails_its_test and self.report.score == self.report.max_score

    @property
    def _fails_its_test(self) -> bool:
        return any(test.outcome == "failed" and test.name == self.entry.caught_by for test in self.report.tests)

    @property
    def is_diagnosed(self) -> bool:
        """True for a misconception that is reported by name, or by the library that it must not call."""
        if self.entry.caught_by == catalogue.FORBIDDEN:
            return self.is_detected and self.report.diagnosis is None
        return self.report.diagnosis is not None and self.report.diagnosis.names == self.entry.name

    @property
    def is_misdiagnosed(self) -> bool:
        """True if a misconception is reported that the answer does not have."""
        return self.report.diagnosis is not None and not self.is_diagnosed

    @property
    def is_false_positive(self) -> bool:
        """True for a right answer that loses points."""
        return not self.entry.is_misconception and (
            self.report.status != "passed" or self.report.score < self.report.max_score
        )

    @property
    def is_as_expected(self) -> bool:
        """True if a misconception is detected and diagnosed, or if a right answer loses no points."""
        if self.is_false_positive or self.is_misdiagnosed:
            return False
        return not self.entry.is_misconception or ((self.is_detected or self.is_advised) and self.is_diagnosed)


@dataclass(frozen=True)
class CheckVerdict:
    """The output of the student check for one known answer."""

    unit: str
    entry: catalogue.Candidate
    printed: str
    score: float
    points: float

    def outcome(self, statement: str) -> str:
        """Return the outcome of a hidden test's example: `.` passed, `F` failed, `-` not tried, `?` no example.

        statement: the hidden test's.
        """
        lines = self.printed.splitlines()
        return next((letter for mark, letter in _LETTERS.items() if f"{mark}  {statement}" in lines), "?")

    @property
    def has_all_points(self) -> bool:
        """True if the student check reports all points of the exercise."""
        return self.score == self.points

    @property
    def is_diagnosed(self) -> bool:
        """True if the student check prints the misconception's own sentence."""
        return self.entry.sentence in self.printed

    @property
    def is_unreported(self) -> bool:
        """True for a misconception that gets all points, without a diagnosis and without a failed example."""
        return (
            self.entry.is_misconception
            and self.has_all_points
            and not self.is_diagnosed
            and "FAILED" not in self.printed
        )


Columns = Mapping[str, Callable[[T], bool]]
"""The columns of a table by their heading, each with the predicate that holds for the answers it counts."""
COLUMNS: Columns[Outcome] = {
    "misconceptions": lambda one: one.entry.is_misconception,
    "detected": lambda one: one.is_detected,
    "advisory": lambda one: one.is_advised,
    "diagnosed": lambda one: one.entry.is_misconception and one.is_diagnosed,
    "misdiagnosed": lambda one: one.is_misdiagnosed,
    "alternatives": lambda one: not one.entry.is_misconception,
    "false positives": lambda one: one.is_false_positive,
}
OF_MISCONCEPTIONS = 5
"""Number of the first columns that count misconceptions."""
CHECK_COLUMNS: Columns[CheckVerdict] = {
    "misconceptions": lambda one: one.entry.is_misconception,
    "diagnosed": lambda one: one.entry.is_misconception and one.is_diagnosed,
    "unreported": lambda one: one.is_unreported,
    "alternatives": lambda one: not one.entry.is_misconception,
    "false positives": lambda one: not one.entry.is_misconception and not one.has_all_points,
}


def count(answers: Iterable[T], columns: Columns[T]) -> list[int]:
    """Return, for each column, the number of answers for which its predicate holds."""
    known = list(answers)
    return [sum(map(predicate, known)) for predicate in columns.values()]


def count_by(answers: Iterable[T], key: Callable[[T], str], columns: Columns[T]) -> list[tuple[str, list[int]]]:
    """Group answers by a key; return each group's key and its counts, in the order in which the keys first occur."""
    groups: dict[str, list[T]] = {}
    for one in answers:
        groups.setdefault(key(one), []).append(one)
    return [(name, count(group, columns)) for name, group in groups.items()]


def count_by_kind(outcomes: Sequence[Outcome]) -> list[tuple[str, list[int]]]:
    """Return the counts of misconceptions of each kind, in the order of `catalogue.KINDS`."""
    first = dict(list(COLUMNS.items())[:OF_MISCONCEPTIONS])
    return [(kind, count((one for one in outcomes if one.entry.kind == kind), first)) for kind in catalogue.KINDS]


def entries(units: Sequence[str] = (), named: str = "") -> list[tuple[str, catalogue.Candidate]]:
    """Return the known answers, each with its unit, in the order of the exercises; raises UnknownUnit.

    units: names of the units; all if empty. named: text that the name of the answer or its exercise must contain.
    """
    found = []
    for unit in units or course.unit_names():
        known = [*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values()]
        for exercise in course.unit(unit).exercises:
            its = [entry for entry in known if entry.exercise == exercise.name]
            found += [(unit, entry) for entry in its if named in entry.name or named in entry.exercise]
    return found


def outcomes(grading_process: GradingProcess, known: Sequence[tuple[str, catalogue.Candidate]]) -> Iterator[Outcome]:
    """Grade known answers, each with its unit, in the grading process; yield the outcomes in their order."""
    for unit, of_unit in groupby(known, key=lambda one: one[0]):
        its = [entry for _, entry in of_unit]
        for entry, report in zip(its, grading_process.grade_known(unit, list(map(_known, its))), strict=True):
            yield Outcome(unit, entry, report)


def _known(entry: catalogue.Candidate) -> Known:
    return ("misconception" if entry.is_misconception else "right_answer"), entry.name


def outcome(grading_process: GradingProcess, unit: str, entry: catalogue.Candidate, way: Way = "in process") -> Outcome:
    """Grade one known answer. grading_process: the grading process."""
    if way == "in process":
        report = grading_process.grade_candidate(unit, *_known(entry))
    else:
        answers = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
        report = grading_process.grade("typed.ipynb", filled_in(unit, {**answers, entry.exercise: entry.source()}))
    return Outcome(unit, entry, report.exercise(entry.exercise))


@cache
def released_check(unit: str) -> ModuleType:
    """Return the student check of a unit, imported from its release."""
    name = load().check
    spec = importlib.util.spec_from_file_location(name, course.released(unit).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_verdict(unit: str, entry: catalogue.Candidate) -> CheckVerdict:
    """Run the student check on one known answer. The other exercises have their solutions as answers."""
    names: dict[str, Any] = dict(content.solutions(unit))
    names[entry.exercise] = entry.answer
    names["check"] = released_check(unit).check
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        score = float(eval(f"check({entry.exercise!r}, more=True)", names))
    return CheckVerdict(unit, entry, printed.getvalue(), score, course.unit(unit).exercise(entry.exercise).points)


def check_verdicts() -> Iterator[CheckVerdict]:
    """Run the student check on every known answer, in the order of the exercises; yield the verdicts."""
    torch.set_num_threads(1)  # for tensors as small as these, several threads only wait for each other
    for unit, entry in entries():
        yield check_verdict(unit, entry)


def not_tried() -> list[tuple[str, str]]:
    """Return the hidden tests that the student check does not try: for each, the exercise and the statement."""
    found = []
    for unit in course.unit_names():
        exercises = read_unit(course.released(unit).with_name(data_file(unit)))[EXAMPLES]
        found += [
            (name, one["statement"]) for name, of in exercises.items() if name != WRITTEN for one in of["not_tried"]
        ]
    return found


def name_of(answer: catalogue.Candidate) -> tuple[str, str]:
    """Return the exercise and the name of a known answer; `right:` precedes the name of a right answer."""
    return answer.exercise, f"{'' if answer.is_misconception else 'right:'}{answer.name}"


def outcome_line(outcome: Outcome) -> str:
    """Return the part of an answer's line in the golden record that describes its grading."""
    report = outcome.report
    letters = "".join(_OUTCOME_LETTERS[test.outcome] for test in report.tests) or report.status
    diagnosis = report.diagnosis.names.replace(" + ", "+") if report.diagnosis else "-"
    points = f"{report.score:.7g}/{report.max_score:g}"
    return " ".join([*name_of(outcome.entry), points, letters, diagnosis])


def check_part(verdict: CheckVerdict) -> str:
    """Return the part of an answer's line in the golden record that describes the student check."""
    hidden_tests = collect()[verdict.unit][verdict.entry.exercise]
    letters = "".join(verdict.outcome(test.statement) for test in hidden_tests)
    return f"{CHECK}{verdict.score:.7g}/{verdict.points:g} {letters}{' diagnosed' if verdict.is_diagnosed else ''}"


def is_whole(unit: str, answer: catalogue.Candidate) -> bool:
    """Return whether an answer's whole report is recorded; this depends only on the answer's name."""
    return zlib.crc32(" ".join([unit, *name_of(answer)]).encode()) % _ONE_IN == 0


def whole(outcome: Outcome, verdict: CheckVerdict) -> str:
    """Return an answer's whole report and the output of the student check as text, with `#` for decimal numbers."""
    report = msgspec.json.format(msgspec.json.encode(outcome.report)).decode()
    text = "\n".join(line.rstrip() for line in f"{report}\n\n{verdict.printed}".splitlines())
    return f"# {' '.join(name_of(outcome.entry))}\n\n{_DECIMALS.sub('#', text)}\n"


def records(outcomes: Iterable[Outcome], verdicts: Iterable[CheckVerdict]) -> dict[str, str]:
    """Return the text of each file of the golden record, by the file's path in the repository.

    outcomes, verdicts: those of the same known answers, in the same order.
    """
    texts: dict[str, str] = {}
    for outcome, verdict in zip(outcomes, verdicts, strict=True):
        unit = outcome.unit
        path = f"{FOLDER}/{unit}.txt"
        texts[path] = f"{texts.get(path, '')}{outcome_line(outcome)}{check_part(verdict)}\n"
        if is_whole(unit, outcome.entry):
            path = f"{FOLDER}/whole/{unit}.txt"
            texts[path] = f"{texts.get(path, '')}{whole(outcome, verdict)}\n"
    return texts


def page(outcomes: Sequence[Outcome], verdicts: Sequence[CheckVerdict]) -> str:
    """Return the documentation page in Markdown. Its last line has the digest of the catalogue as it is now."""
    return f"{_part_on_grading(outcomes)}{_part_on_check(verdicts)}\n{_LINE.format(digest())}\n"


def digest() -> str:
    """Return one SHA-256 of solutions, hidden tests, known answers, settings and the released data of all units.

    The exercises' texts and the engine are left out, so that a changed word does not require grading thousands of
    answers again.
    """
    digested = hashlib.sha256()
    for name, part in sorted(_digested_parts()):
        digested.update(f"{name} {len(part)}\n".encode() + part)
    return digested.hexdigest()


def digest_in(page: str) -> str:
    """Return the digest that a page contains; empty if it contains none."""
    found = re.search(_LINE.format("([0-9a-f]{64})"), page)
    return found[1] if found else ""


def below_digest(page: str) -> str:
    """Return the part of a page below its digest, which other commands wrote."""
    return re.split(_LINE.format("[0-9a-f]{64}"), page)[-1].lstrip("\n") if digest_in(page) else ""


def _digested_parts() -> Iterator[tuple[str, bytes]]:
    places = map(content.place, (content.SOLUTIONS, *content.OF_EACH_UNIT))
    files = [path for place in places for path in place.rglob("*") if path.suffix in (".py", ".yaml")]
    for path in (*files, folder() / FILE):
        yield str(path.relative_to(folder())), path.read_bytes()
    for unit in course.unit_names():
        released = read_unit(course.released(unit).with_name(data_file(unit)))
        for section in (EXAMPLES, MISTAKES, STEPS):
            yield f"{unit} {section}", json.dumps(released[section]).encode()


def _part_on_grading(outcomes: Sequence[Outcome]) -> str:
    exercises = count_by(outcomes, lambda one: f"`{one.entry.exercise}`", COLUMNS)
    return _GRADING.format(
        exercises=table("exercise", [*exercises, ("**all**", count(outcomes, COLUMNS))], COLUMNS),
        kinds=table("kind", count_by_kind(outcomes), [*COLUMNS][:OF_MISCONCEPTIONS]),
    )


def _part_on_check(verdicts: Sequence[CheckVerdict]) -> str:
    left_out = [f"`{exercise}`: {statement}" for exercise, statement in not_tried()]
    notes = (
        ["The check does not try these, and says so:", *left_out]
        if left_out
        else ["It tries what every hidden test requires."]
    )

    def counted(of: str, key: Callable[[CheckVerdict], str]) -> str:
        return table(of, count_by(verdicts, key, CHECK_COLUMNS), CHECK_COLUMNS)

    return _CHECK.format(
        not_tried="\n".join(notes),
        units=counted("unit", lambda one: f"`{one.unit}`"),
        exercises=counted("exercise", lambda one: f"`{one.entry.exercise}`"),
        kinds=counted("kind", lambda one: str(one.entry.kind or "none")),
    )


def table(of: str, rows: Sequence[tuple[str, Sequence[int]]], columns: Collection[str]) -> str:
    """Return a Markdown table.

    of: heading of the first column, which has the rows' names. columns: headings of the columns of numbers.
    """
    lines = [f"| {of} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(map(str, numbers))} |" for name, numbers in rows]
    return "\n".join(lines)
