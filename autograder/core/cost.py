"""What a call costs, counted and not timed: operations, the largest tensor, what is held at once, rows projected.

A dispatch mode sees each operator, so the counts are the same on every machine. Needs nothing but torch.

- Operations: 2 for each multiplication and addition of a matrix product, as PyTorch's FlopCounterMode counts them, 2
  for each element of an operator that multiplies and adds, and 1 for each element that any other operator reads or
  makes, whichever are more. Views are free.
- Tensors count by the memory behind them: one that is expanded is as large as what it repeats, and a view of a part as
  large as the whole; a complex element and an integer of eight bytes count as two. Of the memory that the call's
  arguments and its module's parameters and buffers had before, nothing is counted; what it grows by is.
- Rows: how many rows each parameter of two dimensions is multiplied with. A copy of it, or several put together, are
  still that parameter.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .arguments import Arguments, tensors_in
from .operators import OperatorMode, name_of, operands_in
from .tracing import Own, memory_of

_expired = torch.UntypedStorage._expired
"""Tests whether memory is gone, as `StorageWeakRef.expired` does, in a third of the time."""
_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "addbmm"}
_VECTOR_PRODUCTS = {"mv", "addmv", "dot", "vdot"}
_TWO_FOR_AN_ELEMENT = {"addcmul", "addcdiv", "addr", "lerp"}
"""These multiply and add."""
_FREE = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize", "set",
    "alias", "lift_fresh", "lift", "_reshape_alias", "detach", "resolve_conj", "resolve_neg",
}  # fmt: skip
"""These compute nothing."""
_FUSED_ATTENTION = {
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
}  # fmt: skip
"""These make scores and context without a tensor of the scores."""


@dataclass(frozen=True)
class Most:
    """The most that there was of something, and where."""

    count: int = 0
    of: str = ""
    """The shape of the tensor, or the parameter's name."""
    file: str = ""
    line: int = 0


@dataclass
class Cost:
    """What one call cost. Tensors are counted in numbers, whatever their dtype."""

    operations: int = 0
    largest: Most = field(default_factory=Most)
    """The largest tensor."""
    alive: Most = field(default_factory=Most)
    """All tensors that are held at one moment, to within a hundredth."""
    rows: Most = field(default_factory=Most)
    """Of the parameter that is multiplied with the most."""
    uncounted: Most = field(default_factory=Most)
    """The first thing that is not counted, so that the counts may be too small: why (`countable`), and where."""

    def packed(self) -> tuple[Any, ...]:
        """The fields in their order, and of each Most, as a worker sends them."""
        each = (self.largest, self.alive, self.rows, self.uncounted)
        return self.operations, *((one.count, one.of, one.file, one.line) for one in each)


class Measured(NamedTuple):
    """A call's cost, and what it returned."""

    cost: Cost
    value: Any


class _Memory:
    """The memory behind tensors, as long as something holds it."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self._given: dict[int, tuple[StorageWeakRef, int]] = {}
        self._total = 0

    def give(self, tensor: torch.Tensor) -> None:
        """Take note of memory that was there before, which does not count."""
        self._given[memory_of(tensor)] = StorageWeakRef(tensor.untyped_storage()), _numbers(tensor)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether it has been given, or taken."""
        return (key := memory_of(tensor)) in self._given or key in self._held

    def take(self, tensor: torch.Tensor) -> int:
        """Counts the memory behind a tensor, if it is new or has grown; in numbers, 0 for what is not new."""
        key = memory_of(tensor)  # no other memory gets its number while there is a weak reference to it
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
        """How many numbers are held, if it is more than so many; to look at each is left out where it cannot be."""
        if self._total <= most + most // 100:
            return 0
        for key, (memory, numbers) in list(self._held.items()):
            if _expired(memory.cdata):
                del self._held[key]
                self._total -= numbers
        return self._total if self._total > most else 0


