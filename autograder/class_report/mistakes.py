"""What went wrong in a class: known mistakes by how common they are, and answers that do the same without a name."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ..gradebook.rounding import rounded
from ..report import NOT_WRITTEN, USES_WRONG, Behaviour, ExerciseReport, Mistake, Report
from .item_analysis import DIGITS
from .shape import Cluster, MistakeFigures, Specimen, Unexplained
from .specimen import LONGEST, NotPython, specimen

_MOST_TRIED = 10
"""Answers of which one is taken as a specimen."""
_MOST_SEEN = 3
_LONGEST_SEEN = 300  # characters
_NONE_SHOWN = "No code is shown: it cannot be read as Python, or is too long, or names somebody."

_WHY = {
    "missing": "not defined",
    "error": "its cell failed",
    "timeout": "timed out",
    "crashed": "crashed",
    "forbidden": "calls what is forbidden",
    "skipped": "not run to its end",
    "grader_error": "our grader failed",
}


@dataclass(frozen=True)
class Marked:
    """One student's answer to one exercise that has not passed."""

    student: str
    report: ExerciseReport
    code: str
    """The cell with the answer; empty if there is none."""


Fit = Callable[[Marked, str], bool]
"""Whether a text that comes from the student of this answer may be shown."""


@dataclass(frozen=True)
class WentWrong:
    """What went wrong in a class."""

    mistakes: list[MistakeFigures]
    clusters: list[Cluster]
    unexplained: list[Unexplained]


def answers(reports: Mapping[str, Report], codes: Mapping[str, Mapping[str, str]]) -> list[Marked]:
    """Everyone's answers that have not passed. codes: by student and exercise."""
    return [
        Marked(student, exercise, codes.get(student, {}).get(exercise.name, ""))
        for student, report in reports.items()
        for exercise in report.exercises
        if exercise.status != "passed"
    ]


def statements(report: Report) -> dict[tuple[str, str], str]:
    """What a test asks, by exercise and test, of those that this one has passed: then its message says no more."""
    return {
        (exercise.name, test.name): test.message
        for exercise in report.exercises
        for test in exercise.tests
        if test.outcome == "passed"
    }


def named(report: ExerciseReport) -> list[Mistake]:
    """The known mistakes that an answer makes: none, one or two."""
    found = report.diagnosis
    return [] if found is None else [found, *([found.beside] if found.beside else [])]


def what_went_wrong(
    wrong: Sequence[Marked],
    handed_in: int,
    sections: Mapping[str, str],
    asked: Mapping[tuple[str, str], str],
    *,
    fit: Fit,
    is_anonymous: bool,
) -> WentWrong:
    """handed_in: how many students handed in. sections: the headings by exercise, in the exercises' order.

    asked: the `statements`, which no student has a part in.
    """
    places = {exercise: place for place, exercise in enumerate(sections)}

    def who(group: Iterable[Marked]) -> list[str]:
        return [] if is_anonymous else sorted({one.student for one in group})

    mistakes = [
        MistakeFigures(
            exercise,
            sections.get(exercise, ""),
            mistake.name,
            mistake.sentence,
            len(group),
            rounded(len(group) / handed_in, DIGITS),
            who(group),
            _specimen(sorted(group, key=lambda one: len(named(one.report))), fit),
        )
        for (exercise, mistake), group in _by_mistake(wrong).items()
    ]
    without_name, rest = [], defaultdict(list)
    for one in wrong:
        if one.report.status == "failed" and not named(one.report) and not _why_unexplained(one.report):
            without_name.append(one)
        elif not named(one.report):
            rest[one.report.name, _why_unexplained(one.report) or _WHY[one.report.status]].append(one)
    clusters = [
        Cluster(
            group[0].report.name,
            sections.get(group[0].report.name, ""),
            len(group),
            who(group),
            _step(group),
            _seen(group, asked, fit),
            _specimen(group, fit),
        )
        for group in _alike(without_name)
    ]
    unexplained = [Unexplained(exercise, why, len(group), who(group)) for (exercise, why), group in rest.items()]
    return WentWrong(
        sorted(mistakes, key=lambda one: (-one.count, places.get(one.exercise, 0), one.name)),
        sorted(clusters, key=lambda one: (-one.count, places.get(one.exercise, 0), one.specimen.code)),
        sorted(unexplained, key=lambda one: (places.get(one.exercise, 0), -one.count, one.why)),
    )


def _by_mistake(wrong: Iterable[Marked]) -> dict[tuple[str, Mistake], list[Marked]]:
    groups: dict[tuple[str, Mistake], list[Marked]] = defaultdict(list)
    for one in wrong:
        for mistake in named(one.report):
            groups[one.report.name, Mistake(mistake.name, mistake.sentence)].append(one)
    return groups


def _why_unexplained(report: ExerciseReport) -> str:
    """Why no mistake was looked for in an answer that failed; empty if one was."""
    if report.message.startswith(NOT_WRITTEN):
        return "not written"
    return "calls another exercise that is wrong" if report.message.startswith(USES_WRONG) else ""


def _alike(wrong: Iterable[Marked]) -> Iterator[list[Marked]]:
    """The answers, those together that do the same."""
    groups: dict[object, list[list[Marked]]] = defaultdict(list)
    for one in sorted(wrong, key=lambda one: _behaviour(one).sums):
        its = _behaviour(one)
        near = groups[one.report.name, its.exact]
        group = next((group for group in near if its.is_like(_behaviour(group[0]))), None)
        if group is None:
            near.append([one])
        else:
            group.append(one)
    return (group for near in groups.values() for group in near)


def _behaviour(one: Marked) -> Behaviour:
    """What it does; where the report has not kept that, which graders it fails."""
    failed = ",".join(test.name for test in one.report.tests if test.outcome == "failed")
    return one.report.behaviour or Behaviour(f"fails {failed}", [])


def _step(group: Iterable[Marked]) -> str:
    """Where they go wrong; of answers that do the same the way may differ, so the most common one."""
    steps = [one.report.whereabouts.step for one in group if one.report.whereabouts]
    known = [step for step in steps if step]
    return max(sorted(set(known)), key=known.count) if known else ""


def _seen(group: Sequence[Marked], asked: Mapping[tuple[str, str], str], fit: Fit) -> list[str]:
    """What is said of one answer: of all its tests, if that is the same, then of each that failed."""
    one = min(group, key=_text)
    report = one.report
    said = [report.message] if report.message and fit(one, report.message) else []
    for test in report.tests:
        if test.outcome == "failed":
            statement = asked.get((report.name, test.name), "")
            said.append(test.message if fit(one, test.message.removeprefix(statement)) else statement)
    return [message[:_LONGEST_SEEN] for message in said if message][:_MOST_SEEN]


def _specimen(group: Sequence[Marked], fit: Fit) -> Specimen:
    """The shortest code that can be shown. It does not depend on whose it is."""
    fewest = len(named(group[0].report))
    alone = [one for one in group if len(named(one.report)) == fewest and 0 < len(one.code) <= LONGEST]
    for one in islice(sorted(alone, key=_text), _MOST_TRIED):
        lines = one.report.whereabouts.lines if one.report.whereabouts else []
        try:
            shown = specimen(one.code, lines)
        except NotPython:
            continue
        if fit(one, shown.code):
            return shown
    return Specimen("", [], _NONE_SHOWN)


def _text(one: Marked) -> tuple[int, str]:
    return len(one.code), one.code
