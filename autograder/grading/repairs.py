"""Report the repairs of answers that no known misconception explains: their lines, and a misconception if one fits.

Example: with `keepdim=True` in the sum of line 12, all tests pass. A student reads "One change makes all tests pass,
which was tried. What to change: an argument that is missing in line 12". The report also contains the changed line, for
instructors.

Repairs are cached in memory within one grading process, by the text of the answer and of all definitions that it uses.
Example: twenty students submit the same wrong code. Only for the first submission is there a search. For the others,
the cached repairs are made in their own notebooks, which are then graded, because other cells may differ. A repair that
does not help there is dropped. If the first search found nothing, no other search is made.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import replace

import msgspec

from .. import catalogue, course
from ..course.notebook import CodeCell
from ..report import Change, Diagnosis, ExerciseReport, FaultLocation, Repair, Report
from ..tracing.definitions import Definition
from .examiner import Examiner
from .messages import readable
from .repair_search import LIKELY, RepairTime, find_repairs
from .unexplained_answer import Repaired, Start, Step, UnexplainedAnswer

_Key = tuple[str, course.Exercise, tuple[tuple[str, str], ...]]
MOST_REPORTED = 3
"""Most repairs of one answer that are reported."""
LONGEST_LINE = 200
_RAISED = re.compile(r"\(line (\d{1,5}) of the cell")
MOST_LINES = 3
"""Most lines that may be reported together as faulty; if there are more, none is reported."""


class RepairCache:
    """Cache of the repairs that one grading process has found."""

    def __init__(self) -> None:
        self._repairs: dict[_Key, list[Repaired]] = {}

    def find_repairs(self, answer: UnexplainedAnswer, suspected: Set[int], time: RepairTime) -> list[Repaired]:
        """Return the repairs of an answer, from the cache or by `repair_search.find_repairs`. Raises SandboxLost."""
        reached = answer.definitions()
        key = answer.unit.name, answer.exercise, tuple((one.name, one.text) for one in reached)
        if (known := self._repairs.get(key)) is not None:
            verified = [moved for one in known if answer.is_repaired(moved := _moved(one, reached))]
            if verified or not known:
                return verified
        found = find_repairs(answer, suspected, time)
        if found or not time.is_short:
            self._repairs.setdefault(key, found)
        return found


def _moved(repair: Repaired, reached: Sequence[Definition]) -> Repaired:
    """Return a repair as edits of the same definitions in another notebook, which may be in other cells and lines.

    reached: the other notebook's definitions.
    """
    places = {one.name: one for one in reached}

    def moved(definition: Definition) -> Definition:
        place = places[definition.name]
        return replace(definition, cell=place.cell, first_line=place.first_line)

    steps = tuple(replace(step, definition=moved(step.definition)) for step in repair.steps)
    return replace(repair, steps=steps)


def add_repairs(
    report: Report,
    unit: course.Unit,
    cells: Sequence[CodeCell],
    examiner: Examiner,
    start: Start,
    unexplained: Sequence[str],
    cache: RepairCache,
    time: RepairTime,
) -> Report:
    """Search for repairs of the exercises named in `unexplained`, and return the report with those found.

    cells: the submission's. start: makes a backend for cells. Raises SandboxLost.
    """

    def with_repairs(exercise: ExerciseReport) -> ExerciseReport:
        if exercise.name not in unexplained:
            return exercise
        answer = UnexplainedAnswer(examiner, unit, unit.exercise(exercise.name), cells, start)
        found = cache.find_repairs(answer, _suspected(exercise), time)
        return _with_findings(exercise, found, unit.name, examiner)

    exercises = [with_repairs(exercise) for exercise in report.exercises]
    return msgspec.structs.replace(report, exercises=exercises, repairs_searched=True)


def _suspected(report: ExerciseReport) -> frozenset[int]:
    """Return the numbers of the lines that the report names as faulty, or in the messages of exceptions."""
    return raised_lines(report) | set(report.whereabouts.lines if report.whereabouts else ())


def raised_lines(report: ExerciseReport) -> frozenset[int]:
    """Return the numbers of the lines that the report's messages on exceptions name."""
    texts = [report.message, *(test.message for test in report.tests)]
    return frozenset(int(line) for text in texts for line in _RAISED.findall(text))


