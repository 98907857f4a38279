"""Count the cost of a call, and detect computations that are not counted.

The call gets sealed tensors. They have no elements of their own, so code can only pass them to operators. Any other
access to the elements makes the call uncountable: operators that are not on the list, kernels written in Python,
elements that leave PyTorch, other threads, code that searches the interpreter for the real tensors.
"""
# ruff: noqa: SIM905 (a list of a hundred names is read more easily without its quotes)

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from threading import get_ident
from traceback import walk_stack, walk_tb
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .arguments import MAX_DEPTH, Arguments, map_nested, tensors_in
from .cost import LEFT, OPERATOR, THREAD, UNSEEN, CostCounter, Maximum
from .library_calls import library_of
from .run_trace import IsOwnFile, memory_id, name_of, own_line

_BITS, _BITS_FOR_AN_ELEMENT = 3200, 4
"""Limit for data that leaves PyTorch, as by `.item()` or `if`: 100 float32 elements, plus 4 bits per input element."""
_SEARCHES = {
    *("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    *("sys._current_frames", "sys.settrace", "sys.setprofile"),
}
"""Audit events of code that can reach the objects of its callers."""
_FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
_STEP_BY_STEP = frozenset(
    """
    _aminmax _index_put_impl _is_all_true _is_any_true _local_scalar_dense _log_softmax _logcumsumexp
    _masked_softmax _reshape_alias _safe_softmax _scaled_dot_product_attention_math
    _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable _softmax _stack
    _to_copy _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_view addbmm addmm addmv addr
    alias allclose arange argsort as_strided_copy as_strided_scatter baddbmm bernoulli bincount block_diag bmm
    bucketize cat constant_pad_nd copy count_nonzero cummax cummin cumprod cumsum diag diag_embed diagonal_copy
    diagonal_scatter dot dropout embedding empty empty_like empty_permuted empty_strided expand_copy
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
"""Operators whose cost `cost` knows, and that PyTorch tags neither as pointwise, nor as reductions, nor as views."""


class Sealed(torch.Tensor):
    """A tensor without elements, which stands for a real one. Operators compute with the real one, and are counted.

    Counting needs no dispatch mode, which code could switch off, and works in every thread.
    """

    __slots__ = ("behind",)
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error instead of letting PyTorch use a null pointer."""
        raise RuntimeError("This tensor has no memory of its own.")

    data_ptr = __dlpack__ = share_memory_ = apply_ = map_ = map2_ = _refuse

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"tensor(..., size={tuple(self.shape)})"

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form and self.dim() == 0 else repr(self)

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self.clone()


_behind = Sealed.__dict__["behind"]
"""Descriptor that returns the counter and the tensor behind a sealed tensor. Only functions below hold it, as a default
value, because Python audits access to default values."""
del Sealed.behind  # type: ignore[attr-defined]


class SealedCostCounter(CostCounter):
    """Counts the cost of a call, and notes the first computation that it cannot count."""

    def __init__(self, own: IsOwnFile, given: Sequence[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> None:
        super().__init__(own, given, parameters)
        self._own = own
        self._bits = _BITS + _BITS_FOR_AN_ELEMENT * sum(tensor.numel() for tensor in given)
        """Number of bits that may still leave PyTorch."""
        self._thread = get_ident()
        self.is_busy = False
        self._outside: dict[int, StorageWeakRef] = {}
        """Memory of tensors that are neither sealed nor views of sealed ones."""

    def uncount(self, why: str) -> None:
        """Note a reason for which the call is not countable, with its line, unless there is an earlier reason."""
        if not self.cost.uncounted.count:
            self.cost.uncounted = Maximum(1, why)
            self.cost.uncounted = Maximum(1, why, *own_line(self._own))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        behind: Any = _behind,
    ) -> Any:
        sealed = list[tuple[torch.Tensor, torch.Tensor]]()

        def opened(value: Any) -> Any:
            if type(value) is Sealed:
                counting, tensor = behind.__get__(value)
                if counting is self:
                    sealed.append((tensor, value))
                    return tensor
            return value

        plain: tuple[Any, ...] = tuple(
            [map_nested(one, opened) if isinstance(one, list | tuple) else opened(one) for one in args]
        )
        named = {name: map_nested(value, opened) for name, value in kwargs.items()} if kwargs else {}
        if self not in _running:  # the code kept the tensor after its call
            return func(*plain, **named)
        facts = _facts_of(func)
        if not facts.is_counted or (facts.is_view_of_dtype and plain[0].dtype != plain[1]):
            self.uncount(OPERATOR)
        elif get_ident() != self._thread:
            self.uncount(THREAD)
        elif facts.is_in_python or any(kind is not Sealed for kind in types):  # they get the unsealed tensors
            self.uncount(UNSEEN)
        was, self.is_busy = self.is_busy, True
        try:
            try:
                made = super().__torch_dispatch__(func, types, plain, named)
            except Exception:
                self.uncount(LEFT)  # an error message can hold elements
                raise
            if facts.is_sized_by_elements:
                for tensor in tensors_in(made):
                    self.leave(list(tensor.shape), 0)
            if facts.lifts:
                made = made.clone()  # it may be in memory from outside
                self.memory.take(made)
            if facts.changes_view:
                with torch._C._DisableTorchDispatch():
                    func(*args, **(kwargs or {}))
            if sealed and facts.written:
                self._check_written(facts.written, plain, named, sealed)
            if type(made) is torch.Tensor:
                return self._resealed(made, sealed)
            if isinstance(made, bool | int | float):
                self.leave(made, 8 * plain[0].element_size())
            return map_nested(made, lambda value: self._resealed(value, sealed))
        finally:
            self.is_busy = was

    def _check_written(
        self,
        places: Sequence[tuple[int, str]],
        plain: tuple[Any, ...],
        named: Mapping[str, Any],
        sealed: Sequence[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        """Note whether an operator wrote outside of sealed tensors. Raises RuntimeError if it resized one."""
        for tensor in tensors_in([plain[at] if at < len(plain) else named.get(name) for at, name in places]):
            seal = next((seal for own, seal in sealed if own is tensor), None)
            if seal is None or memory_id(tensor) in self._outside:
                self.uncount(LEFT)
            elif seal.shape != tensor.shape:
                raise RuntimeError("A sealed tensor cannot be resized.")

    def _resealed(self, value: Any, sealed: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Any:
        """Return the sealed tensor for an operator's result, which may be one of its operands."""
        for tensor, seal in sealed:
            if tensor is value:
                return seal
        return self._sealed(value)

    def _sealed(self, value: Any, *, behind: Any = _behind) -> Any:
        if type(value) is not torch.Tensor or value.layout != torch.strided:
            return value
        layout = value.stride(), value.storage_offset()
        new = torch.Tensor._make_wrapper_subclass(Sealed, value.shape, *layout, dtype=value.dtype, device=value.device)
        behind.__set__(new, (self, value))
        return new

    def count(
        self, func: Any, factors: list[torch.Tensor], operands: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        if any(map(torch.Tensor.is_complex, (*operands, *made))):
            self.uncount(OPERATOR)
        super().count(func, factors, operands, made)

    def leave(self, value: Any, size: int) -> None:
        """Note that elements leave PyTorch. size: the bits of a float."""
        if isinstance(value, list):
            for one in value:
                self.leave(one, size)
            return
        self._bits -= 1 if isinstance(value, bool) else 1 + value.bit_length() if isinstance(value, int) else size
        if self._bits < 0:
            self.uncount(LEFT)

    def take_foreign(self, tensor: torch.Tensor) -> None:
        if tensor.layout == torch.strided:
            self._outside[memory_id(tensor)] = StorageWeakRef(tensor.untyped_storage())
        super().take_foreign(tensor)

    def run(self, call: Callable[..., Any], arguments: Arguments, once: bool, *, behind: Any = _behind) -> Any:
        """Return the result of the call. If it fails with sealed tensors, it is repeated with the real ones."""

        def opened(value: Any, depth: int = 0) -> Any:
            if type(value) is Sealed and behind.__get__(value)[0] is self:
                return behind.__get__(value)[1].clone()
            if isinstance(value, torch.Tensor):
                self.uncount(LEFT if type(value) is torch.Tensor else UNSEEN)  # a class may compute when it is read
            elif isinstance(value, list | tuple) and depth < MAX_DEPTH:
                return (list if isinstance(value, list) else tuple)(opened(one, depth + 1) for one in value)
            elif isinstance(value, dict) and depth < MAX_DEPTH:
                return {name: opened(one, depth + 1) for name, one in value.items()}
            return value

        _install_audit_hook()
        tracers = sys.gettrace(), sys.getprofile()
        sys.settrace(None)  # a tracer is given frames
        sys.setprofile(None)
        _running.append(self)
        try:
            copies = arguments.mapped(lambda arg: arg.clone() if isinstance(arg, torch.Tensor) else arg)
            for tensor in [*tensors_in(copies.positional), *tensors_in(dict(copies.named))]:
                self.memory.give(tensor)
            return opened(super().run(call, copies.mapped(self._sealed), once))
        except Exception as error:
            self.is_busy = True
            lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
            at = next((one for one in reversed(lines) if self._own(one[0])), ("", 0))
            uncounted = self.cost.uncounted if self.cost.uncounted.count else Maximum(1, LEFT, *at)
        finally:
            _running.remove(self)
            sys.settrace(tracers[0])
            sys.setprofile(tracers[1])
        again = CostCounter(self._own, list(tensors_in(arguments.positional)), {})
        try:
            return again.run(call, arguments, once)
        finally:
            self.cost = replace(again.cost, uncounted=uncounted)


def _dispatched(
    cls: Any,
    func: Any,
    types: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    behind: Any = _behind,
) -> Any:
    """Count an operator of sealed tensors: PyTorch calls this if no dispatch mode is active."""
    first = next(one for one in tensors_in([args, kwargs]) if type(one) is Sealed)
    return behind.__get__(first)[0].__torch_dispatch__(func, types, args, kwargs)


def _tolist(self: Sealed, *, behind: Any = _behind) -> Any:
    counting, tensor = behind.__get__(self)
    value = tensor.tolist()
    counting.leave(value, 8 * tensor.element_size())
    return value


Sealed.__torch_dispatch__ = classmethod(_dispatched)  # type: ignore[assignment]
Sealed.tolist = _tolist  # type: ignore[method-assign, assignment]
del _behind


class _Facts(NamedTuple):
    """An operator's properties."""

    is_counted: bool
    is_in_python: bool
    is_view_of_dtype: bool
    lifts: bool
    """True if the operator makes a tensor from data outside PyTorch."""
    changes_view: bool
    is_sized_by_elements: bool
    """True if the sizes of the operator's result depend on elements of its operands."""
    written: list[tuple[int, str]]
    """Position and name of each operand that the operator writes into."""


@cache
def _facts_of(func: Any) -> _Facts:
    is_overload = isinstance(func, torch._ops.OpOverload)
    arguments = enumerate(func._schema.arguments if is_overload else ())
    return _Facts(
        _is_counted(func),
        is_overload and _is_in_python(func),
        func is torch.ops.aten.view.dtype,
        name_of(func).startswith("lift"),
        is_overload and torch.Tag.inplace_view in func.tags,
        is_overload and torch.Tag.dynamic_output_shape in func.tags,
        [(at, one.name) for at, one in arguments if one.alias_info is not None and one.alias_info.is_write],
    )


_running = list[SealedCostCounter]()
"""The active counter, if any."""


@cache
def _install_audit_hook() -> None:
    """Install an audit hook against code that searches its callers' objects, or reads memory by address."""

    def audit(event: str, args: tuple[Any, ...]) -> None:
        for counting in _running:
            if not counting.is_busy:
                counting.is_busy = True
                if _is_search(event, args):
                    counting.uncount(UNSEEN)
                counting.is_busy = False

    sys.addaudithook(audit)


def _is_search(event: str, args: tuple[Any, ...]) -> bool:
    match event:
        case "object.__getattr__":
            return args[1] in _FRAMES or getattr(args[0], "__globals__", None) is globals()
        case "sys._getframe":  # installed packages need it when they are imported
            files = (frame.f_code.co_filename for frame, _ in walk_stack(sys._getframe(2)))
            caller = next(file for file in files if file != inspect.__file__)
            return not any(folder in caller for folder in (sys.base_prefix, "site-packages", "dist-packages"))
    return event in _SEARCHES or event.startswith("ctypes.")


def _is_counted(func: Any) -> bool:
    """Return whether `cost` can count the steps of an operator; true only for PyTorch's own operators."""
    if not isinstance(func, torch._ops.OpOverload) or func.namespace not in ("aten", "prims"):
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


def _is_in_python(func: Any) -> bool:
    """Return whether a kernel written in Python replaces PyTorch's own; those of `library_recorders` only record."""
    if library_of(name_of(func)):
        return False
    kernels = torch._C._dispatch_dump(func.name()).splitlines()
    return any(line.startswith(("CPU:", "Composite")) and ":: (none)" in line for line in kernels)
