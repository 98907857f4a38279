"""Further inputs for a repaired answer, because an edit can pass all hidden tests by chance.

The hidden tests' own calls are made with other tensors: with more elements in one dimension, or with small whole
numbers. Example: an answer computes the queries in blocks of 4 and leaves out the last block. With `c + 2` instead of
`c + 1` for the number of blocks, they overlap, which is right for up to 7 queries; no hidden test has more. With 9 more
queries the edit fails.

An input counts only if the solution and the alternative solutions agree on it. Otherwise the exercise does not say
which result is right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from ..core.arguments import map_nested, tensors_in
from ..core.bench import Bench, Operation, TryEdits, equal_fingerprints
from ..core.operations import Call, LoadParameters
from ..graders.backend import Backend

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

Operations = tuple[Operation[Any], ...]
FurtherInput = tuple[Operations, torch.Tensor]
"""Operations, and the fingerprints (operation, 3) of their right results."""


def further_inputs(
    solution: Bench, others: Sequence[Bench], tests: Sequence[FurtherInput]
) -> list[tuple[FurtherInput, list[FurtherInput]]]:
    """Return hidden tests' operations, each with further inputs made from them.

    solution, others: benches of the solution and of alternative solutions, on which the operations are carried out.
    tests: the hidden tests' own operations, with the solution's fingerprints.
    """
    small = [test for test in tests if 0 < _elements(test[0]) <= _MOST_ELEMENTS]
    found = []
    for test in sorted(small, key=lambda test: len(test[0]))[:MOST_TESTS]:
        made: list[FurtherInput] = []
        for operations in _variants(test[0]):
            prints = _results(solution, operations)
            if prints is not None and all(_agrees(other, (operations, prints)) for other in others):
                made.append((operations, prints))
        if made:
            found.append((test, made))
    return found


def passes(code: Backend, inputs: Sequence[tuple[FurtherInput, Sequence[FurtherInput]]]) -> bool:
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


def _agrees(code: Backend, expected: FurtherInput) -> bool:
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
