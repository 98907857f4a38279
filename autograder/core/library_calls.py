"""Recognise libraries that an exercise may forbid by the names of their functions, and record those that run.

In grading, PyTorch's operators are replaced by versions that record their library. So it does not matter whether
Python, TorchScript, autograd, a hook, vmap, another thread or a method calls them. Calls of other functions cost
nothing. The student check replaces nothing.
"""

import re
import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn.attention import flex_attention

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
_IN_PYTHON = (
    (torch.nn.functional, "multi_head_attention_forward", LIBRARY_ATTENTION),
    (flex_attention, "flex_attention", LIBRARY_ATTENTION),
    (torch.distributions.SoftmaxTransform, "_call", LIBRARY_SOFTMAX),
    (forward_ad, "make_dual", AUTOGRAD),
)
"""Functions that need not call an operator of their library: module or class, name, and library."""
_registered: dict[str, torch.library.Library] = {}
"""Library objects by namespace. A registration lasts as long as its library object exists."""


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
