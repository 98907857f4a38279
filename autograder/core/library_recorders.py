"""Versions of library functions that record that they run, regardless of the name or the way by which code calls them.

In grading, PyTorch's operators are replaced by versions that record their library. So it does not matter whether
Python, TorchScript, autograd, a hook, vmap, another thread or a method calls them. Calls of other functions cost
nothing. The student check replaces nothing.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn.attention import flex_attention

from .library_calls import AUTOGRAD, LIBRARY_ATTENTION, LIBRARY_SOFTMAX, library_of, record

_IN_PYTHON = (
    (torch.nn.functional, "multi_head_attention_forward", LIBRARY_ATTENTION),
    (flex_attention, "flex_attention", LIBRARY_ATTENTION),
    (torch.distributions.SoftmaxTransform, "_call", LIBRARY_SOFTMAX),
    (forward_ad, "make_dual", AUTOGRAD),
)
"""Functions that need not call an operator of their library: module or class, name, and library."""
_registered: dict[str, torch.library.Library] = {}
"""Library objects by namespace. A registration lasts as long as its library object exists."""


def observe_functions() -> None:
    """Let the functions that are written in Python, and autograd, record that they run; further calls do nothing."""
    engine_of: Any = torch.autograd.Variable
    if isinstance(engine_of._execution_engine, _RecordingEngine):
        return
    engine_of._execution_engine = _RecordingEngine(engine_of._execution_engine)
    for owner, name, library in _IN_PYTHON:
        setattr(owner, name, _recording_function(getattr(owner, name), library))


def _recording_function(function: Callable[..., Any], library: str) -> Callable[..., Any]:
    @wraps(function)
    def recording(*args: Any, **kwargs: Any) -> Any:
        record(library)
        return function(*args, **kwargs)

    return recording


class _RecordingEngine:
    """The engine of autograd, which records each backward pass that Python starts."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        """Record and run a backward pass."""
        record(AUTOGRAD)
        return self._engine.run_backward(*args, **kwargs)


_BACKENDS = [
    prefix + device for device in ("CPU", "CUDA") for prefix in ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor")
]
_KERNEL_KEYS = {
    **{key: key for key in [*_BACKENDS, "MkldnnCPU", "FuncTorchVmapMode"]},
    # Each of these stands for many keys; the kernel is read at one of them.
    "CompositeImplicitAutograd": "CPU",
    "CompositeExplicitAutograd": "CPU",
    "FuncTorchBatchedDecomposition": "FuncTorchBatched",
}
"""Dispatch keys of kernels that compute, each with the key at which it is read. Kernels of autograd call these."""


def observe_operators() -> None:
    """Let the operators record that they run, from now on, in this process and its forks; further calls do nothing."""
    if _registered:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that a kernel is replaced
        for full_name in torch._C._dispatch_get_all_op_names():
            namespace, _, name = full_name.partition("::")
            if library := library_of(name.partition(".")[0]):
                _observe_operator(namespace, name, library)


def _observe_operator(namespace: str, name: str, library: str) -> None:
    full_name = f"{namespace}::{name}"
    for key, read_at in _KERNEL_KEYS.items():
        if not torch._C._dispatch_has_kernel_for_dispatch_key(full_name, key):
            continue
        if key != read_at and torch._C._dispatch_has_kernel_for_dispatch_key(full_name, read_at):
            continue  # another kernel at that key is observed itself
        place: Any = torch._C._parse_dispatch_key(read_at)  # not all of them are in the enumeration
        kernel = torch._C._dispatch_get_computed_kernel_for_dispatch_key(full_name, place)
        registry = _registered.setdefault(namespace, torch.library.Library(namespace, "IMPL"))
        registry.impl(name, _recording_kernel(kernel, library), key, with_keyset=True)


def _recording_kernel(kernel: Any, library: str) -> Callable[..., Any]:
    def recording(keys: Any, *args: Any, **kwargs: Any) -> Any:
        record(library)
        return kernel.call_boxed(keys, *args, **kwargs)

    return recording
