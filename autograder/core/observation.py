"""Observations of a student's code, as the trusted side receives them: faults, results of calls, and gradients."""

import opcode
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from .arguments import tensors_in


@dataclass(frozen=True)
class Place:
    """A line in one of the notebook's cells."""

    cell: str
    line: int


class StudentFault(Exception):
    """The student's code failed in an operation; `str()` is a message for the student."""


class Missing(StudentFault):
    """The notebook defines no such name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is not defined in the notebook.")
        self.name = name


class Raised(StudentFault):
    """The student's code raised an exception."""

    MAX_MESSAGE = 300

    def __init__(
        self,
        type_name: str,
        message: str,
        place: Place | None = None,
        kinds: Sequence[str] = (),
        hint: str = "",
        *,
        has_own_words: bool = False,
    ) -> None:
        """kinds: the names of the exception's class and its base classes. hint: an explanation after the message.

        has_own_words: true if the author of the code chose the message, false if a library did.
        """
        self.type_name = type_name[:80]
        self.kinds = tuple(kinds)
        self.message = message[: self.MAX_MESSAGE]
        self.place = place
        self.hint = hint
        self.has_own_words = has_own_words
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.type_name == "NotImplementedError" and not self.message and self.place:
            return (
                f"Nothing is written in the cell `{self.place.cell}` yet: its line {self.place.line} raises "
                "NotImplementedError."
            )
        error = f"{self.type_name}: {self.message}" if self.message else self.type_name
        where = f" (line {self.place.line} of the cell `{self.place.cell}`)" if self.place else ""
        return f"Raised {error}{where}{'. ' if self.hint else ''}{self.hint}"


class Unusable(StudentFault):
    """The student's object has another form than the exercise requires, e.g. a parameter has another name."""

    MAX_SENTENCE = 600

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence[: self.MAX_SENTENCE])


CELL_PREFIX = "cell:"
"""Prefix of the file name of a cell's code in the worker."""
_RAISES = opcode.opmap["RAISE_VARARGS"]
_TORCH = str(Path(spec.origin).parent) if (spec := find_spec("torch")) and spec.origin else "no torch"
"""The folder of torch, determined before any student's code runs."""
_IN_A_KERNEL = re.compile(r"ipykernel_|^<ipython-input")


@lru_cache
def is_cell(file: str) -> bool:
    """Return whether a file name is that of a cell's code, in the worker or in a Jupyter kernel."""
    return file.startswith(CELL_PREFIX) or bool(_IN_A_KERNEL.search(file))


@contextmanager
def student_code() -> Iterator[None]:
    """Convert each exception of the student's code to Raised, with the line of the cell that raised it."""
    try:
        yield
    except BaseException as error:
        raise raised(error) from None


def raised(error: BaseException) -> Raised:
    """Return an exception of a student's code as Raised, which holds only data."""
    try:
        message = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except Exception:
        message = ""
    if type(error) is NotImplementedError and not message:
        message = _other_than_the_stub(error)
    kinds = [kind.__name__ for kind in type(error).__mro__][:10]
    return Raised(type(error).__name__, message, _place_of(error), kinds, has_own_words=has_own_words(error))


def has_own_words(error: BaseException) -> bool:
    """Return whether a `raise` or `assert` outside PyTorch raised an exception: its author chose the words."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None:
        return True
    code = trace.tb_frame.f_code
    return code.co_code[trace.tb_lasti] == _RAISES and not code.co_filename.startswith(_TORCH)


_SIZES = re.compile(r"\s*Target sizes: |(?<=modified by an inplace operation): ")
"""Matches the start of a tensor's sizes in PyTorch's messages; the rest is dropped, because it differs by style."""
_TWO_SIZES = re.compile(r"(size of tensor a \()(\d+)(\) must match the size of tensor b \()(\d+)")
"""Matches two sizes in a message of PyTorch, whose order depends on style: `a + b` or `b + a`."""
_VIEW = "a view of a leaf Variable that requires grad"


def without_style(message: str) -> str:
    """Return the first line of a library's error message without the parts that differ by style.

    Code with the same mistake raises errors that are equal apart from these.
    """
    words = _SIZES.split(message.strip().partition("\n")[0])[0].replace(_VIEW, _VIEW.replace("view of a ", ""))
    return _TWO_SIZES.sub(_smaller_first, words)


def _smaller_first(sizes: re.Match[str]) -> str:
    smaller, larger = sorted([sizes[2], sizes[4]], key=int)
    return sizes[1] + smaller + sizes[3] + larger


def _other_than_the_stub(error: BaseException) -> str:
    """Return a message that names the student's function that raised the error; empty for the exercise's stub."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    codes = [code for code in codes if code.co_filename.startswith(CELL_PREFIX)]
    if not codes:
        return ""
    cell, named = codes[-1].co_filename.removeprefix(CELL_PREFIX), codes[-1].co_qualname
    is_asked_for = len(codes) == 1 and cell.startswith("number ")  # a cell that has lost its name
    is_stub = is_asked_for or named.partition(".")[0] in (cell, "<module>")
    return "" if is_stub else f"`{named}` raises it itself"


