"""Copies of the notebook's namespace, each taken when an exercise's check cell had run.

A later cell may give a name another meaning: `nn = 5`, `%reset -f`. Functions look up their global names in the
namespace itself, so the copy's contents are put back there before the exercise is tested.
"""

import dis
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

_ABSENT = object()
_MOST_THINGS = 2_000
"""Limit for the functions, classes and other parts of an answer and its callees: far more than anyone writes."""
_NOTEBOOK = "__main__"
_HOLDERS: dict[type, tuple[str, ...]] = {
    MethodType: ("__func__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    partial: ("func",),
    type(cache(str)): ("__wrapped__",),
}
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})

Names = dict[str, Any]


class Snapshots:
    """The namespace, its copies, and which cells changed what answers reach."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._copies: dict[str, Names] = {}
        self._end: Names | None = None
        self._watched: Names = {}
        self._changed_by: dict[str, str] = {}

    @property
    def has_changes(self) -> bool:
        """Return whether any cell changed a name that an answer above it reaches."""
        return bool(self._changed_by)

    def take(self, exercises: Sequence[str]) -> None:
        """Copy the namespace as the exercises' check cells, which have just run, leave it."""
        copy = dict(self._names)
        for exercise in exercises:
            self._copies[exercise] = copy
            for name in _reached(exercise, copy, lambda code: code.co_names):  # attributes included, which is quick
                self._watched.setdefault(name, copy.get(name, _ABSENT))

    def note_changes(self, cell: str) -> None:
        """Note the names that a cell, which has just run, gave another value or took away."""
        for name, value in self._watched.items():
            now = self._names.get(name, _ABSENT)
            if now is not value:
                self._watched[name] = now
                self._changed_by[name] = cell

    def put_back(self, exercise: str | None) -> None:
        """Give the namespace its contents at the exercise's check; at the end if there is no exercise, or no check."""
        if self._end is None:
            self._end = dict(self._names)
        contents = self._end if exercise is None else self._copies.get(exercise, self._end)
        for name in self._names.keys() - contents.keys():
            del self._names[name]
        self._names.update(contents)

    def changes(self, exercise: str) -> list[tuple[str, str]]:
        """Return the names that the answer reached at its check and that differ at the end.

        Each comes with the cell that changed it.
        """
        copy = self._copies.get(exercise)
        if copy is None:
            return []
        end = self._names if self._end is None else self._end
        reached = sorted(_reached(exercise, copy, _global_names))
        different = [name for name in reached if copy.get(name, _ABSENT) is not end.get(name, _ABSENT)]
        return [(name, self._changed_by.get(name, "")) for name in different]


def _reached(start: str, names: Names, names_in: Callable[[CodeType], Iterable[str]]) -> set[str]:
    """Return the global names that a function or class uses, directly and through others of the notebook."""
    reached, waiting, seen = {start}, [start], set[int]()
    while waiting and len(seen) < _MOST_THINGS:
        for code in _codes(names.get(waiting.pop()), seen):
            new = set(names_in(code)) - reached
            reached |= new
            waiting += new
    return reached


def _codes(thing: Any, seen: set[int]) -> Iterator[CodeType]:
    """Yield the code of a function, class or instance of the notebook, and of its parts, unless it is in `seen`."""
    things = [thing]
    while things and len(seen) < _MOST_THINGS:
        thing = things.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if type(thing) is CodeType:
            yield thing
        try:
            things += _parts(thing)
        except Exception:  # a class may answer strangely when it is inspected
            continue


def _parts(thing: Any) -> list[Any]:
    """Return the objects that run when an object defined in the notebook is called; other objects have none."""
    kind = type(thing)
    if kind is CodeType:
        return [constant for constant in thing.co_consts if type(constant) is CodeType]
    if kind is FunctionType:
        if thing.__module__ != _NOTEBOOK:  # or its decorator copied another function's name
            return [getattr(thing, "__wrapped__", None)]
        return [thing.__code__, *(cell.cell_contents for cell in thing.__closure__ or ())]
    if kind in _HOLDERS:
        return [getattr(thing, part) for part in _HOLDERS[kind]]
    if issubclass(kind, type):
        return [*vars(thing).values(), *thing.__bases__] if thing.__module__ == _NOTEBOOK else []
    return [kind] if kind.__module__ == _NOTEBOOK else []


def _global_names(code: CodeType) -> Iterable[str]:
    """Return the global names that the code reads."""
    return [step.argval for step in dis.get_instructions(code) if step.opname in _READS]
