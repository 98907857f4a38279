"""The arguments of a call: by position, except those with a default, which graders give by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .nesting import each


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
