"""Collect a unit's known answers: solutions, misconceptions and alternative solutions.

A misconception is an edit of the solution, in `misconceptions/<unit>/<exercise>.yaml` (see `misconception_file`):

    exercises: scaled_softmax
    value, caught by test_divided_by_the_root_of_d_k:
      divided_by_d_k:
        says: "The scores are divided by d_k; divide by its square root, so that their variance stays near 1."
        edit: d_k**0.5 -> d_k

Alternative solutions are functions and classes in `right_answers/<unit>/<exercise>.py`.
"""

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from ..course import content
from .candidate import Candidate
from .edit import EditError, strip_annotations
from .misconception_file import SOLUTION, read_misconceptions

T = TypeVar("T")

FORBIDDEN = "forbidden"
"""Stands for the hidden test of a misconception that only the rule against library calls detects."""

_ENTRY = "__catalogue_entry__"


def right_answer(exercise: str) -> Callable[[T], T]:
    """Mark an alternative solution of an exercise. Its docstring names the style."""

    def mark(answer: T) -> T:
        setattr(answer, _ENTRY, exercise)
        return answer

    return mark


def solutions(unit: str) -> dict[str, Candidate]:
    """Return the unit's solutions by exercise."""
    return {
        name: Candidate(name, name, "the solution", answer)
        for name, answer in content.solutions(unit).items()
        if getattr(answer, "__module__", None) == f"{content.SOLUTIONS}.{unit}"
    }


@cache
def used_by(unit: str, exercise: str) -> frozenset[str]:
    """Return the other exercises that the solution of this one calls."""
    answers = solutions(unit)
    named = {node.id for node in ast.walk(ast.parse(answers[exercise].source())) if isinstance(node, ast.Name)}
    return frozenset(named & answers.keys() - {exercise})


@cache
def misconceptions(unit: str) -> dict[str, Candidate]:
    """Return the unit's misconceptions by name; raises EditError if one of their files is wrong."""
    found: dict[str, Candidate] = {}
    sentences: dict[tuple[str, str], str] = {}
    for file in sorted((content.place(content.MISCONCEPTIONS) / unit).rglob("*.yaml")):
        for candidate in read_misconceptions(file, unit, lambda exercise, of: editable_text(unit, exercise, of)):
            if candidate.name in found:
                raise EditError(f"{file}: another exercise of this unit has a mistake called `{candidate.name}`.")
            sentence = candidate.exercise, candidate.sentence
            if (other := sentences.setdefault(sentence, candidate.mistake)) != candidate.mistake:
                raise EditError(f"{file}: `{candidate.name}` and `{other}` have the same sentence.")
            found[candidate.name] = candidate
    return found


@cache
def right_answers(unit: str) -> dict[str, Candidate]:
    """Return the unit's alternative solutions by name."""
    found: dict[str, Candidate] = {}
    for module in content.right_answers(unit):
        for name, answer in vars(module).items():
            if _ENTRY not in getattr(answer, "__dict__", {}) or answer.__module__ != module.__name__:
                continue
            style = " ".join((inspect.getdoc(answer) or "").split())
            if not style:
                raise ValueError(f"{module.__name__}: `{name}` needs a docstring, which says what its style is.")
            if name in found:
                raise ValueError(
                    f"{module.__name__}: another exercise of this unit has a right answer called `{name}`."
                )
            found[name] = Candidate(getattr(answer, _ENTRY), name, style, answer)
    return found


@cache
def editable_text(unit: str, exercise: str, of: str) -> str:
    """Return the text that an edit changes: of the solution, or of the alternative solution called `of`."""
    known = solutions(unit).get(exercise) if of == SOLUTION else right_answers(unit).get(of)
    if known is None or known.exercise != exercise:
        raise EditError(f"`{exercise}` has no {'solution' if of == SOLUTION else f'right answer called `{of}`'}")
    return re.sub(rf"\A(class|def) {of}\b", rf"\1 {exercise}", strip_annotations(inspect.getsource(known.answer)))
