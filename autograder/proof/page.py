"""The matrix as a page of the documentation."""

from collections.abc import Sequence
from dataclasses import astuple

from .matrix import COLUMNS, Figures, Outcome, by_exercise, by_kind, figures

_TEXT = """# The proof, in figures

Written by `autograder matrix --write`, and kept up to date by a test. The hidden graders mark every misconception and
every right answer that the kit knows. *Caught*: the mistake fails the grader that it must fail, and loses points.
*Told*: it fails that grader, which weighs nothing. *Named*: the student reads the mistake's own sentence (or which
library must not be called). *Wrong name*: the student reads another mistake's sentence. *Refused*: a right answer that
loses points.

## By exercise

{exercises}

## By kind of mistake

{kinds}
"""


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole page, in Markdown."""
    exercises = [(f"`{exercise}`", row) for _, exercise, row in by_exercise(outcomes)]
    kinds = [(kind, row) for kind, row in by_kind(outcomes)]
    return _TEXT.format(
        exercises=_table("exercise", [*exercises, ("**all**", figures(outcomes))], COLUMNS),
        kinds=_table("kind", kinds, COLUMNS[:5]),
    )


def _table(of: str, rows: Sequence[tuple[str, Figures]], columns: Sequence[str]) -> str:
    lines = [f"| {of} | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(map(str, astuple(row)[: len(columns)]))} |" for name, row in rows]
    return "\n".join(lines)
