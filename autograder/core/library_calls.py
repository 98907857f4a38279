"""Recognise libraries that an exercise may forbid by the names of their functions, and record those that run.

In grading, PyTorch's operators, and functions that libraries write in Python, are replaced by versions that record
their library. So it does not matter whether Python, TorchScript, autograd, a hook, vmap, another thread or a method
calls them. Calls of other functions cost nothing. The student check replaces nothing.
"""

import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

LIBRARY_SOFTMAX = "library softmax"
LIBRARY_ATTENTION = "library attention"
AUTOGRAD = "autograd"

_PATTERNS = {
    AUTOGRAD: re.compile(r"_make_dual(_copy)?|_softmax_backward_data"),
    LIBRARY_SOFTMAX: re.compile(r"\w*(soft(max|min)|log(cum)?sumexp)\w*", re.I),
    LIBRARY_ATTENTION: re.compile(
        r"\w*(attention|attn|sdpa_dense|_sfdp_pattern)\w*|_transformer_encoder_layer_fwd", re.I
    ),
}
_STARTS_AUTOGRAD = (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad)
"""Functions that start a backward pass, for the student check. In grading the engine records each pass."""
_CLASSES = {
    LIBRARY_SOFTMAX: re.compile(r"soft(max|min)|stickbreaking", re.I),
    LIBRARY_ATTENTION: re.compile(r"attention|attn", re.I),
}
LIBRARIES = _PATTERNS.keys()
"""The libraries that an exercise may forbid."""
_NOT_ATTENTION = re.compile(r"(register|activate|restore|list|current)_\w*")
"""Functions that choose a kernel and run none."""

_seen: set[str] = set()
_INSTALLED = ("site-packages", "dist-packages")
_NOT_IMPORTED = ("torch._refs.nn.functional", "torch._refs.special", "torch._decomp.decompositions", "torch.masked")
"""Modules with Python versions of operators, which torch does not import itself."""

_MULTI_HEAD_ATTENTION = """multi_head_attention_forward(
    Tensor query, Tensor key, Tensor value, int embed_dim_to_check, int num_heads, Tensor? in_proj_weight,
    Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight,
    Tensor? out_proj_bias, bool training=True, Tensor? key_padding_mask=None, bool need_weights=True,
    Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None,
    Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, Tensor? static_v=None,
    bool average_attn_weights=True, bool is_causal=False) -> (Tensor, Tensor?)"""

_ENDING_IN_OPERATORS = ("torch._tensor", "torch._C", "torch._ops", "torch.nn.modules.")
"""Modules whose functions call operators, which record themselves; TorchScript may compile these modules."""

_observed: set[FunctionType] = set()
_registered: dict[str, torch.library.Library] = {}
"""Library objects by namespace. A registration lasts as long as its library object exists."""

_APPLIED = {"forward", "_forward_impl", "__call__", "_call"}
"""Methods by which a class such as `SoftmaxTransform` computes."""


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


def library_of_class(name: str) -> str | None:
    """Return the library that a class of this name computes, such as `SoftmaxTransform`; None for other classes."""
    return next((library for library, pattern in _CLASSES.items() if pattern.search(name)), None)


def record(library: str) -> None:
    """Record that a function of the library runs."""
    _seen.add(library)


def take_recorded() -> list[str]:
    """Return the libraries that ran since the last call of this function."""
    libraries = sorted(_seen)
    _seen.clear()
    return libraries


def observe_functions() -> None:
    """Let the functions of installed packages record that they run, from now on; further calls do nothing."""
    if _observed:
        return
    for name in _NOT_IMPORTED:
        importlib.import_module(name)
    engine_of: Any = torch.autograd.Variable
    engine_of._execution_engine = _RecordingEngine(engine_of._execution_engine)
    _keep_whole_in_torchscript(torch.nn.functional.multi_head_attention_forward, _MULTI_HEAD_ATTENTION)
    for module in list(sys.modules.values()):
        _observe(module)
    _observe_what_is_imported_later()


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


def _observe_what_is_imported_later() -> None:
    loads = SourceFileLoader.exec_module

    def load(loader: SourceFileLoader, module: ModuleType) -> None:
        loads(loader, module)
        _observe(module)

    SourceFileLoader.exec_module = load  # type: ignore[method-assign, assignment]


@cache  # so that its registrations last
def _torchscript_library() -> torch.library.Library:
    """Return the library of operators that only TorchScript calls. It is not defined in a student's kernel."""
    return torch.library.Library("observed", "DEF")


def _keep_whole_in_torchscript(function: Callable[..., Any], schema: str) -> None:
    """Let TorchScript call this function as an operator, instead of compiling the functions that it calls."""
    name = _torchscript_library().define(schema)
    _torchscript_library().impl(name, function, "CompositeImplicitAutograd")
    torch.jit._builtins._register_builtin(function, f"observed::{name}")


def _is_installed(file: object) -> bool:
    return isinstance(file, str) and any(folder in file for folder in _INSTALLED)


def _observe(module: object) -> None:
    if not isinstance(module, ModuleType) or not _is_installed(getattr(module, "__file__", None)):
        return
    for name, thing in list(vars(module).items()):
        if issubclass(type(thing), type):  # `isinstance` reads `__class__`, and some objects of torch then warn
            if thing.__module__ == module.__name__:
                _observe_methods(thing)
        elif callable(thing) and (library := library_of(name)):
            _observe_function(thing._init_fn if isinstance(thing, CustomOpDef) else inspect.unwrap(thing), library)


def _observe_methods(kind: type) -> None:
    """Observe methods with the name of a library, and those by which a class with the name of a library computes."""
    named = library_of_class(kind.__name__)
    for name, method in list(vars(kind).items()):
        if isinstance(method, classmethod | staticmethod):
            method = method.__func__
        if isinstance(method, FunctionType) and (library := library_of(name) or (name in _APPLIED and named)):
            _observe_function(inspect.unwrap(method), library)


def _observe_function(function: object, library: str) -> None:
    if isinstance(function, FunctionType) and function not in _observed and _computes(function):
        _observed.add(function)
        _exchange_code(function, library)


def _computes(function: FunctionType) -> bool:
    """Return whether a function may compute without calling an operator of its name.

    Only one function of `torch.nn.functional` does.
    """
    if function.__module__ == "torch.nn.functional":
        return function is torch.nn.functional.multi_head_attention_forward
    if function.__module__.startswith(_ENDING_IN_OPERATORS):
        return False
    return _is_installed(function.__code__.co_filename)


def _exchange_code(function: FunctionType, library: str) -> None:
    code = function.__code__
    original = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    function.__dict__.setdefault("__signature__", inspect.signature(function))
    needs = (record, library, original)
    function.__code__ = _recording.__code__.replace(
        co_consts=tuple(needs if constant == _NEEDS else constant for constant in _recording.__code__.co_consts),
        co_freevars=code.co_freevars,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=f"<{library}>",  # a name without a file, so that TorchScript finds no source to compile
    )


_NEEDS = "what it needs"


def _recording(*args: Any, **kwargs: Any) -> Any:
    """Template of the code of an observed function: `_exchange_code` replaces the constant by the needed objects."""
    needs: Any = "what it needs"
    record, library, function = needs
    record(library)
    return function(*args, **kwargs)


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
