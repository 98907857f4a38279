"""Library functions that note that they run: PyTorch's operators, and functions that libraries write in Python.

The function is observed and not the call. So it does not matter whether Python, TorchScript, autograd, a hook, vmap,
another thread or a method calls it.
"""

import importlib
import inspect
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

from .library_calls import library_of, library_of_class, note

_INSTALLED = ("site-packages", "dist-packages")
_LATER = ("torch._refs.nn.functional", "torch._refs.special", "torch._decomp.decompositions", "torch.masked")
"""Modules that compute in Python what operators compute, and are not imported with torch."""

_MULTI_HEAD_ATTENTION = """multi_head_attention_forward(
    Tensor query, Tensor key, Tensor value, int embed_dim_to_check, int num_heads, Tensor? in_proj_weight,
    Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight,
    Tensor? out_proj_bias, bool training=True, Tensor? key_padding_mask=None, bool need_weights=True,
    Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None,
    Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, Tensor? static_v=None,
    bool average_attn_weights=True, bool is_causal=False) -> (Tensor, Tensor?)"""

_ENDING_IN_OPERATORS = ("torch._tensor", "torch._C", "torch._ops", "torch.nn.modules.")
"""Modules whose functions and methods end in operators that note it themselves, and may be compiled as they stand."""

_in_torchscript = torch.library.Library("observed", "DEF")
_observed: set[FunctionType] = set()

_APPLIED = {"forward", "_forward_impl", "__call__", "_call"}
"""By what a class that is named for what it computes computes it."""


def observe_functions() -> None:
    """Has the functions of installed packages note that they run, from now on; once is enough."""
    if _observed:
        return
    for name in _LATER:
        importlib.import_module(name)
    _keep_whole_in_torchscript(torch.nn.functional.multi_head_attention_forward, _MULTI_HEAD_ATTENTION)
    for module in list(sys.modules.values()):
        _observe(module)
    _observe_what_is_imported_later()


def _observe_what_is_imported_later() -> None:
    loads = SourceFileLoader.exec_module

    def load(loader: SourceFileLoader, module: ModuleType) -> None:
        loads(loader, module)
        _observe(module)

    SourceFileLoader.exec_module = load  # type: ignore[method-assign, assignment]


def _keep_whole_in_torchscript(function: Callable[..., Any], schema: str) -> None:
    """TorchScript compiles a function into what it consists of; in the place of this one it calls an operator."""
    name = _in_torchscript.define(schema)
    _in_torchscript.impl(name, function, "CompositeImplicitAutograd")
    torch.jit._builtins._register_builtin(function, f"observed::{name}")


def _is_installed(file: object) -> bool:
    return isinstance(file, str) and any(folder in file for folder in _INSTALLED)


def _observe(module: object) -> None:
    if not isinstance(module, ModuleType) or not _is_installed(getattr(module, "__file__", None)):
        return
    for name, thing in list(vars(module).items()):
        if issubclass(type(thing), type):  # `isinstance` asks the thing, and some of torch's warn then
            if thing.__module__ == module.__name__:
                _observe_methods(thing)
        elif callable(thing) and (library := library_of(name)):
            _observe_function(thing._init_fn if isinstance(thing, CustomOpDef) else inspect.unwrap(thing), library)


def _observe_methods(kind: type) -> None:
    """A method is known by its own name, or by that of its class: what a `SoftmaxTransform` is called for is one."""
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
    """Whether it may end in no operator of its name; those of `torch.nn.functional` do end in one, but for this."""
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
    needs = (note, library, original)
    function.__code__ = _noted.__code__.replace(
        co_consts=tuple(needs if constant == _NEEDS else constant for constant in _noted.__code__.co_consts),
        co_freevars=code.co_freevars,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=f"<{library}>",  # where TorchScript, which compiles what stands in a file, finds no source
    )


_NEEDS = "what it needs"


def _noted(*args: Any, **kwargs: Any) -> Any:
    """What the code of an observed function becomes; it finds what it needs among its constants."""
    needs: Any = "what it needs"
    tell, library, function = needs
    tell(library)
    return function(*args, **kwargs)


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
                _observe_operator(namespace, name, library)


def _observe_operator(namespace: str, name: str, library: str) -> None:
    full_name = f"{namespace}::{name}"
    for key, found_at in _WHERE_IT_IS_FOUND.items():
        if not torch._C._dispatch_has_kernel_for_dispatch_key(full_name, key):
            continue
        if key != found_at and torch._C._dispatch_has_kernel_for_dispatch_key(full_name, found_at):
            continue  # where it is found another kernel stands, which is observed itself
        place: Any = torch._C._parse_dispatch_key(found_at)  # not all of them are in the enumeration
        kernel = torch._C._dispatch_get_computed_kernel_for_dispatch_key(full_name, place)
        registry = _kept.setdefault(namespace, torch.library.Library(namespace, "IMPL"))
        registry.impl(name, _noted_kernel(kernel, library), key, with_keyset=True)


def _noted_kernel(kernel: Any, library: str) -> Callable[..., Any]:
    def noted(keys: Any, *args: Any, **kwargs: Any) -> Any:
        note(library)
        return kernel.call_boxed(keys, *args, **kwargs)

    return noted
