"""The bench on which a student's function or class is tried: call it, differentiate it, see what it changed.

The worker drives it beside the student's code; the trusted side drives the same bench for the reference solution
and the known misconceptions, so that all three are observed in the same way.
"""

import copy
import inspect
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import torch

from . import device_probe
from .arguments import Arguments
from .faults import Missing, Place, Raised, Unusable
from .nesting import MAX_TENSORS, tensors_in

CELL_PREFIX = "cell:"

Kind = Literal["function", "class"]
Target = str | int  # a name in the notebook, or the number of an instance built from one of its classes


@dataclass
class Observation:
    """Everything that one call of the student's code showed."""

    value: Any
    changed: list[int] = field(default_factory=list)
    """Positions of the arguments that the call wrote into; tensors are never given by name."""
    devices: list[str] = field(default_factory=list)
    """The device types that the output's tensors are on."""
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    """One per argument; None where none arrived (or the argument is no float tensor)."""
    parameter_gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)
    library_calls: list[str] = field(default_factory=list)
    """The libraries that ran; noted by whoever has the whole of what was asked in view, packing included."""


class Bench:
    """The student's names, and the instances built from their classes."""

    def __init__(self, names: Mapping[str, Any], device: str = "cpu") -> None:
        self._names = names
        self._device = torch.device(device)
        self._instances: list[torch.nn.Module] = []
        self._built_from: list[tuple[str, Arguments]] = []
        self._seed = 0

    def kind(self, name: str) -> Kind:
        """Whether a name is a function or a class; raises Missing or Unusable."""
        thing = self._find(name)
        if inspect.isclass(thing):
            return "class"
        if callable(thing):
            return "function"
        raise Unusable(f"`{name}` is not a function or a class but {type(thing).__name__}.")

    def manual_seed(self, seed: int) -> None:
        """The seed for what comes next; an instance that is built without one gets 0."""
        self._seed = seed
        seed_generators(self._seed, self._device)

    def build(self, name: str, arguments: Arguments) -> int:
        """Builds an instance on the CPU, where seeds mean the same everywhere, then moves it to the device."""
        seed_generators(self._seed, self._device)
        self._seed = 0
        with student_code():
            instance = arguments.apply(self._find(name))
        if not isinstance(instance, torch.nn.Module):
            raise Unusable(f"`{name}` does not inherit from torch.nn.Module.")
        with student_code():
            instance.to(self._device)
        self._instances.append(instance)
        self._built_from.append((name, arguments))
        return len(self._instances) - 1

    def call(
        self, target: Target, arguments: Arguments, cotangents: tuple[torch.Tensor, ...] | None = None
    ) -> Observation:
        """Calls a function or an instance's forward on fresh copies of the arguments.

        With cotangents (the gradient of some loss with respect to each output), gradients flow back to
        every float argument and every parameter.
        """
        function = self._callable(target)
        arguments = arguments.mapped(lambda arg: self._place(arg, requires_grad=cotangents is not None))
        inputs = arguments.positional
        before = [arg.detach().clone() if isinstance(arg, torch.Tensor) else None for arg in inputs]
        with student_code():
            value = arguments.apply(function)
        observation = Observation(
            value,
            changed=[i for i, held in enumerate(before) if held is not None and not _same(held, inputs[i])],
            devices=sorted({leaf.device.type for leaf in islice(tensors_in(value), MAX_TENSORS)}),
        )
        if cotangents is not None:
            self._differentiate(observation, target, inputs, cotangents)
        return observation

    def named_parameters(self, instance: int) -> dict[str, torch.Tensor]:
        """The instance's parameters by name, in the order of creation."""
        return {name: p.detach() for name, p in self._instances[instance].named_parameters()}

    def load_parameters(self, instance: int, values: Mapping[str, torch.Tensor]) -> None:
        """Gives the parameters these values, in their own dtype; raises Unusable where names or shapes differ."""
        own = dict(self._instances[instance].named_parameters())
        if own.keys() != values.keys():
            raise Unusable(_other_names(set(values), set(own)))
        for name, parameter in own.items():  # in the order of creation: `values` may have come in any other
            value = values[name]
            if parameter.shape != value.shape:
                shapes = f"{tuple(value.shape)}, here it is {tuple(parameter.shape)}"
                raise Unusable(f"The parameter `{name}` should have shape {shapes}.")
            parameter.data.copy_(value)

    def to_dtype(self, instance: int, dtype: torch.dtype) -> None:
        """`instance.to(dtype)`."""
        with student_code():
            self._instances[instance].to(dtype)

    def train(self, instance: int, mode: bool) -> None:
        """`instance.train(mode)`."""
        with student_code():
            self._instances[instance].train(mode)

    def probe_device(self, target: Target, arguments: Arguments) -> str:
        """Whether the code works on whatever device its inputs are on: see `device_probe`."""
        here = away = self._callable(target)
        with student_code():
            if isinstance(target, int):
                # New instances: one that is moved is lost for the CPU, and one that has been called may hold anything.
                here, away = (self._rebuilt(target) for _ in range(2))
                away = device_probe.moved(away)
            seed_generators(0, self._device)
            return device_probe.probe(away, arguments, lambda: self._seeded(here, arguments))

    def _rebuilt(self, target: int) -> Any:
        """An instance built with the target's arguments and in its mode; each time with the same numbers."""
        name, built_with = self._built_from[target]
        seed_generators(0, self._device)
        instance = built_with.apply(self._find(name))
        instance.train(self._instances[target].training)  # which may be the student's own, and return nothing
        return instance

    def _seeded(self, call: Any, arguments: Arguments) -> Any:
        """What it gives on the CPU, where both `call` and the arguments are."""
        seed_generators(0, self._device)
        return arguments.mapped(copy.deepcopy).apply(call)

    def _differentiate(
        self, observation: Observation, target: Target, inputs: Sequence[Any], cotangents: tuple[torch.Tensor, ...]
    ) -> None:
        leaves = [arg if _differentiable(arg) else None for arg in inputs]
        parameters = dict(self._instances[target].named_parameters()) if isinstance(target, int) else dict[str, Any]()
        wanted = [leaf for leaf in [*leaves, *parameters.values()] if leaf is not None and leaf.requires_grad]
        found: Iterator[torch.Tensor | None] = iter([None] * len(wanted))
        value = observation.value
        outputs = list(value) if isinstance(value, tuple | list) else [value]
        pairs = list(zip(outputs, cotangents, strict=False))
        if all(isinstance(output, torch.Tensor) and output.shape == cotangent.shape for output, cotangent in pairs):
            reached = [
                (output, cotangent.to(output))
                for output, cotangent in pairs
                if output.requires_grad and not output.is_meta
            ]
            if reached:
                with student_code():
                    # Of numbers: from an output and its cotangent on, PyTorch would import sympy, in each process.
                    losses = [(output * cotangent).real.sum() for output, cotangent in reached]
                    found = iter(torch.autograd.grad(losses, wanted, allow_unused=True))
        observation.gradients = [next(found) if leaf is not None else None for leaf in leaves]
        observation.parameter_gradients = {
            name: next(found) if p.requires_grad else None for name, p in parameters.items()
        }

    def _find(self, name: str) -> Any:
        if name not in self._names:
            raise Missing(name)
        return self._names[name]

    def _callable(self, target: Target) -> Any:
        return self._instances[target] if isinstance(target, int) else self._find(target)

    def _place(self, arg: Any, requires_grad: bool) -> Any:
        if not isinstance(arg, torch.Tensor):
            return copy.deepcopy(arg)
        placed = arg.detach().to(self._device, copy=True)
        return placed.requires_grad_() if requires_grad and placed.is_floating_point() else placed