def _place_of(error: BaseException) -> Place | None:
    if isinstance(error, SyntaxError):
        cell = error.filename or ""
        return Place(cell.removeprefix(CELL_PREFIX), error.lineno or 1) if cell.startswith(CELL_PREFIX) else None
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename.startswith(CELL_PREFIX):
            return Place(frame.f_code.co_filename.removeprefix(CELL_PREFIX), line)
    return None


V = TypeVar("V")


@dataclass
class Observation(Generic[V]):
    """The result of a call and its effects. On a bench `gradients` is a list and `parameter_gradients` a dict."""

    value: V
    changed: list[int] = field(default_factory=list)
    """Positions of the arguments that the call wrote into; tensors are never passed by name."""
    devices: list[str] = field(default_factory=list)
    """Device types of the output tensors if there are several, else empty."""
    gradients: Any = None
    """Gradients, one for each argument; None if none arrived or the argument is not a float tensor."""
    parameter_gradients: Any = None
    """Gradients by the parameters' names."""
    library_calls: list[str] = field(default_factory=list)
    """The libraries that ran. The worker adds them after packing, because packing may run student code."""
    cost: Any = None
    """Cost of the call in the form of `cost.Cost.packed`; only `MeasureCost` counts it."""
    cpu_seconds: float = 0.0
    """The CPU time of the call, measured outside the worker; only `TimedCall` is measured."""

    def mapped(self, change: Callable[[Any], Any]) -> "Observation[Any]":
        """Return the observation with `change` applied to the value, the gradients and the cost, in this order."""
        return Observation(
            change(self.value),
            self.changed,
            self.devices,
            change(self.gradients),
            change(self.parameter_gradients),
            self.library_calls,
            change(self.cost),
            self.cpu_seconds,
        )


Gradient = torch.Tensor | None


def compute_gradients(
    value: Any, cotangents: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """Return the gradients of each input and each parameter, given the gradients of a loss with respect to each output.

    A gradient is None if none arrived. All are None if the outputs have other shapes than the cotangents.
    """
    outputs = list(value) if isinstance(value, tuple | list) else [value]
    pairs = list(zip(outputs, cotangents, strict=False))
    reached = []
    if all(isinstance(output, torch.Tensor) and output.shape == cotangent.shape for output, cotangent in pairs):
        reached = [
            (output, cotangent.to(output)) for output, cotangent in pairs if output.requires_grad and not output.is_meta
        ]
    with student_code():
        # Losses are single elements: for an output with a cotangent PyTorch would import sympy in each process.
        losses = [(output * cotangent).real.sum() for output, cotangent in reached]
        return backpropagate(losses, inputs, parameters)


def backpropagate(
    losses: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """Return the gradients of the sum of losses at each input and each parameter; None if none arrived."""
    leaves = [_leaves_of(arg) for arg in inputs]
    wanted = [*chain(*leaves), *(parameter for parameter in parameters.values() if parameter.requires_grad)]
    found: Iterator[Gradient] = iter([None] * len(wanted))
    if losses:
        found = iter(torch.autograd.grad(losses, wanted, allow_unused=True))
    return (
        [_at_argument(arg, own, [next(found) for _ in own]) for arg, own in zip(inputs, leaves, strict=True)],
        {name: next(found) if parameter.requires_grad else None for name, parameter in parameters.items()},
    )


def _leaves_of(arg: Any) -> list[torch.Tensor]:
    """Return the tensors of an argument to which a gradient can flow."""
    return [one for one in tensors_in(arg) if one.is_floating_point() and one.requires_grad]


def _at_argument(arg: Any, leaves: Sequence[torch.Tensor], found: Sequence[Gradient]) -> Gradient:
    """Return an argument's gradient; for a tuple of tensors all gradients in one row, with 0 for a missing one."""
    if isinstance(arg, torch.Tensor) or all(one is None for one in found):
        return next(iter(found), None)
    pairs = zip(leaves, found, strict=True)
    return torch.cat([(torch.zeros_like(leaf) if one is None else one).flatten() for leaf, one in pairs])
