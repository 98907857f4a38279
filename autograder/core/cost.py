"""Cost of a call, counted instead of timed: operations, tensor sizes and projected rows. Limits, and their messages.

A dispatch mode sees each operator, so the counts are the same on every machine.

- Operations: 2 for each multiply-add of a matrix product, like PyTorch's FlopCounterMode. An operator that multiplies
  and adds elements counts 2 for each. Any other operator counts 1 for each element that it reads or returns, whichever
  are more. Views are free.
- Tensors count by their memory: an expanded tensor is as large as the tensor that it repeats, and a view as large as
  its base. A complex element and an integer of eight bytes count as two elements. Memory of the call's arguments and of
  its module's parameters and buffers counts only as far as it grows.
- Rows: the number of rows with which each two-dimensional parameter is multiplied. A copy of a parameter, or several
  parameters concatenated, count as the parameters themselves.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .arguments import Arguments, tensors_in
from .run_trace import IsOwnFile, OperatorMode, memory_id, name_of, operands_in, own_line

_expired = torch.UntypedStorage._expired
"""Returns whether memory was freed, like `StorageWeakRef.expired`, but in a third of the time."""
_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "addbmm"}
_VECTOR_PRODUCTS = {"mv", "addmv", "dot", "vdot"}
_TWO_FOR_AN_ELEMENT = {"addcmul", "addcdiv", "addr", "lerp"}
"""Operators that multiply and add elements."""
_FREE = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize", "set",
    "alias", "lift_fresh", "lift", "_reshape_alias", "detach", "resolve_conj", "resolve_neg",
}  # fmt: skip
"""Operators that compute nothing."""
_FUSED_ATTENTION = {
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
}  # fmt: skip
"""Operators that compute scores and context without a tensor of the scores."""


@dataclass(frozen=True)
class Maximum:
    """The maximum of a quantity during a call, and the line at which it occurred."""

    count: int = 0
    of: str = ""
    """Shape of the tensor, or name of the parameter."""
    file: str = ""
    line: int = 0


@dataclass
class Cost:
    """Cost of one call. Tensors are counted in elements."""

    operations: int = 0
    largest: Maximum = field(default_factory=Maximum)
    """The largest tensor."""
    alive: Maximum = field(default_factory=Maximum)
    """All tensors that exist at the same time, to within one percent."""
    rows: Maximum = field(default_factory=Maximum)
    """Rows of the parameter that is multiplied with the most rows."""
    uncounted: Maximum = field(default_factory=Maximum)
    """The first computation that was not counted, so that the counts may be too small: its reason and its line."""

    def packed(self) -> tuple[Any, ...]:
        """Return the fields of the cost and of each `Maximum` in their order, as a worker sends them."""
        maxima = (self.largest, self.alive, self.rows, self.uncounted)
        return self.operations, *((most.count, most.of, most.file, most.line) for most in maxima)


class MeasuredCall(NamedTuple):
    """A call's cost, and what it returned."""

    cost: Cost
    value: Any


class _Memory:
    """The memory of all live tensors of a call."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self._given: dict[int, tuple[StorageWeakRef, int]] = {}
        self._total = 0

    def give(self, tensor: torch.Tensor) -> None:
        """Register the memory of a tensor that existed before the call, which does not count."""
        self._given[memory_id(tensor)] = StorageWeakRef(tensor.untyped_storage()), _numbers(tensor)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor's memory was registered by `give` or `take`."""
        return (key := memory_id(tensor)) in self._given or key in self._held

    def take(self, tensor: torch.Tensor) -> int:
        """Count a tensor's memory if it is new or has grown. Return its number of elements; 0 if nothing is new."""
        key = memory_id(tensor)  # not reused for other memory while a weak reference exists
        numbers = _numbers(tensor)
        if key in self._given:
            numbers -= self._given[key][1]
        before = self._held[key][1] if key in self._held else 0
        if numbers <= before:
            return 0
        self._held[key] = StorageWeakRef(tensor.untyped_storage()), numbers
        self._total += numbers - before
        return numbers

    def more_than(self, most: int) -> int:
        """Return the number of live elements if it exceeds `most`, else 0.

        Freed memory is searched only if the total including it exceeds `most`, because the search is slow.
        """
        if self._total <= most + most // 100:
            return 0
        for key, (memory, numbers) in list(self._held.items()):
            if _expired(memory.cdata):
                del self._held[key]
                self._total -= numbers
        return self._total if self._total > most else 0


