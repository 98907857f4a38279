"""Trace a run: dispatch modes that see each operator, and a record of each tensor with the student's line that made it.

A traced run can replace some of its tensors. If the result is right with one tensor replaced, the line of that tensor
is wrong. All sizes are bounded, and tensors beyond the limits are not recorded.
"""

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any, NamedTuple, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .arguments import map_nested, tensors_in

MAX_MADE = 300
"""Maximum number of tensors of one run that are recorded."""
MAX_NUMBERS = 4_000
"""Maximum number of elements of one tensor: trace cases are small."""
MAX_ALL_NUMBERS = 60_000
MAX_INPUTS = 16
MAX_RESULTS = 8
_PRINTING = torch._tensor_str.__file__

IsOwnFile = Callable[[str], bool]
"""Returns whether a file name is that of the student's code."""
_WITHOUT_NUMBERS = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "uniform_", "normal_", "rand", "randn",
    "random_", "detach", "alias", "lift_fresh", "resize_", "set_",
}  # fmt: skip
"""Operators whose results are uninitialized, random, or the operand itself; they are not recorded."""


@dataclass(frozen=True)
class TracedTensor:
    """A tensor that a run created, with its elements at that time."""

    file: str
    line: int
    operator: str
    values: torch.Tensor
    """A copy in float64."""
    inputs: tuple[int, ...] = ()
    """The numbers of the tensors from which it was computed."""
    place: int = 0
    """Position of the call in the code, which distinguishes the calls of a line, but not the iterations of a loop."""


@dataclass
class Run:
    """The record of one run: its tensors, its result or exception."""

    made: list[TracedTensor] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None
    """The exception that ended the run."""
    returned: tuple[str, int] | None = None
    """File and line of the last `return` of the student's code, if the run replaced nothing."""


class _Call(NamedTuple):
    file: str
    line: int
    place: int
    operator: str
    inputs: tuple[int, ...]


class RunTracer(TorchDispatchMode):
    """Records the results of all operators, and replaces some of them."""

    supports_higher_order_operators = True

    def __init__(
        self, own: IsOwnFile, replaced: Mapping[int, torch.Tensor], *, in_shape: bool = False, is_trial: bool = False
    ) -> None:
        """own: returns whether a file is the student's code. replaced: new tensors by the numbers of the replaced ones.

        in_shape: replace a tensor only by one of the same shape, because some functions of torch end the process if the
        shape differs. is_trial: only replace, and record no tensor, which is quicker.
        """
        super().__init__()
        self._in_shape = in_shape
        self._is_trial = is_trial
        self._number = 0
        """The number of the next tensor."""
        self._last = max(replaced, default=-1)
        self.made: list[TracedTensor] = []
        self.of: dict[int, int] = {}
        """Number of a tensor by its id. The tensors are stored, so that no id is used twice."""
        self.own = cache(own)
        self.replaces = bool(replaced)
        self._replaced = replaced
        self._kept: list[Any] = []
        self._written: dict[int, list[int]] = {}
        """By the id of a memory, the numbers of the tensors that were written into it, in place or into a view."""
        self._room = MAX_ALL_NUMBERS

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = name_of(func)
        inputs = set[int]()
        if not self._is_trial:
            operands = operands_in(args) + operands_in(kwargs.values()) if kwargs else operands_in(args)
            inputs = {number for one in operands for number in self._behind(one)}
        given = func(*args, **kwargs) if kwargs else func(*args)
        if name in _WITHOUT_NUMBERS:
            if "empty" in name:
                given.zero_()  # uninitialized memory differs from run to run
            return given
        if self._is_trial and self._number > self._last:
            return given
        noted = _Call(*_called_at(self.own), name, tuple(sorted(inputs)[:MAX_INPUTS]))
        if isinstance(given, torch.Tensor):
            return self._noted(given, noted)
        if isinstance(given, tuple | list):
            each = [self._noted(one, noted) if isinstance(one, torch.Tensor) else one for one in given]
            return type(given)(each) if type(given) in (tuple, list) else given
        return given

    def _behind(self, tensor: torch.Tensor) -> list[int]:
        memory = memory_id(tensor)
        number = self.of.get(id(tensor))
        written = self._written.get(memory, [])
        return written if number is None else [number, *(one for one in written if one > number)]

    def _noted(self, tensor: torch.Tensor, call: "_Call") -> torch.Tensor:
        number = self._number
        if number >= MAX_MADE or not call.line:
            return tensor
        self._number += 1
        new = self._replaced.get(number)
        if new is not None and (new.shape == tensor.shape or not self._in_shape):
            new = new.to(tensor.dtype)
            if not call.operator.endswith("_"):
                tensor = new.clone()
            elif tensor.shape == new.shape:
                tensor.copy_(new)
        if self._is_trial:
            return tensor
        numbers = tensor.numel()
        if numbers > MAX_NUMBERS or numbers > self._room or tensor.is_complex() or tensor.layout != torch.strided:
            values = torch.empty(0, dtype=torch.float64)
        else:
            self._room -= numbers
            values = tensor.detach().to("cpu", torch.float64, copy=True).contiguous()
        self.made.append(TracedTensor(call.file, call.line, call.operator, values, call.inputs, call.place))
        self._kept.append(tensor)
        if call.operator.endswith("_"):
            # Its memory too, because a parameter with new data frees it, and the next tensor could get it.
            self._kept.append(_held(tensor))
            self._written.setdefault(memory_id(tensor), []).append(number)
        self.of[id(tensor)] = number
        return tensor


