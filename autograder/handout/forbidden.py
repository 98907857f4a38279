"""Which of the libraries that an exercise may forbid run: seen by modes, which are gone once the check is done."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch.overrides import TorchFunctionMode

from ..core.library_calls import library_of, note, taken
from ..core.operators import OperatorMode, name_of


def _noted(name: str) -> None:
    library = library_of(name)
    if library:
        note(library)


class _OperatorsWatched(OperatorMode):
    """Operators, whoever calls them: autograd and methods of tensors too."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _noted(name_of(func))
        return func(*args, **(kwargs or {}))


class _FunctionsWatched(TorchFunctionMode):
    """Functions of torch's that end in operators of other names."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _noted(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


@contextmanager
def libraries_watched(found: set[str]) -> Iterator[None]:
    """Adds to `found` the libraries that run meanwhile."""
    taken()
    with _FunctionsWatched(), _OperatorsWatched():
        yield
    found.update(taken())