@contextmanager
def student_code() -> Iterator[None]:
    """Turns whatever the student's code raises into Raised, with the line of the cell it came from."""
    try:
        yield
    except BaseException as error:
        raise raised(error) from None


def raised(error: BaseException) -> Raised:
    """An exception of the student's as data."""
    try:
        message = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except Exception:
        message = ""
    if type(error) is NotImplementedError and not message:
        message = _other_than_the_stub(error)
    kinds = [kind.__name__ for kind in type(error).__mro__][:10]
    return Raised(type(error).__name__, message, _place_of(error), kinds)


def _other_than_the_stub(error: BaseException) -> str:
    """Which of the student's own functions raised it, where that is not the exercise's stub."""
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


def seed_generators(seed: int, device: torch.device) -> None:
    """Seeds the CPU's generator, and the device's."""
    # torch.manual_seed also queues a call, with a formatted stack, for each kind of device that is not in use:
    # several milliseconds, and memory that is never given back.
    _cpu_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def _differentiable(arg: Any) -> bool:
    return isinstance(arg, torch.Tensor) and arg.is_floating_point()


# Bound before any cell can put something else in their place.
_equal, _nan_to_num, _cpu_generator = torch.equal, torch.nan_to_num, torch.default_generator


def _same(before: torch.Tensor, after: torch.Tensor) -> bool:
    # A student may also resize an input in place, or change its dtype through `.data`.
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    return _equal(_nan_to_num(before), _nan_to_num(after.detach()))


def _other_names(expected: set[str], found: set[str]) -> str:
    has = ", ".join(sorted(found)) or "no parameters at all"
    return f"Its parameters should be {', '.join(sorted(expected))}; it has {has}."
