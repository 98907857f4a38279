"""The wrong answers of a class, grouped by known mistake, by behaviour, or by the reason why no mistake is known.

A class report shows a student's code without comments and strings, and only if it names nobody.
"""

import ast
import contextlib
import io
import keyword
import re
import statistics
import tokenize
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import PurePosixPath

from ..course.notebook import printable
from ..gradebook.roster import Enrolled
from ..gradebook.tables import rounded
from ..report import Behaviour, Change, ExerciseReport
from .class_report_schema import DIGITS, ChangedLine, Cluster, CodeSample, MistakeFigures, Unexplained
from .pages import verdict

LONGEST = 10_000
"""Maximum number of characters of a cell that is parsed: Python's parser may take long on larger ones."""
_MOST_LINES = 40
_MOST_CHARACTERS = 2_000
_TEXT = "'…'"
"""The form in which a string is shown."""

_LONG = 4
"""Minimum number of letters of a name that is found inside of words too, also when two parts of a name are written
together. A shorter name counts only as a word of its own; a single letter only if it is all of an id or a name."""
_PART = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_KEYWORDS = set(map(str.lower, keyword.kwlist))
"""Python's keywords, which identify nobody, even a student called As or In."""
_PATH = "…/"
"""Text by which grading replaces the folders of a path."""


class NotPython(Exception):
    """The text is not Python, or too long to be parsed."""


def code_sample(source: str, wrong_lines: Collection[int] = ()) -> CodeSample:
    """Return a student's code without comments and texts, truncated to what a person reads. Raises NotPython.

    wrong_lines: lines of `source` at fault, counted from 1.
    """
    if len(source) > LONGEST:
        raise NotPython
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(source)
            lines = _without_texts(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        raise NotPython from None
    return _truncate([line for _, line in lines], [n for n, (old, _) in enumerate(lines, 1) if old in wrong_lines])


def line_sample(line: str) -> str:
    """Return one line of a student's code as `code_sample` shows it; empty if it cannot be read alone as Python."""
    for rest in ("", "\n    pass"):  # the line may begin a block
        with contextlib.suppress(NotPython):
            return code_sample(line.strip() + rest).code.removesuffix("pass").rstrip()
    return ""


def _without_texts(source: str) -> list[tuple[int, str]]:
    """Return the lines of code without comments, with every string as '…', and each with its number in the source.

    Lines in which nothing else is left are left out.
    """
    lines: list[str | None] = list(source.split("\n"))
    spans: list[tuple[tuple[int, int], tuple[int, int], str]] = []
    begun: list[tuple[int, int]] = []
    """Beginnings of the f-strings around a token."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind.endswith("STRING_START"):
            begun.append(token.start)
        elif kind.endswith("STRING_END"):
            start = begun.pop()
            spans += [] if begun else [(start, token.end, _TEXT)]
        elif not begun and kind in ("COMMENT", "STRING"):
            spans.append((token.start, token.end, _TEXT if kind == "STRING" else ""))
    for (first, left), (last, right), text in reversed(spans):
        rest = (lines[last - 1] or "")[right:]
        lines[first - 1] = (lines[first - 1] or "")[:left] + text + rest
        lines[first:last] = [None] * (last - first)
    remaining = [(number, line.rstrip()) for number, line in enumerate(lines, 1) if line is not None]
    return [(number, line) for number, line in remaining if line.strip() not in ("", _TEXT)]


def _truncate(code: list[str], wrong_lines: list[int]) -> CodeSample:
    lines: list[str] = []
    left = _MOST_CHARACTERS
    for line in map(printable, code[:_MOST_LINES]):
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    if not lines:
        raise NotPython
    note = "" if len(lines) == len(code) else "The rest of it is not shown."
    return CodeSample("\n".join(lines), [line for line in wrong_lines if line <= len(lines)], note)


def full_name(student: Enrolled) -> str:
    """Return a student's first and last name, as far as they are known."""
    return " ".join(filter(None, (student.first_name, student.last_name)))


class Names:
    """The ids, names and addresses of a class, and their parts, alone and written together."""

    def __init__(self, students: Iterable[Enrolled], unit_text: str = "") -> None:
        """unit_text: the texts of the unit. A file name that is one of their words identifies nobody."""
        texts = {text for one in students for text in (one.id, full_name(one), (one.email or "").partition("@")[0])}
        names = set(map(_plain, filter(None, texts)))
        parts = [_PART.findall(name) for name in names]
        words = names | {part for group in parts for part in group if len(part) > 1}
        together = {first + second for group in parts for first, second in permutations(group, 2)}
        words -= _KEYWORDS
        self._long = {word for word in words | together if len(word) >= _LONG}
        self._short = words - self._long
        self._unit_text = _plain(unit_text)

    def is_in(self, text: str, file: str = "") -> bool:
        """Return whether a name, in any case, with accents or without, or a path is in a text.

        file: the name of the notebook that the text is from. It counts in this text only: a file called `return`
        would otherwise hide everybody's code.
        """
        plain = _plain(text)
        words = {*_WORD.findall(plain), *_PART.findall(plain)}
        stem = _plain(PurePosixPath(file).stem)
        is_own = stem and stem not in self._unit_text and stem not in _KEYWORDS
        if is_own and (stem in plain if len(stem) >= _LONG else stem in words):
            return True
        return not words.isdisjoint(self._short) or any(word in plain for word in self._long) or _PATH in text


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


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
        """The changes of the likeliest repair."""
        return [change for one in self.report.repairs[:1] for change in one.changes]

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
