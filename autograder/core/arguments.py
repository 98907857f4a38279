"""Arguments of a call, and the tensors and values nested in them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Arguments(NamedTuple):
    """The arguments of a call to a function or class."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def mapped(self, change: Callable[[Any], Any]) -> "Arguments":
        """Return the arguments with each value replaced by `change(value)`, also inside lists and tuples."""
        return Arguments(
            tuple(map_nested(value, change) for value in self.positional),
            {name: map_nested(value, change) for name, value in self.named.items()},
        )

    def apply(self, function: Callable[..., Any]) -> Any:
        """Call the function and return its result."""
        return function(*self.positional, **self.named)


InstancePositions = tuple[tuple[int, int], ...]
"""For each instance among the arguments of a call: its position, and its number on the bench."""


def with_instances(
    function: Callable[..., Any], held: Sequence[Sequence[int]], instances: Sequence[Any]
) -> Callable[..., Any]:
    """Return the function with instances inserted among its arguments. held: see `InstancePositions`.

    The instances are not copied: a later operation sees what the call did to them.
    """
    if not held:
        return function

    def called(*args: Any, **named: Any) -> Any:
        return function(*insert_instances(args, ((position, instances[number]) for position, number in held)), **named)

    return called


def insert_instances(args: Sequence[Any], held: Iterable[tuple[int, Any]]) -> list[Any]:
    """Insert instances among the arguments of a call. held: position and value of each instance."""
    arguments = list(args)
    for position, instance in held:
        arguments.insert(position, instance)
    return arguments


def with_iterators(function: Callable[..., Any], once: bool) -> Callable[..., Any]:
    """Return the function; if `once`, it gets each list and tuple as an iterator, which can be read only once."""
    if not once:
        return function

    def called(*args: Any, **named: Any) -> Any:
        return function(*(iter(arg) if isinstance(arg, list | tuple) else arg for arg in args), **named)

    return called


def positions_of_others(held: Sequence[Sequence[int]], number: int) -> list[int]:
    """Return the positions of the `number` arguments that are not instances, among all arguments of a call."""
    taken = {position for position, _ in held}
    return [position for position in range(number + len(taken)) if position not in taken]


MAX_DEPTH = 8
MAX_TENSORS = 500
"""Maximum number of tensors that are read from one value."""


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors of a value, including those in lists, tuples and dicts down to MAX_DEPTH."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item, depth + 1)


def map_nested(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the value with `change` applied to each item of nested lists and tuples.

    The depth is not limited, so a student's value must not be passed.
    """
    if isinstance(value, list | tuple):
        return type(value)(map_nested(item, change) for item in value)
    return change(value)
