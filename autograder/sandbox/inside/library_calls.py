"""Which library functions ran, whatever name the student's code called them by.

Below the names that Python sees, PyTorch dispatches operators: a dispatch mode sees them however they were
reached. `F.multi_head_attention_forward` decomposes in training mode, so a function mode watches for it by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .operators import OperatorMode, name_of

LIBRARY_SOFTMAX = "library softmax"
LIBRARY_ATTENTION = "library attention"

_OPERATORS = {
    "flex_attention": LIBRARY_ATTENTION,
    "_softmax": LIBRARY_SOFTMAX,
    "_safe_softmax": LIBRARY_SOFTMAX,
    "_log_softmax": LIBRARY_SOFTMAX,
    "_masked_softmax": LIBRARY_SOFTMAX,
    "_sparse_softmax": LIBRARY_SOFTMAX,
    "_sparse_log_softmax": LIBRARY_SOFTMAX,
    "logsumexp": LIBRARY_SOFTMAX,
    "_logcumsumexp": LIBRARY_SOFTMAX,
    "logcumsumexp": LIBRARY_SOFTMAX,
    "_native_multi_head_attention": LIBRARY_ATTENTION,
}


def _library(operator: str) -> str | None:
    if operator.startswith("_scaled_dot_product_"):
        return LIBRARY_ATTENTION
    return _OPERATORS.get(operator)


class _Operators(OperatorMode):
    def __init__(self, seen: set[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if library := _library(name_of(func)):
            self.seen.add(library)
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    """Sees calls of `torch.nn.functional` before they decompose."""

    def __init__(self, seen: set[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        # The math kernel of scaled_dot_product_attention leaves no operator of its own name behind.
        if func in (
            torch.nn.functional.multi_head_attention_forward,
            torch._C._nn.scaled_dot_product_attention,
        ):
            self.seen.add(LIBRARY_ATTENTION)
        return func(*args, **(kwargs or {}))


@contextmanager
def watched() -> Iterator[set[str]]:
    """Collects the libraries that run inside the `with` block."""
    seen: set[str] = set()
    with _Functions(seen), _Operators(seen):
        yield seen