class CostCounter(OperatorMode):
    """Counts the cost of all operators that run in its context."""

    def __init__(self, own: IsOwnFile, given: Sequence[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.cost = Cost()
        self.memory = _Memory()
        self._own = own
        self._rows: dict[str, float] = {}
        self._parameters: dict[int, frozenset[str]] = {}
        """Names of parameters, by the id of a memory whose tensor was computed only from them."""
        self._derived: list[StorageWeakRef] = []
        """Memory of tensors computed from parameters: weak references, so that no id is reused for other memory."""
        self._sizes = {name: parameter.numel() for name, parameter in parameters.items()}
        for tensor in given:
            self.memory.give(tensor)
        for name, parameter in parameters.items():
            self.memory.give(parameter)
            if parameter.dim() == 2:
                self._parameters[memory_id(parameter)] = frozenset({name})

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():  # the call does not include the counting
            made = [given] if isinstance(given, torch.Tensor) else list(tensors_in(given))
            factors = operands_in(args)
            operands = [*factors, *operands_in(kwargs.values())] if kwargs else factors
            for tensor in operands:
                if tensor.layout != torch.strided or not self.memory.knows(tensor):
                    self.take_foreign(tensor)
            for tensor in made:
                self._take(tensor)
            self.count(func, factors, operands, made)
        return given

    def run(self, call: Callable[..., Any], arguments: Arguments, once: bool) -> Any:
        """Return the result of the call, and count its operators. once: see `measure_cost`."""
        with torch.no_grad(), self:
            return (_one_by_one(arguments) if once else arguments).apply(call)

    def take_foreign(self, tensor: torch.Tensor) -> None:
        """Count an operand that is neither an argument nor the result of an operator of this call."""
        self._take(tensor)

    def _take(self, tensor: torch.Tensor) -> None:
        if tensor.layout != torch.strided:
            return
        cost = self.cost
        if numbers := self.memory.take(tensor):
            if numbers > cost.largest.count:
                cost.largest = Maximum(numbers, str(tuple(tensor.shape)), *own_line(self._own))
            if alive := self.memory.more_than(cost.alive.count):
                cost.alive = Maximum(alive, "", *own_line(self._own))

    def count(
        self, func: Any, factors: list[torch.Tensor], operands: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        """Count the operations of an operator. factors: its positional operands."""
        name = name_of(func).removesuffix("_")
        if name in _PRODUCTS or name in _VECTOR_PRODUCTS:
            one, other = factors[-2:]  # a summand of the product comes before them
            self.cost.operations += 2 * one.numel() * (other.shape[-1] if name in _PRODUCTS else 1)
            self._project(one, other)
            return
        if name == "mul" and self._parameters:
            self._project_by_elements(operands, made)
        self._derive(operands, made)
        if name in _FREE or getattr(func, "is_view", False):
            return
        if name in _FUSED_ATTENTION:
            queries, keys, values = factors[:3]
            self.cost.operations += 2 * queries[..., 0].numel() * keys.shape[-2] * (keys.shape[-1] + values.shape[-1])
            return
        each = 2 if name in _TWO_FOR_AN_ELEMENT else 1
        self.cost.operations += each * max((tensor.numel() for tensor in (*operands, *made)), default=0)

    def _project(self, one: torch.Tensor, other: torch.Tensor) -> None:
        for weight, rows in ((one, other), (other, one)):
            within = weight.shape[-1] if weight is one else weight.shape[-2] if weight.dim() > 1 else weight.shape[0]
            names = sorted(self._parameters.get(memory_id(weight), ()))
            whole = sum(self._sizes[name] for name in names)
            # A part of a parameter counts as that part, so that several heads in turn count as all at once.
            self._add_rows(names, rows.numel() / max(within, 1) * weight.numel() / max(whole, 1))

    def _add_rows(self, names: Iterable[str], count: float) -> None:
        for name in names:
            self._rows[name] = self._rows.get(name, 0.0) + count
            if (rows := math.ceil(self._rows[name] - 1e-6)) > self.cost.rows.count:
                self.cost.rows = Maximum(rows, name, *own_line(self._own))

    def _project_by_elements(self, operands: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Count the rows of an elementwise product, `x.unsqueeze(-2) * weight`; a sum makes it a matrix product."""
        size = sum(tensor.numel() for tensor in made)
        for weight in operands:
            names = sorted(self._parameters.get(memory_id(weight), ()))
            if names and size > weight.numel():
                self._add_rows(names, size / max(sum(self._sizes[name] for name in names), 1))

    def _derive(self, operands: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Let results computed only from parameters, or from a parameter and a number, count as these parameters."""
        if not operands or not self._parameters:
            return
        each = [self._parameters.get(memory_id(tensor)) for tensor in operands]
        if not any(each):
            return
        is_whole = all(each)
        for tensor in made:
            pairs = zip(operands, each, strict=True)
            chosen = [names or () for one, names in pairs if is_whole or one.numel() == tensor.numel()]
            names = frozenset[str]().union(*chosen)
            if names and self._parameters.setdefault(memory_id(tensor), names) is names:
                self._derived.append(StorageWeakRef(tensor.untyped_storage()))


def measure_cost(
    call: Callable[..., Any],
    arguments: Arguments,
    function: Any,
    own: IsOwnFile,
    *,
    once: bool = False,
    counting: type[CostCounter] = CostCounter,
) -> MeasuredCall:
    """Measure the cost and result of a call without gradients, because autograd keeps tensors that the call drops.

    function: the called function or module. The memory of a module's parameters and buffers does not count.
    own: returns whether a file is the student's code. once: pass each list and tuple as a generator of copies, so that
    the tensors that the code keeps are counted. counting: the counter's class.
    """
    is_module = isinstance(function, torch.nn.Module)
    given = [*tensors_in(arguments.positional), *tensors_in(dict(arguments.named))]
    given += list(function.buffers()) if is_module else []
    counted = counting(own, given, dict(function.named_parameters()) if is_module else {})
    value = counted.run(call, arguments, once)
    return MeasuredCall(counted.cost, value)


def _one_by_one(arguments: Arguments) -> Arguments:
    """Return the arguments with each list and tuple as a generator of copies."""

    def copies(values: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        for value in values:
            yield value.clone()

    positional = (copies(arg) if isinstance(arg, list | tuple) else arg for arg in arguments.positional)
    return Arguments(tuple(positional), arguments.named)


def _numbers(tensor: torch.Tensor) -> int:
    """Return the number of elements in a tensor's memory; an eight-byte integer or complex number counts as two."""
    has_room_for_two = tensor.is_complex() or tensor.dtype in (torch.int64, torch.uint64)
    return tensor.untyped_storage().nbytes() // tensor.element_size() * (2 if has_room_for_two else 1)


Limits = Mapping[str, int]
"""Maximum by quantity: `largest` and `alive` in elements, `rows`, `operations`. A missing quantity has no limit."""
LineInWords = Callable[[Maximum], str]
"""Returns the line of a maximum in words, such as ` in line 5`; an empty string if the line is unknown."""


def exceeded_limits(cost: Cost, limits: Limits) -> list[str]:
    """Return the names of the limits that a call exceeds."""
    spent = {
        "largest": cost.largest.count,
        "alive": cost.alive.count,
        "rows": cost.rows.count,
        "operations": cost.operations,
    }
    return [name for name, most in limits.items() if spent[name] > most]


def exceeded_message(cost: Cost, limits: Limits, at: LineInWords) -> str:
    """Return the message on the first limit that a call exceeds; empty if it exceeds none."""
    for name in exceeded_limits(cost, limits):
        most = limits[name]
        match name:
            case "largest":
                found = cost.largest
                return f"The code makes a tensor of shape {found.of}{at(found)}: {_elements(found, most)}"
            case "alive":
                return f"The tensors in memory at the same time{at(cost.alive)} have {_elements(cost.alive, most)}"
            case "rows":
                found = cost.rows
                return f"`{found.of}` is multiplied with {found.count:,} rows{at(found)}; {most:,} are needed."
        return f"The call takes {cost.operations:,} operations; {most:,} are enough."
    return ""


def _elements(found: Maximum, most: int) -> str:
    return f"{found.count:,} numbers; {most:,} are enough."


OPERATOR = "operator"
LEFT = "left"
THREAD = "thread"
UNSEEN = "unseen"
"""Reasons, with the three above, why a call is not countable: see `countable`."""

_WHY = {
    LEFT: (
        "the code takes elements out of PyTorch, or brings them in from outside (`.numpy()`, `.tolist()`, many "
        "`.item()` "
        "or `if`s on tensors). Compute with tensors instead."
    ),
    OPERATOR: (
        "the code calls a function whose operations this test cannot count. Use matrix products, sums, exp and the "
        "like instead."
    ),
    THREAD: "the code computes in another thread. Compute in the thread that calls the function instead.",
}
_UNSEEN_PART = "the test cannot see a part of the computation. Call PyTorch's functions directly instead."


def uncountable_message(cost: Cost, at: LineInWords) -> str:
    """Return the message that the cost of a call cannot be counted, with reason and line; empty if it can."""
    first = cost.uncounted
    return f"The operations cannot be counted:{at(first)} {_WHY.get(first.of, _UNSEEN_PART)}" if first.count else ""
