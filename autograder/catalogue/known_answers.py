"""Collect a unit's known answers: solutions, misconceptions and alternative solutions.

Alternative solutions are functions and classes in `right_answers/<unit>/<exercise>.py`. A misconception is an edit of
the solution, in `misconceptions/<unit>/<exercise>.yaml`; an exercise may have several such files:

    exercises: {SelfAttention_v1: "", SelfAttention_v2: "Layers"}    # the prefix of the second one's names
    of: InSteps                                                      # the alternative solution that is edited
    value, caught by test_context_vectors:                           # KIND, caught by HIDDEN TEST
      WeightsTransposed:
        says: "The sentence for the student."
        edit: weights @ values -> weights.T @ values

`exercises` may be one name. Without `of`, the solution is edited.
"""

import inspect
import re
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from ..course import content
from .candidate import KINDS, Candidate, Code, Edit, EditError, strip_annotations

SOLUTION = "solution"
LONGEST = 160
"""Most characters in a misconception's sentence for students."""
_CAUGHT_BY = ", caught by "
T = TypeVar("T")
FORBIDDEN = "forbidden"
"""Written instead of a hidden test's name, for a misconception that only the rule against library calls detects."""
_ENTRY = "__catalogue_entry__"


class NotYaml(ValueError):
    """Raised if a YAML file cannot be read; `str()` says why, without the file's name."""


class Variant(msgspec.Struct, forbid_unknown_fields=True):
    """The code of a misconception: either edits or an answer."""

    edit: str | list[str] = []
    """An edit `old -> new`, or several; each `old` occurs once."""
    each: str | list[str] = []
    """The same for an `old` that occurs more than once: every occurrence is changed."""
    answer: str | None = None
    """The whole code, if an edit would be longer."""
    of: str | None = None
    """The alternative solution that is edited, instead of the file's."""


class Misconception(Variant, kw_only=True, forbid_unknown_fields=True):
    """A misconception: its sentence, its code and its variants."""

    says: str
    """The sentence for the student."""
    also: dict[str, Variant] = {}
    """Variants by name: the same misconception made in other code or in another way, which behaves otherwise."""
    whatever_weights: bool = False
    """True if the sentence is also true of classes that differ in their initial weights only: there are many orders in
    which layers can be created."""


class _Loader(yaml.CSafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := {str(key) for key in keys if keys.count(key) > 1}:
            raise NotYaml(f"`{min(twice)}` is there twice")
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """Return the content of a YAML file in which no key occurs twice; raises NotYaml."""
    try:
        return yaml.load(file.read_text(), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as reason:
        raise NotYaml(str(reason)) from None


def read_misconceptions(file: Path, unit: str, base: Callable[[str, str], str]) -> Iterator[Candidate]:
    """Yield the misconceptions of one YAML file; raises EditError, whose message names the faulty one.

    base: returns the source to edit, given the exercise and `solution` or an alternative solution's name.
    """
    try:
        groups: dict[str, Any] = read_yaml(file)
    except NotYaml as reason:
        raise EditError(f"{file}: {reason}.") from None
    usual_base = groups.pop("of", SOLUTION)
    exercises = groups.pop("exercises", None)
    if exercises is None:
        raise EditError(f"{file}: `exercises` must name the exercise that these mistakes belong to.")
    prefixes = {exercises: ""} if isinstance(exercises, str) else exercises

    def code(variant: Variant, exercise: str, name: str) -> Code:
        origin = f"{file}: `{name}`"
        edits = [Edit.parse(one) for one in _list(variant.edit)]
        edits += [Edit.parse(one, everywhere=True) for one in _list(variant.each)]
        if (variant.answer is None) == (not edits):
            raise EditError("give a mistake either edits or an answer")
        if variant.answer is not None:
            return Code(unit, exercise, variant.answer, origin=origin)
        of = variant.of or usual_base
        text = base(exercise, of if of == SOLUTION else prefixes[exercise] + of)
        return Code(unit, exercise, text, tuple(edits), origin)

    for group, written in groups.items():
        kind, _, caught_by = group.partition(_CAUGHT_BY)
        if not caught_by:
            raise EditError(f"{file}: call a group `KIND{_CAUGHT_BY}GRADER`, not `{group}`.")
        if kind not in KINDS:
            raise EditError(f"{file}: `{kind}` is not a kind of mistake; the kinds are {', '.join(KINDS)}.")
        for name, fields in written.items():
            try:
                one = msgspec.convert(fields, Misconception)
                if len(one.says) > LONGEST:
                    raise EditError(f"its sentence has {len(one.says)} characters, more than {LONGEST}")
                for exercise, prefix in prefixes.items():
                    for variant_name, variant in {name: one, **one.also}.items():
                        yield Candidate(
                            exercise,
                            prefix + variant_name,
                            one.says,
                            code(variant, exercise, variant_name),
                            kind,
                            caught_by,
                            prefix + name,
                            one.whatever_weights,
                        )
            except (msgspec.ValidationError, EditError) as reason:
                raise EditError(f"{file}: `{name}`: {reason}.") from None


def _list(written: str | list[str]) -> list[str]:
    return [written] if isinstance(written, str) else written


def right_answer(exercise: str) -> Callable[[T], T]:
    """Return a decorator that registers a function or class as an alternative solution of an exercise.

    The docstring of the function or class describes its style.
    """

    def mark(answer: T) -> T:
        setattr(answer, _ENTRY, exercise)
        return answer

    return mark


def solutions(unit: str) -> dict[str, Candidate]:
    """Return the unit's solutions by the exercise's name."""
    return {
        name: Candidate(name, name, "the solution", answer)
        for name, answer in content.solutions(unit).items()
        if getattr(answer, "__module__", None) == f"{content.SOLUTIONS}.{unit}"
    }


@cache
def misconceptions(unit: str) -> dict[str, Candidate]:
    """Return the unit's misconceptions by name; raises EditError if one of their files is invalid."""
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
                raise ValueError(f"{module.__name__}: `{name}` needs a docstring that names the style of the answer.")
            if name in found:
                raise ValueError(
                    f"{module.__name__}: another exercise of this unit has a right answer called `{name}`."
                )
            found[name] = Candidate(getattr(answer, _ENTRY), name, style, answer)
    return found


@cache
def editable_text(unit: str, exercise: str, of: str) -> str:
    """Return the source that a misconception edits, with the exercise's name; raises EditError if it does not exist.

    of: `solution`, or the name of an alternative solution.
    """
    known = solutions(unit).get(exercise) if of == SOLUTION else right_answers(unit).get(of)
    if known is None or known.exercise != exercise:
        raise EditError(f"`{exercise}` has no {'solution' if of == SOLUTION else f'right answer called `{of}`'}")
    return re.sub(rf"\A(class|def) {of}\b", rf"\1 {exercise}", strip_annotations(inspect.getsource(known.answer)))
