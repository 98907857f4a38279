"""The catalogue: known wrong answers with the sentence that names each mistake, and right answers in other styles.

    @misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
    def divided_by_d_k(scores, d_k):
        \"\"\"The scores are divided by d_k; divide by its square root, so that their variance stays near 1.\"\"\"
        return torch.softmax(scores / d_k, dim=-1)

The entries of an exercise stand in `misconceptions/<unit>/<exercise>.py` and `right_answers/<unit>/<exercise>.py`;
where they are many, in a folder of that name with a module for each kind of mistake.
"""

import ast
import copy
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, get_args

T = TypeVar("T")

FORBIDDEN = "forbidden"
"""Stands in the place of a grader where what catches a misconception is the rule against library calls."""

Kind = Literal[
    "value", "mask", "edge", "gradient", "initialisation", "dropout",
    "device", "dtype", "side effect", "contract", "hard-coded output",
]  # fmt: skip
"""What goes wrong in a misconception: the results in general, or the part of the exercise that the kind names.

edge: right in common cases only (sizes of 1, large scores, other lengths). contract: what comes back, or is refused or
called, is not what was asked for. hard-coded output: right for the public examples alone.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)

_ENTRY = "__catalogue_entry__"


@dataclass(frozen=True)
class Candidate:
    """One answer to an exercise, right or wrong, that the kit knows."""

    exercise: str
    name: str
    sentence: str
    """What the student is told; for a right answer, what its style is."""
    answer: Any
    kind: Kind | None = None
    """What goes wrong; None for a right answer."""
    caught_by: str | None = None
    """The grader that a misconception must fail; None for a right answer."""

    def source(self) -> str:
        """The code as a student would have typed it, under the exercise's name and without the docstring.

        What an entry inherits from another class of the catalogue comes first.
        """
        bases = self.answer.__mro__[:0:-1] if inspect.isclass(self.answer) else ()
        own = [base for base in bases if base.__module__.startswith(f"{__package__}.")]
        definitions = [*(_typed(base, base.__name__) for base in own), _typed(self.answer, self.exercise)]
        return "\n\n\n".join(definitions)


def misconception(exercise: str, *, kind: Kind, caught_by: str) -> Callable[[T], T]:
    """Marks a wrong answer: its docstring is the sentence for the student, `caught_by` the grader it must fail."""
    return _entry(exercise, kind, caught_by)


def right_answer(exercise: str) -> Callable[[T], T]:
    """Marks a right answer: its docstring names the style."""
    return _entry(exercise, None, None)


def solutions(unit: str) -> dict[str, Candidate]:
    """The unit's solutions by exercise."""
    module = importlib.import_module(f"solutions.{unit}")
    return {
        name: Candidate(name, name, "the solution", answer)
        for name, answer in vars(module).items()
        if getattr(answer, "__module__", None) == module.__name__
    }


@cache
def used_by(unit: str, exercise: str) -> frozenset[str]:
    """The other exercises whose answers this one's calls, as its solution does."""
    answers = solutions(unit)
    named = {node.id for node in ast.walk(ast.parse(answers[exercise].source())) if isinstance(node, ast.Name)}
    return frozenset(named & answers.keys() - {exercise})


def misconceptions(unit: str) -> dict[str, Candidate]:
    """The unit's misconceptions by name."""
    return _candidates("misconceptions", unit)


def right_answers(unit: str) -> dict[str, Candidate]:
    """The unit's right answers in other styles by name."""
    return _candidates("right_answers", unit)


def _entry(exercise: str, kind: Kind | None, caught_by: str | None) -> Callable[[T], T]:
    def mark(answer: T) -> T:
        setattr(answer, _ENTRY, (exercise, kind, caught_by))
        return answer

    return mark


def _typed(thing: Any, name: str) -> str:
    # A class is found by its name; of functions several may be called `_`.
    where = thing.__name__ if inspect.isclass(thing) else thing.__code__.co_firstlineno
    definition = copy.deepcopy(_definitions(thing.__module__)[where])
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


@cache
def _candidates(kind: str, unit: str) -> dict[str, Candidate]:
    folder = importlib.import_module(f"{__package__}.{kind}.{unit}")
    candidates: dict[str, Candidate] = {}
    for found in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        module = importlib.import_module(found.name)
        for name, answer in vars(module).items():
            if _ENTRY not in getattr(answer, "__dict__", {}) or answer.__module__ != module.__name__:
                continue
            where = f"{found.name}: `{name}`"
            exercise, kind_of_mistake, caught_by = getattr(answer, _ENTRY)
            sentence = " ".join((inspect.getdoc(answer) or "").split())
            if not sentence:
                raise ValueError(f"{where} needs a docstring, the sentence that a student reads.")
            if name in candidates:
                raise ValueError(f"{where}: another exercise of this unit has an entry of that name.")
            candidates[name] = Candidate(exercise, name, sentence, answer, kind_of_mistake, caught_by)
    return candidates
