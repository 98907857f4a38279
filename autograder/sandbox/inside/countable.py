"""Check that every computation of a call is counted. `cost` counts the operators that it sees in this thread.

Computations that it does not see make a call uncountable: operators that are not on the list, elements that leave
PyTorch, other threads, code that switches dispatch modes off, kernels that call others. The check takes about a
millisecond.
"""
# ruff: noqa: SIM905 (a list of a hundred names is read more easily without its quotes)

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from time import process_time, thread_time
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .cost import Counting, Most
from .nesting import tensors_in
from .operators import name_of
from .tracing import Own

OPERATOR = "operator"
LEFT = "left"
THREAD = "thread"
UNSEEN = "unseen"
"""Reasons for which a call is not countable; `compare.uncounted` has a message for each."""

_FEW = 16
"""Elements of constants that an answer may bring with it, of all together."""
_MAX_ITEMS, _ELEMENTS_FOR_AN_ITEM = 100, 8
"""Limit for elements read one by one, as by `.item()`: 100, plus one for every 8 elements of the call's inputs."""
_THREADS_SECONDS = 50e-6
"""CPU time that other threads may take."""
_CLOCKS_SECONDS, _MAX_READINGS = 5e-6, 100
"""Largest time between the readings of two clocks, and the number of attempts to read them that close together."""
_STEP_BY_STEP = frozenset(
    """
    _aminmax _index_put_impl _is_all_true _is_any_true _local_scalar_dense _log_softmax _logcumsumexp
    _masked_softmax _reshape_alias _safe_softmax _scaled_dot_product_attention_math
    _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable _softmax _stack
    _to_copy _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_view addbmm addmm addmv addr
    alias allclose arange argsort as_strided_copy as_strided_scatter baddbmm bernoulli bincount block_diag bmm
    bucketize cat constant_pad_nd copy count_nonzero cummax cummin cumprod cumsum diag diag_embed diagonal_copy
    diagonal_scatter dist dot dropout embedding empty empty_like empty_permuted empty_strided expand_copy
    exponential eye fill fill_diagonal flip floor_divide full full_like gather ger glu histc index index_add
    index_copy index_fill index_put index_reduce index_select is_nonzero is_same_size isclose kthvalue layer_norm
    lift lift_fresh lift_fresh_copy linalg_vector_norm linspace log_sigmoid_forward log_softmax logcumsumexp
    logspace masked_scatter masked_select median mm mode multinomial mv nanquantile narrow_copy native_dropout
    native_layer_norm new_empty new_empty_strided new_full new_ones new_zeros nonzero normal normal_functional
    one_hot ones ones_like outer permute_copy promote_types put quantile rand rand_like randint randint_like randn
    randn_like random randperm range renorm repeat repeat_interleave resize resolve_conj resolve_neg result_type
    rms_norm roll rot90 scalar_tensor scatter scatter_add scatter_reduce searchsorted select_copy select_scatter set
    slice_copy slice_scatter softmax sort split_copy squeeze_copy stack t_copy take take_along_dim topk trace
    transpose_copy tril tril_indices triu triu_indices unbind_copy unfold_copy uniform unsafe_split
    unsafe_split_with_sizes unsqueeze_copy vdot view_copy zero zeros zeros_like
    """.split()
)
"""Operators whose steps `cost` knows, and that PyTorch marks neither as pointwise, nor as reductions, nor as views."""
_WAYS_OUT = {
    getattr(torch.Tensor, name)
    for name in (
        *("numpy", "tolist", "__array__", "data_ptr", "__dlpack__", "untyped_storage", "storage", "_typed_storage"),
        *("share_memory_", "map_", "map2_", "apply_"),
    )
}
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addmv", "dot")
_COUNTED_PRODUCTS = frozenset({*_PRODUCTS, "mv", "vdot"})
_WITNESSED = (
    *(f"{name}{overload}" for name in _PRODUCTS for overload in ("", ".out", "_")),
    *(f"{name}{overload}" for name in ("exp", "exp2", "expm1", "elu", "cumsum") for overload in ("", ".out", "_")),
    *("sigmoid", "tanh", "log", "sqrt", "amax", "maximum", "sum.dim_IntList", "sum.IntList_out", "cat", "cat.out"),
    *("pow.Tensor_Scalar", "_softmax", "_addmm_activation", "_embedding_bag", "_embedding_bag_forward_only"),
)
"""Operators that no attention does without: their kernels say when they run, whoever calls them. None takes a Python
number for a tensor, which a kernel in Python could not pass on."""