class Counting(OperatorMode):
    """Counts what operators cost while it is entered."""

    def __init__(self, own: Own, given: Sequence[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.cost = Cost()
        self.memory = _Memory()
        self._own = own
        self._rows: dict[str, float] = {}
        self._parameters: dict[int, frozenset[str]] = {}
        """By the memory, the parameters of which alone it was made."""
        self._derived: list[StorageWeakRef] = []
        """Memory of tensors computed from parameters. A weak reference prevents reuse of its id for other memory."""
        self._sizes = {name: parameter.numel() for name, parameter in parameters.items()}
        for tensor in given:
            self.memory.give(tensor)
        for name, parameter in parameters.items():
            self.memory.give(parameter)
            if parameter.dim() == 2:
                self._parameters[memory_of(parameter)] = frozenset({name})

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():  # what is looked at here is none of the call's own
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
        """Return the result of the call, and count its operators. once: see `of_call`."""
        with torch.no_grad(), self:
            return (_one_by_one(arguments) if once else arguments).apply(call)

    def take_foreign(self, tensor: torch.Tensor) -> None:
        """Count an operand that neither an operator of this call made nor is an argument."""
        self._take(tensor)

    def _take(self, tensor: torch.Tensor) -> None:
        if tensor.layout != torch.strided:
            return
        cost = self.cost
        if numbers := self.memory.take(tensor):
            if numbers > cost.largest.count:
                cost.largest = Most(numbers, str(tuple(tensor.shape)), *self.place())
            if alive := self.memory.more_than(cost.alive.count):
                cost.alive = Most(alive, "", *self.place())

    def count(
        self, func: Any, factors: list[torch.Tensor], operands: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        """Count the operations of an operator. factors: its operands that are not named."""
        name = _name_of(func).removesuffix("_")
        if name in _PRODUCTS or name in _VECTOR_PRODUCTS:
            one, other = factors[-2:]  # what is added to their product comes before them
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
            names = sorted(self._parameters.get(memory_of(weight), ()))
            whole = sum(self._sizes[name] for name in names)
            # A part of a parameter counts as that part, so that several heads in turn count as all at once.
            self._add_rows(names, rows.numel() / max(within, 1) * weight.numel() / max(whole, 1))

    def _add_rows(self, names: Iterable[str], count: float) -> None:
        for name in names:
            self._rows[name] = self._rows.get(name, 0.0) + count
            if (rows := math.ceil(self._rows[name] - 1e-6)) > self.cost.rows.count:
                self.cost.rows = Most(rows, name, *self.place())

    def _project_by_elements(self, operands: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Count the rows of a product of elements, `x.unsqueeze(-2) * weight`, which a sum completes."""
        size = sum(tensor.numel() for tensor in made)
        for weight in operands:
            names = sorted(self._parameters.get(memory_of(weight), ()))
            if names and size > weight.numel():
                self._add_rows(names, size / max(sum(self._sizes[name] for name in names), 1))

    def _derive(self, operands: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Note that a tensor made of parameters only is those parameters, and so is a parameter times a number."""
        if not operands or not self._parameters:
            return
        each = [self._parameters.get(memory_of(tensor)) for tensor in operands]
        if not any(each):
            return
        is_whole = all(each)
        for tensor in made:
            pairs = zip(operands, each, strict=True)
            chosen = [names or () for one, names in pairs if is_whole or one.numel() == tensor.numel()]
            names = frozenset[str]().union(*chosen)
            if names and self._parameters.setdefault(memory_of(tensor), names) is names:
                self._derived.append(StorageWeakRef(tensor.untyped_storage()))

    def place(self) -> tuple[str, int]:
        """The file and the line that own code has come to."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._own(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return "", 0


_name_of = cache(name_of)


def of_call(
    call: Callable[..., Any],
    arguments: Arguments,
    function: Any,
    own: Own,
    *,
    once: bool = False,
    counting: type[Counting] = Counting,
) -> Measured:
    """Measure the cost and result of a call without gradients, because autograd keeps tensors that the call drops.

    function: what is called; a module's parameters and buffers were there before.
    once: each list and tuple comes as a generator of tensors that are new, so that it counts how many are kept.
    """
    is_module = isinstance(function, torch.nn.Module)
    given = [*tensors_in(arguments.positional), *tensors_in(dict(arguments.named))]
    given += list(function.buffers()) if is_module else []
    counted = counting(own, given, dict(function.named_parameters()) if is_module else {})
    value = counted.run(call, arguments, once)
    return Measured(counted.cost, value)


def _one_by_one(arguments: Arguments) -> Arguments:
    """The arguments, each list and tuple as a generator of copies."""

    def copies(values: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        for value in values:
            yield value.clone()

    positional = (copies(arg) if isinstance(arg, list | tuple) else arg for arg in arguments.positional)
    return Arguments(tuple(positional), arguments.named)


def _numbers(tensor: torch.Tensor) -> int:
    """Return the elements of a tensor's memory. An integer of eight bytes has room for two float32 elements."""
    has_room_for_two = tensor.is_complex() or tensor.dtype in (torch.int64, torch.uint64)
    return tensor.untyped_storage().nbytes() // tensor.element_size() * (2 if has_room_for_two else 1)
