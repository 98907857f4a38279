"""An answer that no misconception explains, and the confirmation that edits repair this answer.

A notebook with the edited answer must earn all points. Because an edit can pass all hidden tests by chance, the hidden
tests' own calls are also made with other tensors: with more elements in one dimension, or with small whole numbers.
Example: an answer computes the queries in blocks of 4 and leaves out the last block. With `c + 2` instead of `c + 1`
for the number of blocks, they overlap, which is right for up to 7 queries; no hidden test has more. With 9 more queries
the edit fails.

Such a further input counts only if the solution and the alternative solutions agree on it. Otherwise the exercise does
not say which result is right.
"""

from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, Protocol

import torch

from .. import catalogue, course
from ..core.arguments import map_nested, tensors_in
from ..core.bench import Operation
from ..core.edit_trials import TryEdits, equal_fingerprints
from ..core.observation import StudentFault
from ..core.operations import Call, LoadParameters
from ..course.notebook import CodeCell
from ..graders.backend import Backend
from ..graders.budget import OutOfBudget
from ..graders.sandboxed import SandboxedNotebook
from ..sandbox.client import Crashed, TimedOut
from ..tracing.definitions import Definition, Edit, definitions
from . import scoring
from .examiner import Examiner, RightResults, candidate_bench

MORE = 9
"""Elements that are added to a dimension."""
MOST_TESTS = 4
"""Most hidden tests whose calls are made with other tensors."""
MOST_SIZES = 3
"""Most sizes of one test's tensors that are enlarged."""
LARGEST = (1, 1, 2, 2)
"""Largest absolute value of whole numbers, for each of the inputs with whole numbers."""
_MOST_ELEMENTS = 20_000
"""Most elements of the tensors in the calls of one test. Tests with larger tensors are left out."""

_MOST_SOLUTIONS = 5
"""Most alternative solutions that must agree with the solution on a further input."""
Operations = tuple[Operation[Any], ...]


class Start(Protocol):
    """A function that returns a backend for a notebook's cells."""

    def __call__(self, cells: Sequence[CodeCell], /, *, is_alone: bool = False) -> SandboxedNotebook:
        """is_alone: see `SandboxedNotebook`."""
        ...


@dataclass(frozen=True)
class Step:
    """One edit of a repair, and the definition that it changes."""

    definition: Definition
    edit: Edit

    @property
    def lines(self) -> list[int]:
        """The numbers of the lines in the cell that the edit changes."""
        return self.definition.lines(self.edit)

    def is_in(self, lines: Set[int]) -> bool:
        """Return whether the edit changes one of these lines."""
        return bool(lines) and not lines.isdisjoint(self.lines)

    def is_within(self, others: "Sequence[Step]") -> bool:
        """Return whether each place that the edit changes is within a place that one of the others changes."""
        places = [span for other in others if other.definition is self.definition for span in other.edit.spans]
        return all(any(a <= begin and end <= b for a, b, _ in places) for begin, end, _ in self.edit.spans)


def total_rank(steps: Sequence[Step]) -> int:
    """Return the sum of the edits' ranks; the likelier an edit, the lower its rank."""
    return sum(step.edit.rank for step in steps)


@dataclass(frozen=True)
class Repaired:
    """A repair of a student's code: one edit, or two that are both needed."""

    steps: tuple[Step, ...]

    @property
    def rank(self) -> int:
        """The sum of the edits' ranks."""
        return total_rank(self.steps)


@dataclass(frozen=True)
class UnexplainedAnswer:
    """An answer to an exercise, in the cells of a submission."""

    examiner: Examiner
    unit: course.Unit
    exercise: course.Exercise
    cells: Sequence[CodeCell]
    start: Start

    def definitions(self, without: Sequence[str] = ()) -> list[Definition]:
        """Return the definitions of the answer and of everything that it uses. without: exercises to leave out."""
        own = [(cell.name, cell.source) for cell in self.cells if not cell.is_ours]
        return definitions(self.exercise.name, own, without)

    def is_repaired(self, repaired: Repaired) -> bool:
        """Return whether a notebook with the edits earns all points for the exercise, and is right for further inputs.

        A new worker runs the notebook. An edit that is right only for the hidden tests' inputs is no repair.
        """
        exercise, cells = self.exercise, self.cells
        for step in repaired.steps:
            cells = _with(cells, step.definition, step.definition.edited(step.edit))
        with closing(self.start(cells)) as code:
            code.run_cells()
            code.begin_exercise(exercise.name)
            finding = self.examiner.examine(self.unit.name, exercise.name, code)
            report = scoring.score(exercise, finding.verdicts, library_calls=finding.library_calls)
            if report.status != "passed" or report.score != exercise.points:
                return False
            try:
                return _passes(code, _further_inputs(self.examiner, self.unit.name, exercise.name))
            except (StudentFault, TimedOut, Crashed, OutOfBudget):
                return False


