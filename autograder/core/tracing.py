"""Watches one run: every tensor that it makes, with the line of the student's own cell that made it.

Some of the tensors can be replaced on the way: where what follows is right then, it was that line which was wrong.
Everything is bounded, and what could not be kept is left out. Needs nothing but torch, so that it can be used alone.
"""

import copy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .arguments import tensors_in
from .operators import operands_in

MAX_MADE = 300
"""Tensors of one run that are kept."""
MAX_NUMBERS = 4_000
"""In one tensor: the telling cases are small."""
MAX_ALL_NUMBERS = 60_000
MAX_INPUTS = 16
MAX_RESULTS = 8
_PRINTING = torch._tensor_str.__file__

Own = Callable[[str], bool]
"""Whether code of this file is that whose lines are looked for."""
_WITHOUT_NUMBERS = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "uniform_", "normal_", "rand", "randn",
    "random_", "detach", "alias", "lift_fresh", "resize_", "set_",
}  # fmt: skip
"""What these give holds no numbers yet, or numbers of chance, or the tensor that was there before."""


@dataclass(frozen=True)
class Made:
    """One tensor that a run made, as it was then."""

    file: str
    line: int
    operator: str
    values: torch.Tensor
    """In float64, and no part of what the run goes on with."""
    inputs: tuple[int, ...] = ()
    """The numbers of the tensors that it was made of."""
    place: int = 0
    """Tells one call from another in a line; in a loop it is the same each time."""


@dataclass
class Run:
    """What one run showed."""

    made: list[Made] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None
    """What ended it."""
    returned: tuple[str, int] | None = None
    """File and line of the last `return` of the code that is looked at, in a run in which nothing is replaced."""


class _Call(NamedTuple):
    file: str
    line: int
    place: int
    operator: str
    inputs: tuple[int, ...]


class Watch(TorchDispatchMode):
    """Notes what each operator gives; puts what is to be replaced in its place."""

    supports_higher_order_operators = True

    def __init__(self, own: Own, replaced: Mapping[int, torch.Tensor], *, in_shape: bool = False) -> None:
        """in_shape: replace nothing by what has another shape, for which some of torch's functions end the process."""
        super().__init__()
        self._in_shape = in_shape
        self.made: list[Made] = []
        self.of: dict[int, int] = {}
        """The number of the tensor that was made last with this id; the tensors are kept, so no id is used twice."""
        self.own = own
        self.replaces = bool(replaced)
        self._replaced = replaced
        self._kept: list[Any] = []
        self._written: dict[int, list[int]] = {}
        """What was written into the same memory, in place or into a view of it."""
        self._room = MAX_ALL_NUMBERS

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "overloadpacket", func).__name__
        operands = operands_in(args) + operands_in(kwargs.values()) if kwargs else operands_in(args)
        inputs = {number for one in operands for number in self._behind(one)}
        given = func(*args, **(kwargs or {}))
        if name in _WITHOUT_NUMBERS:
            if "empty" in name:
                given.zero_()  # what stood in that memory differs from run to run
            return given
        noted = _Call(*_called_at(self.own), name, tuple(sorted(inputs)[:MAX_INPUTS]))
        if isinstance(given, torch.Tensor):
            return self._noted(given, noted)
        if isinstance(given, tuple | list):
            each = [self._noted(one, noted) if isinstance(one, torch.Tensor) else one for one in given]
            return type(given)(each) if type(given) in (tuple, list) else given
        return given

    def _behind(self, tensor: torch.Tensor) -> list[int]:
        memory = memory_of(tensor)
        number = self.of.get(id(tensor))
        written = self._written.get(memory, [])
        return written if number is None else [number, *(one for one in written if one > number)]

    def _noted(self, tensor: torch.Tensor, call: "_Call") -> torch.Tensor:
        number = len(self.made)
        if number >= MAX_MADE or not call.line:
            return tensor
        new = self._replaced.get(number)
        if new is not None and (new.shape == tensor.shape or not self._in_shape):
            new = new.to(tensor.dtype)
            if not call.operator.endswith("_"):
                tensor = new.clone()
            elif tensor.shape == new.shape:
                tensor.copy_(new)
        numbers = tensor.numel()
        if numbers > MAX_NUMBERS or numbers > self._room or tensor.is_complex() or tensor.layout != torch.strided:
            values = torch.empty(0, dtype=torch.float64)
        else:
            self._room -= numbers
            values = tensor.detach().to("cpu", torch.float64, copy=True).contiguous()
        self.made.append(Made(call.file, call.line, call.operator, values, call.inputs, call.place))
        self._kept.append(tensor)
        if call.operator.endswith("_"):
            # Its memory too: a parameter that gets other numbers lets go of it, and the next tensor would have it.
            self._kept.append(_held(tensor))
            self._written.setdefault(memory_of(tensor), []).append(number)
        self.of[id(tensor)] = number
        return tensor


