"""One answer that the kit knows: whose exercise it is, what is said of it, and its code."""

import ast
import copy
import inspect
import linecache
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal, get_args
from weakref import finalize

from ..course import content
from .edit import Edit, EditError, edited

Kind = Literal[
    "value", "mask", "edge", "gradient", "initialisation", "dropout",
    "device", "dtype", "side effect", "contract", "hard-coded output",
]  # fmt: skip
"""What goes wrong in a misconception: the results in general, or the part of the exercise that the kind names.

edge: right in common cases only (sizes of 1, large scores, other lengths). contract: what comes back, or is refused or
called, is not what was asked for. hard-coded output: right for the public examples alone.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Code:
    """An answer as text: a base, which may be another answer's text, and the edits that make this one of it."""

    unit: str
    exercise: str
    base: str
    edits: tuple[Edit, ...] = ()
    origin: str = ""
    """Where it is written, for whoever must mend it."""

    @property
    def text(self) -> str:
        """The code; raises EditError where an edit cannot be made, or what it makes is no answer to the exercise."""
        try:
            (definition,) = ast.parse(self.written).body
        except (SyntaxError, ValueError) as reason:
            raise self._no_definition(reason) from None
        if getattr(definition, "name", None) != self.exercise:
            raise self._does_not_define()
        return ast.unparse(definition)

    @cached_property
    def written(self) -> str:
        """The base with all edits made; raises EditError."""
        try:
            return edited(self.base, self.edits)
        except EditError as reason:
            raise self._wrong(str(reason)) from None

    @cached_property
    def answer(self) -> Any:
        """The function or class, next to the unit's solutions and what the notebooks define; raises EditError."""
        file = f"<{self.exercise} {id(self):x}>"
        try:
            code = compile(self.written, file, "exec")
        except (SyntaxError, ValueError) as reason:
            raise self._no_definition(reason) from None
        linecache.cache[file] = (len(self.written), None, self.written.splitlines(keepends=True), file)  # TorchScript
        finalize(self, linecache.cache.pop, file, None)
        scope = {**content.notebook(), **content.solutions(self.unit), "__name__": self.exercise}
        scope.pop(self.exercise, None)
        exec(code, scope)
        if self.exercise not in scope:
            raise self._does_not_define()
        return scope[self.exercise]

    def _no_definition(self, reason: Exception) -> EditError:
        return self._wrong(f"the code is not one definition ({reason}):\n{self.written}")

    def _does_not_define(self) -> EditError:
        return self._wrong(f"the code does not define `{self.exercise}`")

    def _wrong(self, reason: str) -> EditError:
        """What is wrong with it, and where it is written."""
        return EditError(f"{self.origin}: {reason}." if self.origin else reason)


@dataclass(frozen=True)
class Candidate:
    """One answer to an exercise, right or wrong."""

    exercise: str
    name: str
    sentence: str
    """What the student is told; for a right answer, what its style is."""
    code: Any
    """`Code`, or the function or class itself."""
    kind: Kind | None = None
    """What goes wrong; None for a right answer."""
    caught_by: str | None = None
    """The grader that a misconception must fail; None for a right answer."""
    mistake: str = ""
    """The name of the mistake of which this is one form; its own, where it is the only one."""
    whatever_weights: bool = False
    """Its sentence is true of each class that shows the same but for the weights that it begins with."""

    @property
    def answer(self) -> Any:
        """The function or class."""
        return self.code.answer if isinstance(self.code, Code) else self.code

    def anew(self) -> "Candidate":
        """The same, of which nobody has called anything yet: what an answer keeps in its class stays with it."""
        return replace(self, code=replace(self.code)) if isinstance(self.code, Code) else self

    def source(self) -> str:
        """The code as a student would have typed it, under the exercise's name and without the docstring."""
        return self.code.text if isinstance(self.code, Code) else _typed(self.code, self.exercise)


def can_be_combined(one: Candidate, other: Candidate) -> bool:
    """Whether both can be made in one code, in different places: in that of either."""
    return _place_of_both(one, other) is not None


def combined(one: Candidate, other: Candidate) -> Candidate:
    """Both mistakes in one answer; raises EditError where they are in the same place or not made in the same code.

    What the edits make together may still be no code, which its `answer` raises.
    """
    if not _are_edits(one, other):
        raise EditError("they are not edits of the same code")
    base = _place_of_both(one, other) or one.code.base
    code = Code(one.code.unit, one.exercise, base, (*one.code.edits, *other.code.edits))
    _ = code.written
    return Candidate(
        one.exercise, f"{one.name} and {other.name}", f"{one.sentence} {other.sentence}", code, one.kind, one.caught_by
    )


def moved(one: Candidate, other: Candidate) -> list[tuple[Candidate, Candidate]]:
    """Of two that are combined, the one that is then made in another code than its own, and what it is there alone.

    The same edit may be another mistake there, of which its sentence says nothing.
    """
    base = _place_of_both(one, other)
    return [
        (each, replace(each, code=replace(each.code, base=base))) for each in (one, other) if each.code.base != base
    ]


def _are_edits(*candidates: Candidate) -> bool:
    return all(isinstance(one.code, Code) and one.code.edits for one in candidates)


def _place_of_both(one: Candidate, other: Candidate) -> str | None:
    """The code in which both can be made: that of the first, or else of the second; None where neither is."""
    if not _are_edits(one, other):
        return None
    edits = (*one.code.edits, *other.code.edits)
    for base in dict.fromkeys((one.code.base, other.code.base)):
        with suppress(EditError):
            places = sorted(place for edit in edits for place in edit.places(base))
            if all(a[1] <= b[0] for a, b in pairwise(places)):
                return str(base)
    return None


def _typed(thing: Any, name: str) -> str:
    # A class is found by its name; of functions several may be called `_`.
    where = thing.__name__ if inspect.isclass(thing) else thing.__code__.co_firstlineno
    definition = copy.copy(_definitions(thing.__module__)[where])  # only what stands in it directly is replaced
    definition.name = name
    definition.decorator_list = []
    if ast.get_docstring(definition) is not None:  # the catalogue's, not the student's
        definition.body = definition.body[1:] or [ast.Pass()]
    return ast.unparse(definition)


@cache
def _definitions(module: str) -> dict[str | int, ast.FunctionDef | ast.ClassDef]:
    """A module's functions and classes by name, and by the line where their decorators begin."""
    found: dict[str | int, ast.FunctionDef | ast.ClassDef] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef) and node.name in found:
            raise ValueError(f"{module}: two classes are called `{node.name}`, and the text of one would be lost.")
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = found[min(one.lineno for one in [node, *node.decorator_list])] = node
    return found
