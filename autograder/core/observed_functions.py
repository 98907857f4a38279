"""Puts a note before the functions that libraries write in Python, which may end in no operator of that name.

`torch._refs.softmax` is exp, sum and a division; so is SciPy's, and `F.multi_head_attention_forward` may end in
products and a softmax. It is the function's code that is exchanged, not its name in some module: whoever holds the
function has the observed one.
"""

import importlib
import inspect
import sys
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
