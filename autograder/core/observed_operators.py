"""Puts a note before the kernels of the operators that an exercise may forbid.

The note stands in the dispatcher, below every way there is to an operator: a mode or a function that stands for it
in Python is passed by TorchScript, by other threads, by code that switches modes off, and by operators that decompose.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch

from .library_calls import library_of, note

_BACKENDS = [
    prefix + device for device in ("CPU", "CUDA") for prefix in ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor")
]
_WHERE_IT_IS_FOUND = {
    **{key: key for key in [*_BACKENDS, "MkldnnCPU", "FuncTorchVmapMode"]},
    # These stand for many keys; the kernel is the one that is found at this one of them.
    "CompositeImplicitAutograd": "CPU",
    "CompositeExplicitAutograd": "CPU",
    "FuncTorchBatchedDecomposition": "FuncTorchBatched",
}
"""The keys at which kernels that compute something are registered. Those of autograd lead to one of them."""

_kept: dict[str, torch.library.Library] = {}
"""A registration lasts as long as its library is kept."""


def observe_operators() -> None:
    """Has the operators note that they run, from now on, in this process and those that it forks; once is enough."""
    if _kept:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced is what is meant
        for full_name in torch._C._dispatch_get_all_op_names():
            namespace, _, name = full_name.partition("::")
            if library := library_of(name.partition(".")[0]):
                _observe(namespace, name, library)


def _observe(namespace: str, name: str, library: str) -> None:
    full_name = f"{namespace}::{name}"
    for key, found_at in _WHERE_IT_IS_FOUND.items():
        if not torch._C._dispatch_has_kernel_for_dispatch_key(full_name, key):
            continue
        if key != found_at and torch._C._dispatch_has_kernel_for_dispatch_key(full_name, found_at):
            continue  # where it is found another kernel stands, which is observed itself
        place: Any = torch._C._parse_dispatch_key(found_at)  # not all of them are in the enumeration
        kernel = torch._C._dispatch_get_computed_kernel_for_dispatch_key(full_name, place)
        registry = _kept.setdefault(namespace, torch.library.Library(namespace, "IMPL"))
        registry.impl(name, _noted(kernel, library), key, with_keyset=True)


def _noted(kernel: Any, library: str) -> Callable[..., Any]:
    def noted(keys: Any, *args: Any, **kwargs: Any) -> Any:
        note(library)
        return kernel.call_boxed(keys, *args, **kwargs)

    return noted
