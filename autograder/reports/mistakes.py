"""The wrong answers of a class, grouped by known mistake, by behaviour, or by the reason why no mistake is known."""

import contextlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..gradebook.grades import rounded
from ..report import Behaviour, Change, ExerciseReport
from .class_report_schema import DIGITS, ChangedLine, Cluster, CodeSample, MistakeFigures, Unexplained
from .code_sample import NotPython, code_sample, line_sample
from .graded_notebook import verdict

_MOST_TRIED = 10
"""Maximum number of answers tried as a group's code sample."""
_MOST_SEEN = 3
_LONGEST_SEEN = 300  # characters
_NONE_SHOWN = "No code is shown: it cannot be read as Python, or is too long, or names somebody."


@dataclass(frozen=True)
class WrongAnswer:
    """A student's answer to one exercise that did not pass."""

    student: str
    notebook: str
    """File name of the notebook."""
    report: ExerciseReport
    """The report on the exercise, with only those tests that failed."""
    code: str
    """The cell with the answer; empty if there is none."""

    @property
    def behaviour(self) -> Behaviour:
        """Summary of the answer's behaviour; the failed tests' names if the report has no summary."""
        return self.report.behaviour or Behaviour(f"fails {','.join(test.name for test in self.report.tests)}", [])

    @property
    def changes(self) -> list[Change]:
        """The changes of the likeliest repair with which all tests pass."""
        return [change for one in self.report.repairs[:1] if not one.still_failed for change in one.changes]

    @property
    def repair(self) -> tuple[tuple[str, str, str], ...]:
        """The likeliest repair: kind, line before and line after of each change, without spaces; empty without one."""
        return tuple((one.subject, "".join(one.before.split()), "".join(one.after.split())) for one in self.changes)


@dataclass(frozen=True)
class WrongAnswers:
    """The wrong answers of a class."""

    answers: Sequence[WrongAnswer]
    headings: Mapping[str, str]
    """Headings of the sections by exercise, in the exercises' order."""
    statements: Mapping[tuple[str, str], str]
    """Statements of hidden tests by exercise and test; they contain nothing that a student wrote."""
    can_show: Callable[[WrongAnswer, str], bool]
    """Returns whether a text that comes from this answer's student may be shown."""

    def mistakes(self, submissions: int) -> list[MistakeFigures]:
        """Return the known mistakes, most points lost first. submissions: the number of all submissions."""
        groups: dict[tuple[str, str, str], list[WrongAnswer]] = defaultdict(list)
        for answer in self.answers:
            for mistake in answer.report.mistakes:
                groups[answer.report.name, mistake.name, mistake.sentence].append(answer)
        mistakes = []
        for (exercise, name, sentence), group in groups.items():
            heading, share = self.headings.get(exercise, ""), rounded(len(group) / submissions, DIGITS)
            about = (exercise, heading, name, sentence, len(group), share)
            mistakes.append(MistakeFigures(*about, _students(group), self._sample(group), _lost(group)))
        return sorted(mistakes, key=lambda one: (-one.lost, self._position(one.exercise), one.name))

    def clusters(self) -> list[Cluster]:
        """Return the answers that no known mistake explains, in groups, most points lost first.

        The answers of a group have the same repair; those without a repair form groups that behave alike.
        """
        groups: list[list[WrongAnswer]] = []
        unnamed = [answer for answer in self.answers if not answer.report.mistakes and not _reason(answer.report)]
        repaired: dict[object, list[WrongAnswer]] = defaultdict(list)
        for answer in unnamed:
            if answer.repair:
                repaired[answer.report.name, answer.repair].append(answer)
        others = [answer for answer in unnamed if not answer.repair]
        for answer in sorted(others, key=lambda one: one.behaviour.sums):
            same = (group for group in groups if group[0].report.name == answer.report.name)
            alike = next((group for group in same if answer.behaviour.is_like(group[0].behaviour)), None)
            if alike is None:
                groups.append([answer])
            else:
                alike.append(answer)
        clusters = []
        for group in [*repaired.values(), *groups]:
            exercise = group[0].report.name
            about = (exercise, self.headings.get(exercise, ""), len(group), _students(group), _step(group))
            shown = (self._messages(group), self._sample(group), self._repair(group))
            clusters.append(Cluster(*about, *shown, _lost(group)))
        return sorted(clusters, key=lambda one: (-one.lost, self._position(one.exercise), one.specimen.code))

    def unexplained(self) -> list[Unexplained]:
        """Return the answers in which no known mistake could be searched for, by exercise and reason."""
        groups: dict[tuple[str, str], list[WrongAnswer]] = defaultdict(list)
        for answer in self.answers:
            if not answer.report.mistakes and (reason := _reason(answer.report)):
                groups[answer.report.name, reason].append(answer)
        unexplained = [Unexplained(*key, len(group), _students(group)) for key, group in groups.items()]
        return sorted(unexplained, key=lambda one: (self._position(one.exercise), -one.count, one.why))

    def _position(self, exercise: str) -> int:
        return [*self.headings, exercise].index(exercise)

    def _messages(self, group: Sequence[WrongAnswer]) -> list[str]:
        """Return the messages on the shortest answer: the exercise's own, then those of its failed tests."""
        answer = min(group, key=_length)
        report = answer.report
        messages = [report.message] if self.can_show(answer, report.message) else []
        for test in report.tests:
            statement = self.statements.get((report.name, test.name), "")
            is_shown = self.can_show(answer, test.message.removeprefix(statement))
            messages.append(test.message if is_shown else statement)
        return [message[:_LONGEST_SEEN] for message in messages if message][:_MOST_SEEN]

    def _repair(self, group: Sequence[WrongAnswer]) -> list[ChangedLine]:
        """Return the repair of the shortest answer."""
        answer = min(group, key=_length)
        lines = []
        for change in answer.changes:
            before, after = line_sample(change.before), line_sample(change.after)
            is_shown = before != after and self.can_show(answer, f"{before}\n{after}")
            lines.append(ChangedLine(change.subject, *(before, after) if is_shown else ("", "")))
        return lines

    def _sample(self, group: Sequence[WrongAnswer]) -> CodeSample:
        """Return the shortest code that can be shown, of the answers with the fewest mistakes."""
        fewest = min(len(answer.report.mistakes) for answer in group)
        candidates = [answer for answer in group if answer.code and len(answer.report.mistakes) == fewest]
        for answer in sorted(candidates, key=_length)[:_MOST_TRIED]:
            lines = answer.report.whereabouts.lines if answer.report.whereabouts else []
            with contextlib.suppress(NotPython):
                sample = code_sample(answer.code, lines)
                if self.can_show(answer, sample.code):
                    return sample
        return CodeSample("", [], _NONE_SHOWN)


def _reason(report: ExerciseReport) -> str:
    """Return why no mistake was searched for in an answer; empty if one was."""
    reason = verdict(report)
    return "" if reason in ("right", "wrong") else reason


def _lost(group: Iterable[WrongAnswer]) -> float:
    """Return the points that all answers together lost."""
    return rounded(sum(answer.report.max_score - answer.report.score for answer in group), DIGITS)


def _students(group: Iterable[WrongAnswer]) -> list[str]:
    return sorted({answer.student for answer in group})


def _step(group: Iterable[WrongAnswer]) -> str:
    """Return the most common wrong step: answers that behave alike may take different steps."""
    locations = [answer.report.whereabouts for answer in group]
    steps = sorted(location.step for location in locations if location and location.step)
    return statistics.mode(steps) if steps else ""


def _length(answer: WrongAnswer) -> tuple[int, str]:
    return len(answer.code), answer.code
