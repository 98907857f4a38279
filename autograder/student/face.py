"""`student` and `reference`: two objects with the same face, so that a grader reads as the statement it checks.

`student.attention_scores(queries, keys)` calls the student's function; `student.SelfAttention_v1(3, 2)` builds an
instance of the student's class, which is called in turn. `reference` answers from the solutions, computed in
float64, with `Expected` values that know how close a right answer comes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..compare import TOLERANCE, Expected
from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.bench import Bench, Kind, Observation, Target
from ..sandbox.inside.faults import Raised, Unusable
from .backend import Backend
from .recording import Event, Recording

Cotangent = torch.Tensor | tuple[torch.Tensor, ...]
"""The gradient of some loss with respect to an output; one for each where there are several."""


class Callee:
    """A function, or an instance of a class, of the student's."""

    def __init__(self, backend: Backend, target: Target) -> None:
        self._backend = backend
        self._target = target

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the code returns: tensors and plain values; anything else as `Opaque`."""
        return self.observe(*args, **named).value

    def observe(self, *args: Any, cotangent: Cotangent | None = None, **named: Any) -> Observation:
        """Everything that the call shows; with a cotangent, the gradients too."""
        return self._backend.call(self._target, Arguments(args, named), _cotangents(cotangent))

    def probe_device(self, *args: Any, **named: Any) -> str:
        """Whether the code follows its inputs to another device: see `sandbox.inside.device_probe`."""
        return self._backend.probe_device(self._target, Arguments(args, named))


class Instance(Callee):
    """An instance of one of the student's classes."""

    def __init__(self, backend: Backend, number: int) -> None:
        super().__init__(backend, number)
        self._number = number

    def named_parameters(self) -> dict[str, torch.Tensor]:
        """The parameters by name, in the order of creation."""
        return self._backend.named_parameters(self._number)

    def load_parameters(self, values: Mapping[str, torch.Tensor]) -> None:
        """Transplants parameters by name, so that a different order of creation costs only the seeded test."""
        self._backend.load_parameters(self._number, values)

    def to(self, dtype: torch.dtype) -> "Instance":
        """Changes the parameters' dtype, in place."""
        self._backend.to_dtype(self._number, dtype)
        return self

    def train(self, mode: bool = True) -> "Instance":
        """Switches between training and evaluation."""
        self._backend.train(self._number, mode)
        return self

    def eval(self) -> "Instance":
        """`train(False)`."""
        return self.train(False)


class Student:
    """The names that a notebook defines."""

    def __init__(self, backend: Backend, kinds: Mapping[str, Kind] | None = None) -> None:
        """kinds: whether each exercise is a function or a class, so that one in the other's place is said so."""
        self._backend = backend
        self._expected = kinds or {}
        self._kinds: dict[str, Kind] = {}

    def manual_seed(self, seed: int) -> None:
        """`torch.manual_seed`, beside the student's code."""
        self._backend.manual_seed(seed)

    @contextmanager
    def by_chance(self) -> Iterator[Callable[[Any], None]]:
        """For calls whose results are chance: of these the fingerprint keeps what is noted, never the numbers.

        with student.by_chance() as note:
            note(structure(student.attention_dropout(weights, 0.5)))

        It begins at the same place each time, whatever the notebook drew before.
        """
        self.manual_seed(0)
        recording = self._backend if isinstance(self._backend, Recording) else Recording(self._backend)
        before, notes = len(recording.events), list[Event]()
        try:
            yield lambda shown: notes.append(Event("by chance", (), shown))
        finally:
            drawn = recording.events[before:]
            recording.events[before:] = [event for event in drawn if not isinstance(event.shown, Observation)] + notes

    @contextmanager
    def refusing(self, errors: frozenset[str]) -> Iterator[None]:
        """For a call that one of these errors should end: the fingerprint keeps that one did, not which."""
        try:
            yield
        except Raised as raised:
            # A hostile worker may claim such an error before anything was called.
            if errors & set(raised.kinds) and isinstance(self._backend, Recording) and self._backend.events:
                self._backend.events[-1] = replace(self._backend.events[-1], shown="refused")
            raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._kinds:
            kind = self._backend.kind(name)
            if kind != self._expected.get(name, kind):
                raise Unusable(f"`{name}` should be a {self._expected[name]}; here it is a {kind}.")
            self._kinds[name] = kind
        if self._kinds[name] == "function":
            return Callee(self._backend, name)
        return lambda *args, **named: Instance(self._backend, self._backend.build(name, Arguments(args, named)))