def _with_findings(report: ExerciseReport, found: Sequence[Repaired], unit: str, examiner: Examiner) -> ExerciseReport:
    """Return the report on an exercise with its repairs, their lines, and their misconception if there is one."""
    if not found:
        return report
    repairs = [Repair([change for step in one.steps for change in _changes(step)]) for one in found[:MOST_REPORTED]]
    misconception = _common_misconception(found, unit)
    if misconception and examiner.failed_tests(unit, report.name, misconception.name) != _failed(report):
        misconception = None  # here, the same edit repairs another mistake
    return msgspec.structs.replace(
        report,
        repairs=repairs,
        diagnosis=misconception or report.diagnosis,
        behaviour=None if misconception else report.behaviour,
        whereabouts=_location(report, found) or report.whereabouts,
    )


def _failed(report: ExerciseReport) -> frozenset[str]:
    return frozenset(test.name for test in report.tests if test.outcome == "failed")


def _changes(step: Step) -> list[Change]:
    """Return the lines that an edit changes, as they are before and after it. It may add or remove lines."""
    before, after = step.definition, step.definition.edited(step.edit)
    changes: dict[int, Change] = {}
    added = 0
    for begin, end, new in step.edit.spans:
        first = before.first_line + before.encoded[:begin].count(b"\n")
        old_breaks, new_breaks = before.encoded[begin:end].count(b"\n"), new.count("\n")
        for number in range(max(old_breaks, new_breaks) + 1):
            line = first + number
            old_line = _quoted(before, line) if number <= old_breaks else ""
            new_line = _quoted(after, line + added) if number <= new_breaks else ""
            if old_line != new_line:
                changes[line] = Change(before.cell, line, step.edit.subject, old_line, new_line)
        added += new_breaks - old_breaks
    return list(changes.values())


def _quoted(definition: Definition, line: int) -> str:
    """Return a line of a definition's code, made `readable` and truncated for the report."""
    return readable(definition.line(line)[:LONGEST_LINE])


def _common_misconception(found: Sequence[Repaired], unit: str) -> Diagnosis | None:
    """Return the misconception whose inverse repairs the answer; None if likely repairs disagree on it or on lines."""
    likely = [one for one in found if one.rank <= LIKELY]
    known = catalogue.misconceptions(unit)
    named = [one for one in likely if len(one.steps) == 1 and one.steps[0].edit.misconceptions]
    sentences = {known[name].sentence: name for one in named for name in sorted(one.steps[0].edit.misconceptions)}
    if len(sentences) != 1 or len({tuple(_lines(one)) for one in likely}) != 1:
        return None
    ((sentence, name),) = sentences.items()
    return Diagnosis(name, sentence)


def _lines(one: Repaired) -> list[tuple[str, int]]:
    return [(step.definition.cell, line) for step in one.steps for line in step.lines]


def _location(report: ExerciseReport, found: Sequence[Repaired]) -> FaultLocation | None:
    """Return the lines that the likeliest repairs change, with a message; None if too many, or in several cells."""
    best = min(len(one.steps) for one in found)
    likely = [one for one in found if len(one.steps) == best][:MOST_REPORTED]
    places = {tuple(_lines(one)): one for one in reversed(likely)}
    lines = sorted({line for place in places for _, line in place})
    if len({cell for place in places for cell, _ in place}) != 1 or len(lines) > MOST_LINES:
        return None
    ways = [_in_words(places[place]) for place in sorted(places)]
    changes = "One change makes" if best == 1 else "Two changes make"
    sentence = f"{changes} all tests pass, which was tried. What to change: {', or '.join(ways)}."
    before = report.whereabouts
    if before is not None and set(before.lines) <= set(lines):
        return msgspec.structs.replace(before, told=f"{before.told}\n{sentence}")
    texts = {line: _quoted(step.definition, line) for one in likely for step in one.steps for line in step.lines}
    quoted = [f"  line {line}: {texts[line].strip()}" for line in lines if texts[line].strip()]
    return FaultLocation(lines, "\n".join([sentence, *quoted]))


def _in_words(one: Repaired) -> str:
    parts = []
    for step in one.steps:
        lines = step.lines
        numbers = " and ".join(map(str, lines))
        parts.append(f"{step.edit.subject} in line{'s' if len(lines) > 1 else ''} {numbers}")
    return ", and ".join(parts)