def _called_at(own: Own) -> tuple[str, int, int]:
    """The file, the line and the place in it that own code has come to; empty where it prints a tensor."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _PRINTING:
            break  # what is computed to print a tensor is no part of the way
        if own(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti
        frame = frame.f_back
    return "", 0, 0


def place_of(own: Own) -> tuple[str, int]:
    """The file and the line that own code has come to."""
    return _called_at(own)[:2]


def watched(call: Callable[[], Any], watch: Watch) -> Run:
    """Runs the call, which gives what is compared; an error of the code is part of what it shows."""
    run = Run(watch.made)

    def returning(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and watch.own(frame.f_code.co_filename):
            run.returned = frame.f_code.co_filename, frame.f_lineno

    before = sys.getprofile()
    try:
        with torch.no_grad(), watch:
            if not watch.replaces:  # it takes as long as all the rest of a run
                sys.setprofile(returning)
            try:
                run.result = call()
            finally:
                sys.setprofile(before)
    except Exception as error:
        run.error = error
    return run


def made_ready(
    thing: Callable[..., Any],
    built: tuple[Any, ...] | None,
    parameters: Mapping[str, torch.Tensor] | None,
    arguments: tuple[Any, ...],
    through: tuple[str, ...] = (),
) -> Callable[[], Any]:
    """The call that is watched: of a function; or of an instance, which is built and gets its numbers within it."""

    def call() -> Any:
        target = thing
        if built is not None:
            target = thing(*built)
            _load(target, parameters or {})
        own = (arg.clone() if isinstance(arg, torch.Tensor) else copy.deepcopy(arg) for arg in arguments)
        return fed(target, through)(*own)

    return call


def fed(target: Any, through: tuple[str, ...]) -> Callable[..., Any]:
    """What is called with the arguments: the target; or its method, with as many at a time as attributes are read then.

    through: the name of the method, and those of the attributes, which are the result; empty for the target itself.
    """
    if not through:
        return target  # type: ignore[no-any-return]
    method, *read = through

    def call(*arguments: Any) -> Any:
        for number in range(0, len(arguments), len(read)):
            getattr(target, method)(*arguments[number : number + len(read)])
        return tuple(getattr(target, name) for name in read)

    return call


def _load(instance: Any, values: Mapping[str, torch.Tensor]) -> None:
    own = dict(instance.named_parameters()) if isinstance(instance, torch.nn.Module) else {}
    if own.keys() != values.keys():
        raise TypeError("it has other parameters")
    for name, parameter in own.items():
        parameter.data = values[name].clone().view(parameter.shape)


def memory_of(tensor: torch.Tensor) -> int:
    """What tensors that share their memory have in common, while one of them lives."""
    held = _held(tensor)
    return id(tensor) if held is None else int(held._cdata)


def _held(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The memory of a tensor that has one."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


Packed = tuple[str, str, torch.Tensor, torch.Tensor, list[torch.Tensor], bool, list[int]]
"""A run as a worker sends it: see `packed`."""


def packed(run: Run) -> Packed:
    """A run as what can be sent: files and operators, a line each; places; numbers; what came of it; whether it failed.

    Places are whole numbers, for each tensor: its file, line, place, sizes and inputs, the last two with their number
    before them.
    """
    files = list(dict.fromkeys([*(one.file for one in run.made), *([run.returned[0]] if run.returned else [])]))
    places: list[int] = []
    for one in run.made:
        shape = one.values.shape
        places += [files.index(one.file), one.line, one.place, len(shape), *shape, len(one.inputs), *one.inputs]
    numbers = torch.cat([one.values.flatten() for one in run.made]) if run.made else torch.empty(0)
    returned = [files.index(run.returned[0]), run.returned[1]] if run.returned else []
    operators = "\n".join(one.operator for one in run.made)
    marks = torch.tensor(places, dtype=torch.int64)
    return "\n".join(files), operators, marks, numbers.float(), result_of(run), run.error is not None, returned


def result_of(run: Run) -> list[torch.Tensor]:
    """The tensors that came of a run."""
    return [one.detach() for one in tensors_in(run.result)][:MAX_RESULTS]
