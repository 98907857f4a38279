"""The files of known mistakes: YAML, one or more for an exercise.

    exercises: {SelfAttention_v1: "", SelfAttention_v2: "Layers"}    # what the second's names begin with
    of: InSteps                                                      # the right answer that is edited
    value, caught by test_context_vectors:                           # KIND, caught by GRADER
      WeightsTransposed:
        says: "What the student reads."
        edit: weights @ values -> weights.T @ values

`exercises` may be one name. Without `of` it is the solution that is edited; a mistake may have an `of` of its own.
`edit` may be a list; `each` in its place changes what is there more than once, wherever it is. Where an edit would be
longer than the whole code, that stands as `answer`. The same mistake may show something else where it is made in
another code, or in another way: such forms of it stand below its `also`, with names of their own and no sentence.
`whatever_weights: true` says that the sentence is true of each class that shows the same but for the weights that it
begins with: there are many orders in which layers can be created.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from .candidate import KINDS, Candidate, Code
from .edit import Edit, EditError
from .strict_yaml import NotYaml, read_yaml

SOLUTION = "solution"
LONGEST = 160
"""Characters in a sentence: students read more than one."""
_CAUGHT_BY = ", caught by "


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    edit: str | list[str] = []
    each: str | list[str] = []
    answer: str | None = None
    of: str | None = None


class _Mistake(_Form, kw_only=True, forbid_unknown_fields=True):
    says: str
    also: dict[str, _Form] = {}
    whatever_weights: bool = False


def mistakes_in(file: Path, unit: str, base: Callable[[str, str], str]) -> Iterator[Candidate]:
    """The mistakes of one file; raises EditError, which says what is wrong with which.

    base: the text of an exercise's answer (its solution, or the right answer of that name) as a student would type it.
    """
    content = _read(file)
    of = content.pop("of", SOLUTION)
    exercises = content.pop("exercises", None)
    if exercises is None:
        raise EditError(f"{file}: `exercises` should say which exercise these are mistakes in.")
    prefixes = {exercises: ""} if isinstance(exercises, str) else exercises

    def code(mistake: _Form, exercise: str, origin: str) -> Code:
        edits = [Edit.parse(one) for one in _each(mistake.edit)]
        edits += [Edit.parse(one, everywhere=True) for one in _each(mistake.each)]
        if (mistake.answer is None) == (not edits):
            raise EditError("a mistake has either edits or an answer")
        if mistake.answer is not None:
            return Code(unit, exercise, mistake.answer, origin=origin)
        name = mistake.of or of
        if name != SOLUTION:
            name = prefixes[exercise] + name
        return Code(unit, exercise, base(exercise, name), tuple(edits), origin)

    for group, mistakes in content.items():
        kind, _, caught_by = group.partition(_CAUGHT_BY)
        if not caught_by:
            raise EditError(f"{file}: a group is called `KIND{_CAUGHT_BY}GRADER`, not `{group}`.")
        if kind not in KINDS:
            raise EditError(f"{file}: `{kind}` is no kind of mistake; the kinds are {', '.join(KINDS)}.")
        for name, written in mistakes.items():
            origin = f"{file}: `{name}`"
            try:
                mistake = msgspec.convert(written, _Mistake)
                if len(mistake.says) > LONGEST:
                    raise EditError(f"its sentence has {len(mistake.says)} characters, more than {LONGEST}")
                for exercise, prefix in prefixes.items():
                    for form_name, form in {name: mistake, **mistake.also}.items():
                        made = code(form, exercise, f"{file}: `{form_name}`")
                        yield Candidate(
                            exercise,
                            prefix + form_name,
                            mistake.says,
                            made,
                            kind,
                            caught_by,
                            prefix + name,
                            mistake.whatever_weights,
                        )
            except (msgspec.ValidationError, EditError) as reason:
                raise EditError(f"{origin}: {reason}.") from None


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = read_yaml(file)
    except NotYaml as reason:
        raise EditError(f"{file}: {reason}.") from None
    return content


def _each(written: str | list[str]) -> list[str]:
    return [written] if isinstance(written, str) else written