class Reference:
    """The solutions behind the student's face: float inputs go in as float64, values come out as `Expected`."""

    def __init__(self, solutions: Mapping[str, Any]) -> None:
        self._bench = Bench(solutions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._bench.kind(name) == "function":
            return ReferenceCallee(self._bench, name)
        return self._build(name)

    def _build(self, name: str) -> Any:
        def build(*args: Any, **named: Any) -> ReferenceInstance:
            return ReferenceInstance(self._bench, self._bench.build(name, Arguments(args, named)))

        return build


@dataclass(frozen=True)
class ExpectedObservation:
    """What a call should show."""

    value: Any
    gradients: list[Expected | None]
    """One per argument; None where there is nothing to differentiate."""
    parameter_gradients: dict[str, Expected]


class ReferenceCallee:
    """A function, or an instance of a class, of the solutions."""

    def __init__(self, bench: Bench, target: Target) -> None:
        self._bench = bench
        self._target = target

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The expected value of a call with these arguments."""
        return self.observe(*args, **named).value

    def observe(self, *args: Any, cotangent: Cotangent | None = None, **named: Any) -> ExpectedObservation:
        """The expected value and gradients of a call with these arguments."""
        tolerance = TOLERANCE[_dtype(args)]
        cotangents = Arguments(_cotangents(cotangent) or ()).mapped(_double).positional or None
        seen = self._bench.call(self._target, Arguments(args, named).mapped(_double), cotangents)
        return ExpectedObservation(
            _expected(seen.value, tolerance),
            gradients=[_expected(gradient, tolerance) for gradient in seen.gradients],
            parameter_gradients={
                name: _expected(gradient, tolerance) for name, gradient in seen.parameter_gradients.items()
            },
        )


class ReferenceInstance(ReferenceCallee):
    """An instance of one of the solutions' classes, built in float32 under a fixed seed, computing in float64."""

    def __init__(self, bench: Bench, number: int) -> None:
        super().__init__(bench, number)
        bench.to_dtype(number, torch.float64)
        self._number = number

    def named_parameters(self) -> dict[str, torch.Tensor]:
        """The parameters by name, to be transplanted into the student's instance."""
        return self._bench.named_parameters(self._number)

    def load_parameters(self, values: Mapping[str, torch.Tensor]) -> None:
        """Gives the parameters these values, for a case that needs particular ones."""
        self._bench.load_parameters(self._number, values)

    def train(self, mode: bool = True) -> "ReferenceInstance":
        """Switches between training and evaluation."""
        self._bench.train(self._number, mode)
        return self

    def eval(self) -> "ReferenceInstance":
        """`train(False)`."""
        return self.train(False)


def _cotangents(cotangent: Cotangent | None) -> tuple[torch.Tensor, ...] | None:
    return (cotangent,) if isinstance(cotangent, torch.Tensor) else cotangent


def _dtype(args: tuple[Any, ...]) -> torch.dtype:
    floats = (arg.dtype for arg in args if isinstance(arg, torch.Tensor) and arg.is_floating_point())
    return next(floats, torch.float32)


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg


def _expected(value: Any, tolerance: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_expected(item, tolerance) for item in value)
    return Expected(value.detach(), tolerance) if isinstance(value, torch.Tensor) else value
