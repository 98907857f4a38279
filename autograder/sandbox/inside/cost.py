"""What a call costs, counted and not timed: operations, the largest tensor, what is held at once, rows projected.

A dispatch mode sees each operator, so the counts are the same on every machine. Needs nothing but torch.

- Operations: 2 for each multiplication and addition of a matrix product, as PyTorch's FlopCounterMode counts them, and
  one for each element that any other operator reads or makes, whichever are more. Views are free.
- Tensors count by the memory behind them: one that is expanded is as large as what it repeats, and a view of a part as
  large as the whole. What the call is given, and its module's own parameters and buffers, are not counted.
- Rows: how many rows each parameter of two dimensions is multiplied with. A copy of it, or several put together, are
  still that parameter.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from .arguments import Arguments
from .nesting import tensors_in
from .operators import OperatorMode, name_of
from .tracing import Own, memory_of

MAX_NAMES = 5

_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "addbmm"}
_VECTOR_PRODUCTS = {"mv", "addmv", "dot", "vdot"}
_FREE = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "set_",
    "alias", "lift_fresh", "lift", "_reshape_alias", "detach_", "resolve_conj", "resolve_neg",
}  # fmt: skip
"""These compute nothing."""
_STEP_BY_STEP = re.compile(
    r"(?!_trilinear)_?(unsafe_|new_|masked_|native_|linalg_)*"
    r"(arange|linspace|logspace|full|zero|ones|eye|rand|uniform|normal|bernoulli|exponential|"
    r"multinomial|fill|copy|to_copy|clone|cat|stack|repeat|roll|flip|view|index|select|scatter|gather|take|"
    r"put|nonzero|tri[lu]|diag|trace|constant_pad|embedding|slice|(log_?)?softmax|logsumexp|(log)?cum|sort|topk|argsort|"
    r"kthvalue|searchsorted|bucketize|one_hot|unique|unfold_copy|layer_norm|dropout|vector_norm|addr|ger|outer|equal|"
    r"allclose|isclose|is_nonzero|local_scalar_dense|scalar_tensor|expand_copy|permute_copy|transpose_copy)\w*"
)
"""The operators that take a step for each element, and are not marked as pointwise or as reductions by PyTorch."""
_OUT_OF_TORCH = {torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__array__, torch.Tensor.data_ptr}


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
    uncounted: list[str] = field(default_factory=list)
    """The operators whose steps are not known, and ways out of PyTorch: then the counts may be too small."""

    def packed(self) -> "Packed":
        """As a worker sends it."""
        each = [(one.count, one.of, one.file, one.line) for one in (self.largest, self.alive, self.rows)]
        return self.operations, *each, list(self.uncounted)


Packed = tuple[Any, ...]
"""The fields of a Cost in their order, and of each Most."""


class _Memory:
    """The memory behind tensors, as long as something holds it."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self._given: dict[int, torch.Tensor] = {}
        self._total = 0

    def give(self, tensor: torch.Tensor) -> None:
        """It was there before, and does not count."""
        self._given[memory_of(tensor)] = tensor  # kept: no other memory gets its number

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether it has been given, or taken."""
        return (key := memory_of(tensor)) in self._given or key in self._held

    def take(self, tensor: torch.Tensor) -> int:
        """Counts the memory behind a tensor, if it is new or has grown; in numbers, 0 for what is not new."""
        key = memory_of(tensor)  # no other memory gets its number while there is a weak reference to it
        if key in self._given:
            return 0
        numbers = _numbers(tensor)
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
            if memory.expired():
                del self._held[key]
                self._total -= numbers
        return self._total if self._total > most else 0


class _Counting(OperatorMode):
    def __init__(self, own: Own, given: Iterable[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.cost = Cost()
        self.memory = _Memory()
        self._own = own
        self._rows: dict[str, int] = {}
        self._parameters: dict[int, frozenset[str]] = {}
        """By the memory, the parameters of which alone it was made."""
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
            factors = _operands(args)
            operands = [*factors, *_operands(kwargs.values())] if kwargs else factors
            for tensor in operands:
                if tensor.layout != torch.strided or not self.memory.knows(tensor):
                    self._take(tensor)
            for tensor in made:
                self._take(tensor)
            self._count(func, factors, operands, made)
        return given

    def uncounted(self, what: str) -> None:
        """Notes what is not counted."""
        if what not in self.cost.uncounted and len(self.cost.uncounted) < MAX_NAMES:
            self.cost.uncounted.append(what)

    def _take(self, tensor: torch.Tensor) -> None:
        if tensor.layout != torch.strided:
            self.uncounted(str(tensor.layout))
            return
        cost = self.cost
        if numbers := self.memory.take(tensor):
            if numbers > cost.largest.count:
                cost.largest = Most(numbers, str(tuple(tensor.shape)), *self._place())
            if alive := self.memory.more_than(cost.alive.count):
                cost.alive = Most(alive, "", *self._place())

    def _count(
        self, func: Any, factors: list[torch.Tensor], operands: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        name = name_of(func)
        if name in _PRODUCTS or name in _VECTOR_PRODUCTS:
            one, other = factors[-2:]  # what is added to their product comes before them
            self.cost.operations += 2 * one.numel() * (other.shape[-1] if name in _PRODUCTS else 1)
            self._project(one, other)
            return
        self._derive(operands, made)
        if name in _FREE or getattr(func, "is_view", False):
            return
        if not _takes_a_step_for_each(func):
            self.uncounted(name[:60])
        self.cost.operations += max((tensor.numel() for tensor in (*operands, *made)), default=0)

    def _project(self, one: torch.Tensor, other: torch.Tensor) -> None:
        for weight, rows in ((one, other), (other, one)):
            within = weight.shape[-1] if weight is one else weight.shape[-2] if weight.dim() > 1 else weight.shape[0]
            for name in sorted(self._parameters.get(memory_of(weight), ())):
                self._rows[name] = self._rows.get(name, 0) + rows.numel() // max(within, 1)
                if self._rows[name] > self.cost.rows.count:
                    self.cost.rows = Most(self._rows[name], name, *self._place())

    def _derive(self, operands: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """What is made of parameters alone is those parameters."""
        if not operands or not self._parameters:
            return
        each = [self._parameters.get(memory_of(tensor)) for tensor in operands]
        if all(each):
            names = frozenset().union(*(names for names in each if names))
            for tensor in made:
                self._parameters.setdefault(memory_of(tensor), names)

    def _place(self) -> tuple[str, int]:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if self._own(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return "", 0


def _operands(args: Iterable[Any]) -> list[torch.Tensor]:
    """The tensors that an operator is given, alone or in a list. As `tensors_in`, in a fifth of the time."""
    found = list[torch.Tensor]()
    for arg in args:
        if isinstance(arg, torch.Tensor):
            found.append(arg)
        elif isinstance(arg, list | tuple):
            found += [one for one in arg if isinstance(one, torch.Tensor)]
    return found


@cache
def _takes_a_step_for_each(func: Any) -> bool:
    """Whether an operator is known to take a step for each element."""
    tags = getattr(func, "tags", ())
    is_marked = torch.Tag.pointwise in tags or torch.Tag.reduction in tags
    return is_marked or _STEP_BY_STEP.fullmatch(name_of(func)) is not None


class _WaysOut(TorchFunctionMode):
    """Notes where numbers leave PyTorch, which no operator shows."""

    def __init__(self, counting: _Counting) -> None:
        super().__init__()
        self._counting = counting

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _OUT_OF_TORCH and args[0].numel() > 1:
            self._counting.uncounted(f"Tensor.{func.__name__}")
        return func(*args, **(kwargs or {}))


def of_call(call: Callable[..., Any], arguments: Arguments, function: Any, own: Own, *, once: bool = False) -> Cost:
    """What a call costs, without gradients: autograd would keep what the call itself lets go.

    function: what is called; a module's parameters and buffers were there before.
    once: each list and tuple comes as a generator of tensors that are new, so that it counts how many are kept.
    """
    is_module = isinstance(function, torch.nn.Module)
    given = [*tensors_in(arguments.positional), *tensors_in(dict(arguments.named))]
    given += list(function.buffers()) if is_module else []
    counting = _Counting(own, given, dict(function.named_parameters()) if is_module else {})
    with torch.no_grad(), _WaysOut(counting), counting:
        value = (_one_by_one(arguments) if once else arguments).apply(call)
    if any(not counting.memory.knows(tensor) for tensor in tensors_in(value)):
        counting.uncounted("a result that no operator has made")
    return counting.cost


def _one_by_one(arguments: Arguments) -> Arguments:
    """The arguments, each list and tuple as a generator of copies."""

    def copies(values: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
        for value in values:
            yield value.clone()

    positional = (copies(arg) if isinstance(arg, list | tuple) else arg for arg in arguments.positional)
    return Arguments(tuple(positional), arguments.named)


def _numbers(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes() // tensor.element_size()