def _with(cells: Sequence[CodeCell], old: Definition, new: Definition) -> list[CodeCell]:
    """Return the cells with the definition `old` replaced by `new`."""

    def edited(cell: CodeCell) -> CodeCell:
        lines = cell.source.splitlines(keepends=True)
        first, last = old.first_line - 1, old.first_line - 1 + len(old.text.splitlines())
        return replace(cell, source="".join([*lines[:first], new.text, *lines[last:]]))

    return [edited(cell) if cell.name == old.cell else cell for cell in cells]


@cache
def _further_inputs(examiner: Examiner, unit: str, exercise: str) -> list[tuple[RightResults, list[RightResults]]]:
    """Return the operations of some hidden tests of an exercise, each with further inputs made from them."""
    solution = candidate_bench(unit, None)
    alternatives = [one for one in catalogue.right_answers(unit).values() if one.exercise == exercise]
    others = [candidate_bench(unit, one.recreated()) for one in alternatives[:_MOST_SOLUTIONS]]
    tests = [examiner.right_results(unit, exercise, name) for name in examiner.tests(unit, exercise)]
    small = [test for test in tests if 0 < _elements(test[0]) <= _MOST_ELEMENTS]
    found = []
    for test in sorted(small, key=lambda test: len(test[0]))[:MOST_TESTS]:
        made: list[RightResults] = []
        for operations in _variants(test[0]):
            prints = _results(solution, operations)
            if prints is not None and all(_agrees(other, (operations, prints)) for other in others):
                made.append((operations, prints))
        if made:
            found.append((test, made))
    return found


def _passes(code: Backend, inputs: Sequence[tuple[RightResults, Sequence[RightResults]]]) -> bool:
    """Return whether code gives the right results for all further inputs. What the backend raises is passed on.

    If the code's results differ already in the hidden test itself, which then allows several results, its further
    inputs are left out.
    """
    exact = [made for test, made in inputs if _agrees(code, test)]
    return all(_agrees(code, one) for made in exact for one in made)


def _results(code: Backend, operations: Operations) -> torch.Tensor | None:
    """Return the fingerprints of the results, (operation, 3); None if an operation fails."""
    (prints,) = code.ask(TryEdits(((),), operations))  # without an edit
    return prints if bool((prints[:, 0] > 0).all()) else None


def _agrees(code: Backend, expected: RightResults) -> bool:
    prints = _results(code, expected[0])
    return prints is not None and bool(equal_fingerprints(prints, expected[1]).all())


def _tensors(operations: Operations) -> list[torch.Tensor]:
    """Return the tensors with which the operations call the answer."""
    calls = [operation for operation in operations if type(operation) is Call]
    return [tensor for call in calls for tensor in tensors_in(list(call.arguments.positional))]


def _elements(operations: Operations) -> int:
    return sum(tensor.numel() for tensor in _tensors(operations))


def _variants(operations: Operations) -> Iterator[Operations]:
    """Yield the operations with other tensors."""
    for seed, largest in enumerate(LARGEST):
        yield tuple(_whole(operation, seed, largest) for operation in operations)
    sizes = dict.fromkeys(size for tensor in _tensors(operations) for size in tensor.shape if size)
    for size in islice(sizes, MOST_SIZES):
        yield tuple(_larger(operation, size) for operation in operations)


def _whole(operation: Operation[Any], seed: int, largest: int) -> Operation[Any]:
    """Return an operation whose floating-point arguments and parameters are small whole numbers."""
    drawn = torch.Generator().manual_seed(seed)

    def changed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        whole = torch.randint(-largest, largest + 1, value.shape, generator=drawn).to(value.dtype)
        whole = whole.abs() if bool((value >= 0).all()) else whole
        return torch.where(value.isfinite(), whole, value)

    if isinstance(operation, LoadParameters):
        return replace(operation, values={name: changed(value) for name, value in operation.values.items()})
    return replace(operation, arguments=operation.arguments.mapped(changed)) if type(operation) is Call else operation


def _larger(operation: Operation[Any], size: int) -> Operation[Any]:
    """Return an operation whose tensors have more elements in each dimension of this size, repeated and scaled.

    Scaling keeps the elements' signs, zeros and infinities.
    """
    if type(operation) is not Call:
        return operation
    drawn = torch.Generator().manual_seed(size)

    def changed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or size not in value.shape:
            return value
        for dim, there in enumerate(value.shape):
            if there == size:
                value = value.index_select(dim, torch.arange(size + MORE) % size)
        if value.is_floating_point():
            value = value * (0.5 + torch.rand(value.shape, generator=drawn, dtype=value.dtype))
        return value

    cotangents = operation.cotangents and tuple(map_nested(list(operation.cotangents), changed))
    return replace(operation, arguments=operation.arguments.mapped(changed), cotangents=cotangents)
