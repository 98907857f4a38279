"""Recognise libraries that an exercise may forbid by the names of their functions, and record those that run."""

import re
from functools import cache

import torch

LIBRARY_SOFTMAX = "library softmax"
LIBRARY_ATTENTION = "library attention"
AUTOGRAD = "autograd"

_PATTERNS = {
    AUTOGRAD: re.compile(r"_make_dual(_copy)?|_softmax_backward_data"),
    LIBRARY_SOFTMAX: re.compile(r"\w*(soft(max|min)|log(cum)?sumexp)\w*", re.I),
    LIBRARY_ATTENTION: re.compile(r"\w*(attention|attn)\w*|_transformer_encoder_layer_fwd", re.I),
}
_STARTS_AUTOGRAD = (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad)
"""Functions that start a backward pass, for the student check. In grading the engine records each pass."""
LIBRARIES = _PATTERNS.keys()
"""The libraries that an exercise may forbid."""
_NOT_ATTENTION = re.compile(r"(register|activate|restore|list|current)_\w*")
"""Functions that choose a kernel and run none."""

_seen: set[str] = set()


@cache
def library_of(name: str) -> str | None:
    """Return the library of an operator or function of this name; None if it belongs to none of `LIBRARIES`."""
    if _NOT_ATTENTION.fullmatch(name):
        return None
    return next((library for library, pattern in _PATTERNS.items() if pattern.fullmatch(name)), None)


def library_of_function(function: object) -> str | None:
    """Return to which of `LIBRARIES` a called function of torch belongs; None if to none of them."""
    if function in _STARTS_AUTOGRAD:
        return AUTOGRAD
    return library_of(str(getattr(function, "__name__", "")))


def record(library: str) -> None:
    """Record that a function of the library runs."""
    _seen.add(library)


def take_recorded() -> list[str]:
    """Return the libraries that ran since the last call of this function."""
    libraries = sorted(_seen)
    _seen.clear()
    return libraries
