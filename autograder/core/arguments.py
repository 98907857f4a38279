"""Arguments of a call, and the tensors and values nested in them.

Hidden tests pass arguments by position, and by name if these have a default.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Arguments(NamedTuple):
    """What a function or a class is called with."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def mapped(self, change: Callable[[Any], Any]) -> "Arguments":
        """The same arguments, each of them changed, and each in a list or a tuple."""
        return Arguments(
            tuple(each(value, change) for value in self.positional),
            {name: each(value, change) for name, value in self.named.items()},
        )

    def apply(self, function: Callable[..., Any]) -> Any:
        """Calls the function."""
        return function(*self.positional, **self.named)


Held = tuple[tuple[int, int], ...]
"""The instances among the arguments of a call: for each its place, and its number."""


def with_held(
    function: Callable[..., Any], held: Sequence[Sequence[int]], instances: Sequence[Any]
) -> Callable[..., Any]:
    """The function, called with these instances among its other arguments.

    They are no copies: what it does to them shows in what is asked of them next.
    """
    if not held:
        return function

    def called(*args: Any, **named: Any) -> Any:
        return function(*together(args, ((place, instances[number]) for place, number in held)), **named)

    return called


def together(args: Sequence[Any], held: Iterable[tuple[int, Any]]) -> list[Any]:
    """All arguments of a call: the instances, each with its place, among the others."""
    found = list(args)
    for place, instance in held:
        found.insert(place, instance)
    return found


def walking_once(function: Callable[..., Any], once: bool) -> Callable[..., Any]:
    """The function; where it is `once`, each list and tuple comes to it as an iterator, which can be walked once."""
    if not once:
        return function

    def called(*args: Any, **named: Any) -> Any:
        return function(*(iter(arg) if isinstance(arg, list | tuple) else arg for arg in args), **named)

    return called


def places_of_others(held: Sequence[Sequence[int]], number: int) -> list[int]:
    """The places, among all arguments of a call, of those that are no instances. number: how many they are."""
    taken = {place for place, _ in held}
    return [place for place in range(number + len(taken)) if place not in taken]


MAX_DEPTH = 8
MAX_TENSORS = 500
"""Limit of tensors that are read from one value."""


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples and dicts, down to MAX_DEPTH."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item, depth + 1)


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with whatever is in its lists and tuples changed; for values of ours, which have an end."""
    if isinstance(value, list | tuple):
        return type(value)(each(item, change) for item in value)
    return change(value)