class Countable(Counting):
    """Counts what a call costs, and notes what it cannot count."""

    def __init__(self, own: Own, given: Sequence[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> None:
        super().__init__(own, given, parameters)
        self._max_items = _MAX_ITEMS + sum(tensor.numel() for tensor in given) // _ELEMENTS_FOR_AN_ITEM
        self._thread = get_ident()
        self._products = 0
        """Number of matrix products that the mode has seen, minus the number of their kernels that ran."""
        self._is_in_operator = False
        self._items = 0
        self._foreign = 0

    def uncount(self, why: str) -> None:
        """Note the first reason for which the call is not countable, with the line."""
        if not self.cost.uncounted.count:
            self.cost.uncounted = Most(1, why, *self.place())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = name_of(func)
        if not _is_counted(func) or _changes_meaning_of_bits(func, args):
            self.uncount(OPERATOR)
        if torch._C._is_torch_function_all_disabled():
            self.uncount(UNSEEN)
        self._products += name.rstrip("_") in _COUNTED_PRODUCTS
        was, self._is_in_operator = self._is_in_operator, True
        try:
            made = super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            self._is_in_operator = was
        if name.startswith("lift") and made.numel() > _FEW and made.is_floating_point():
            self.uncount(LEFT)
        return made

    def count(
        self, func: Any, factors: list[torch.Tensor], operands: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        if any(map(torch.is_complex, operands)):
            self.uncount(OPERATOR)
        self._items += name_of(func) == "_local_scalar_dense" and factors[0].is_floating_point()
        if self._items > self._max_items:
            self.uncount(LEFT)
        super().count(func, factors, operands, made)

    def take_foreign(self, tensor: torch.Tensor) -> None:
        """Count an operand from elsewhere. Masks and positions may be from elsewhere, but few float elements."""
        if tensor.layout != torch.strided:
            self._foreign += _FEW + 1
        elif tensor.is_floating_point():
            self._foreign += tensor.numel()
        if self._foreign > _FEW:
            self.uncount(LEFT)
        super().take_foreign(tensor)

    @contextmanager
    def watching(self) -> Iterator[None]:
        with _WaysOut(self), _witnesses(self._witness), self:
            others = _other_threads_seconds()
            yield
            others = _other_threads_seconds() - others
        if others > _THREADS_SECONDS:
            self.uncount(THREAD)
        if self._products < 0:
            self.uncount(UNSEEN)

    def finish(self, value: Any) -> None:
        for tensor in tensors_in(value):
            if tensor.layout != torch.strided or not self.memory.knows(tensor):
                self.uncount(LEFT)
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):  # a class of its own may compute when it is read
                self.uncount(UNSEEN)

    def _witness(self, is_product: bool) -> None:
        """A kernel runs: for an operator that the mode has seen, or unseen by it."""
        self._products -= is_product
        if get_ident() != self._thread:
            self.uncount(THREAD)
        elif not self._is_in_operator:
            self.uncount(UNSEEN)


def _changes_meaning_of_bits(func: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a view makes integers of the bits of floats, or floats of those of integers."""
    return func is torch.ops.aten.view.dtype and args[0].is_floating_point() != args[1].is_floating_point


@cache
def _is_counted(func: Any) -> bool:
    """Return whether `cost` can count the steps of an operator; true only for PyTorch's own operators."""
    if getattr(func, "namespace", "") not in ("aten", "prims"):
        return False
    name = name_of(func).removesuffix("_")
    return func.is_view or name in _STEP_BY_STEP or _is_marked(name)


@cache
def _is_marked(name: str) -> bool:
    """Return whether PyTorch tags any overload of an operator as pointwise, reduction or in-place view."""
    packets = [getattr(torch.ops.aten, one, None) for one in (name, f"{name}_")]
    overloads = [getattr(packet, one) for packet in packets if packet for one in packet.overloads()]
    marks = {torch.Tag.pointwise, torch.Tag.reduction, torch.Tag.inplace_view}
    return any(not marks.isdisjoint(overload.tags) for overload in overloads)


class _WaysOut(TorchFunctionMode):
    """Notes where elements leave PyTorch, which no operator shows."""

    def __init__(self, counting: Countable) -> None:
        super().__init__()
        self._counting = counting

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _WAYS_OUT and args[0].dtype != torch.bool:
            most = 1 if args[0].is_floating_point() or args[0].is_complex() else _FEW
            if args[0].numel() > most:
                self._counting.uncount(LEFT)
        return func(*args, **(kwargs or {}))


def _other_threads_seconds() -> float:
    """The CPU time of all threads of this process but this one.

    An interrupt between two readings takes this thread's time: so the clocks are read until they are close together.
    """
    for _ in range(_MAX_READINGS):
        before, of_process, after = thread_time(), process_time(), thread_time()
        if after - before < _CLOCKS_SECONDS:
            break
    return of_process - before


@contextmanager
def _witnesses(witness: Callable[[bool], None]) -> Iterator[None]:
    """Have the kernels of some operators say that they run, in every thread and below every mode, for a while."""
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is replaced is what is meant
            for name in _with_kernels():
                kernel = torch._C._dispatch_get_computed_kernel_for_dispatch_key(
                    f"aten::{name}", torch._C.DispatchKey.CPU
                )
                is_product = name.partition(".")[0].rstrip("_") in _PRODUCTS
                library.impl(name, _witnessed(kernel, witness, is_product), "CPU", with_keyset=True)
        yield
    finally:
        library._destroy()


@cache
def _with_kernels() -> list[str]:
    """Return the names in `_WITNESSED` for which this version of PyTorch has a CPU kernel."""
    existing = set(torch._C._dispatch_get_all_op_names())
    names = [name for name in _WITNESSED if f"aten::{name}" in existing]
    return [name for name in names if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CPU")]


def _witnessed(kernel: Any, witness: Callable[[bool], None], is_product: bool) -> Callable[..., Any]:
    def witnessed(keys: Any, *args: Any, **kwargs: Any) -> Any:
        witness(is_product)
        return kernel.call_boxed(keys, *args, **kwargs)

    return witnessed
