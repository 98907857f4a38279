"""The arguments of a call: by position, except those with a default, which graders give by name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Arguments(NamedTuple):
    """What a function or a class is called with."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def mapped(self, change: Callable[[Any], Any]) -> "Arguments":
        """The same arguments, each of them changed."""
        return Arguments(
            tuple(change(value) for value in self.positional),
            {name: change(value) for name, value in self.named.items()},
        )

    def apply(self, function: Callable[..., Any]) -> Any:
        """Calls the function."""
        return function(*self.positional, **self.named)
