"""The matrix as a page of the documentation."""

from collections.abc import Sequence
from dataclasses import astuple

from .content_digest import line
from .first_word import WORD_COLUMNS, Word, WordFigures, not_tried, words_by
from .matrix import COLUMNS, Figures, Outcome, by_exercise, by_kind, figures

_TEXT = """# The proof, in figures

Written by `autograder matrix --write`; the digest at the end tells whether it is about what is there now. The hidden
graders mark every misconception and every right answer that the kit knows. *Caught*: the mistake fails the grader that
it must fail, and loses points. *Told*: it fails that grader, which weighs nothing. *Named*: the student reads the
mistake's own sentence (or which library must not be called). *Wrong name*: the student reads another mistake's
sentence. *Refused*: a right answer that loses points.

## By exercise

{exercises}

## By kind of mistake

{kinds}
"""

_OF_THE_CHECK = """
## The check that students get

The same answers, tried by the released check. *Named*: the student reads the mistake's own sentence there too.
*Silent*: all points, and not a word of what is wrong. *Refused*: a right answer that is told to lose points.
{not_tried}

{checked_units}

{checked_exercises}

{checked_kinds}
"""


def page(outcomes: Sequence[Outcome], words: Sequence[Word]) -> str:
    """The whole page, in Markdown."""
    return f"{part_of_marking(outcomes)}{part_of_the_check(words)}\n{line()}\n"


def part_of_marking(outcomes: Sequence[Outcome]) -> str:
    """What the page says of the graders; it begins so."""
    exercises = [(f"`{exercise}`", row) for _, exercise, row in by_exercise(outcomes)]
    kinds = [(kind, row) for kind, row in by_kind(outcomes)]
    return _TEXT.format(
        exercises=_table("exercise", [*exercises, ("**all**", figures(outcomes))], COLUMNS),
        kinds=_table("kind", kinds, COLUMNS[:5]),
    )


def part_of_the_check(words: Sequence[Word]) -> str:
    """What the page says of the check that students get; it comes after that."""
    return _OF_THE_CHECK.format(
        not_tried=_not_tried(),
        checked_units=_table("unit", words_by(words, lambda one: f"`{one.unit}`"), WORD_COLUMNS),
        checked_exercises=_table("exercise", words_by(words, lambda one: f"`{one.entry.exercise}`"), WORD_COLUMNS),
        checked_kinds=_table("kind", words_by(words, lambda one: str(one.entry.kind or "none")), WORD_COLUMNS),
    )


def _not_tried() -> str:
    """What the check says that it does not try."""
    left_out = [f"`{exercise}`: {statement}" for exercise, statement in not_tried()]
    return "\n".join(["Not tried there, and said so:", *left_out]) if left_out else "It tries what every grader asks."


def _table(of: str, rows: Sequence[tuple[str, Figures | WordFigures]], columns: Sequence[str]) -> str:
    lines = [f"| {of} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(map(str, astuple(row)[: len(columns)]))} |" for name, row in rows]
    return "\n".join(lines)
