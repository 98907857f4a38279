"""Read files of misconceptions: YAML, one or more for an exercise.

    exercises: {SelfAttention_v1: "", SelfAttention_v2: "Layers"}    # the prefix of the second one's names
    of: InSteps                                                      # the alternative solution that is edited
    value, caught by test_context_vectors:                           # KIND, caught by HIDDEN TEST
      WeightsTransposed:
        says: "The sentence for the student."
        edit: weights @ values -> weights.T @ values

`exercises` may be one name. Without `of`, the solution is edited.
"""

from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from .candidate import KINDS, Candidate, Code
from .edit import Edit, EditError

SOLUTION = "solution"
LONGEST = 160
"""Characters in a sentence: students read more than one."""
_CAUGHT_BY = ", caught by "


class NotYaml(ValueError):
    """The file cannot be read; `str()` says why, without the file's name."""


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
    """Yield the misconceptions of one file; raises EditError, which names the misconception and its fault.

    base: gives the text of an exercise's answer, which is its solution or the alternative solution of that name.
    """
    try:
        content: dict[str, Any] = read_yaml(file)
    except NotYaml as reason:
        raise EditError(f"{file}: {reason}.") from None
    usual_base = content.pop("of", SOLUTION)
    exercises = content.pop("exercises", None)
    if exercises is None:
        raise EditError(f"{file}: `exercises` should say which exercise these are mistakes in.")
    prefixes = {exercises: ""} if isinstance(exercises, str) else exercises

    def code(variant: Variant, exercise: str, name: str) -> Code:
        origin = f"{file}: `{name}`"
        edits = [Edit.parse(one) for one in _list(variant.edit)]
        edits += [Edit.parse(one, everywhere=True) for one in _list(variant.each)]
        if (variant.answer is None) == (not edits):
            raise EditError("a mistake has either edits or an answer")
        if variant.answer is not None:
            return Code(unit, exercise, variant.answer, origin=origin)
        of = variant.of or usual_base
        text = base(exercise, of if of == SOLUTION else prefixes[exercise] + of)
        return Code(unit, exercise, text, tuple(edits), origin)

    for group, written in content.items():
        kind, _, caught_by = group.partition(_CAUGHT_BY)
        if not caught_by:
            raise EditError(f"{file}: a group is called `KIND{_CAUGHT_BY}GRADER`, not `{group}`.")
        if kind not in KINDS:
            raise EditError(f"{file}: `{kind}` is no kind of mistake; the kinds are {', '.join(KINDS)}.")
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