def _called_at(own: IsOwnFile) -> tuple[str, int, int]:
    """Return file, line and position of the innermost frame of the student's code; no file while printing a tensor."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _PRINTING:
            break  # computations for printing are not part of the run
        if own(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti
        frame = frame.f_back
    return "", 0, 0


def own_line(own: IsOwnFile) -> tuple[str, int]:
    """Return file and line of the innermost frame of the student's code."""
    return _called_at(own)[:2]


def trace_run(call: Callable[[], Any], watch: RunTracer) -> Run:
    """Run the call under a tracer, and return the record with the call's result or exception."""
    run = Run(watch.made)

    def returning(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and watch.own(frame.f_code.co_filename):
            run.returned = frame.f_code.co_filename, frame.f_lineno

    before = sys.getprofile()
    try:
        with torch.no_grad(), watch:
            if not watch.replaces:  # a profiler doubles the time of a run
                sys.setprofile(returning)
            try:
                run.result = call()
            finally:
                sys.setprofile(before)
    except Exception as error:
        run.error = error
    return run


class TracedCall(NamedTuple):
    """A call of a student's function, or of a new instance of a class.

    built: the arguments of the class. parameters: values of the instance's parameters. through: see `bind_method`.
    """

    thing: Callable[..., Any]
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    parameters: Mapping[str, torch.Tensor] | None = None
    through: tuple[str, ...] = ()

    def ready(
        self, change: Callable[[torch.Tensor], torch.Tensor], *, exactly: bool = False
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function or instance, and copies of the arguments, with `change` applied to all float tensors.

        exactly: raise TypeError if an instance has other parameters.
        """

        def copy_changed(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return copy.deepcopy(value)
            return change(value.clone()) if value.is_floating_point() else value.clone()

        target = self.thing
        if self.built is not None:
            target = self.thing(*self.built)
            own = dict(target.named_parameters()) if isinstance(target, torch.nn.Module) else {}
            if exactly and own.keys() != (self.parameters or {}).keys():
                raise TypeError("it has other parameters")
            for name, values in (self.parameters or {}).items():
                own[name].data = change(values.clone()).view(own[name].shape)
        return bind_method(target, self.through), tuple(map_nested(arg, copy_changed) for arg in self.arguments)

    def run(self) -> Any:
        """Return the result of the call; raises TypeError if an instance has other parameters."""
        target, arguments = self.ready(lambda one: one, exactly=True)
        return target(*arguments)


def bind_method(target: Any, through: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function that calls the target, or that calls a method of the target and reads attributes.

    through: the name of the method and the names of the n attributes; empty for the target itself. The method is called
    with n arguments at a time, and the attributes are the result.

    Example: with `("append", "keys", "values")` the arguments k1, v1, k2, v2 lead to two calls, append(k1, v1) and
    append(k2, v2), and the result is (target.keys, target.values).
    """
    if not through:
        return target  # type: ignore[no-any-return]
    method, *read = through

    def call(*arguments: Any) -> Any:
        for number in range(0, len(arguments), len(read)):
            getattr(target, method)(*arguments[number : number + len(read)])
        return tuple(getattr(target, name) for name in read)

    return call


def memory_id(tensor: torch.Tensor) -> int:
    """Return an id of a tensor's memory, valid while a tensor with this memory exists."""
    held = _held(tensor)
    return id(tensor) if held is None else int(held._cdata)


def _held(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return the memory of a tensor; None if it has none."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


PackedRun = tuple[str, str, torch.Tensor, torch.Tensor, list[torch.Tensor], bool, list[int]]
"""A run as a worker sends it: see `pack_run`."""


def pack_run(run: Run) -> PackedRun:
    """Return a run as sendable values: files, operators, marks, elements, results, whether it failed, return line.

    Files and operators are texts with one entry a line. Marks are integers, for each tensor: file, line, position,
    shape and inputs, the last two with their lengths before them.
    """
    files = list(dict.fromkeys([*(one.file for one in run.made), *([run.returned[0]] if run.returned else [])]))
    marks: list[int] = []
    for one in run.made:
        shape = one.values.shape
        marks += [files.index(one.file), one.line, one.place, len(shape), *shape, len(one.inputs), *one.inputs]
    numbers = torch.cat([one.values.flatten() for one in run.made]) if run.made else torch.empty(0)
    returned = [files.index(run.returned[0]), run.returned[1]] if run.returned else []
    operators = "\n".join(one.operator for one in run.made)
    elements = numbers.float()
    return (
        "\n".join(files),
        operators,
        torch.tensor(marks, dtype=torch.int64),
        elements,
        result_tensors(run),
        run.error is not None,
        returned,
    )


def result_tensors(run: Run) -> list[torch.Tensor]:
    """Return the tensors in the result of a run."""
    return [one.detach() for one in tensors_in(run.result)][:MAX_RESULTS]


class OperatorMode(TorchDispatchMode):
    """Base class of dispatch modes for all operators, with little overhead."""

    supports_higher_order_operators = True  # such as torch.cond

    def __enter__(self) -> Self:
        _let_subclasses_be_made()
        entered: Self = super().__enter__()
        return entered

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: PyTorch's wrapper would import its compiler and double the time."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return self.operate(func, args, kwargs or {})

    def operate(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Execute one operator."""
        return func(*args, **kwargs)


@cache
def name_of(operator: Any) -> str:
    """Return an operator's name without its overload; higher-order operators have no overloads."""
    name: str = getattr(operator, "overloadpacket", operator).__name__
    return name


def operands_in(args: Iterable[Any]) -> list[torch.Tensor]:
    """Return the tensors among an operator's arguments, alone or in a list; five times as fast as `tensors_in`."""
    found = list[torch.Tensor]()
    for arg in args:
        if isinstance(arg, torch.Tensor):
            found.append(arg)
        elif isinstance(arg, list | tuple):
            found += [one for one in arg if isinstance(one, torch.Tensor)]
    return found


@cache
def _let_subclasses_be_made() -> None:
    """Allow from now on to construct subclasses of Tensor, which PyTorch refuses in any dispatch mode.

    PyTorch's own `causal_lower_right` constructs one.
    """

    def new(*args: Any, **kwargs: Any) -> Any:  # `torch._dynamo` accepts this signature
        if args[0] is torch.Tensor or any(torch.Tensor in type(one).__mro__[1:] for one in args[1:]):
            return torch._C.TensorBase.__new__(*args, **kwargs)
        with torch._C._DisableTorchDispatch():
            return torch._C.TensorBase.__new__(*args, **kwargs)

    torch.Tensor.__new__ = new  # type: ignore[method-assign]
