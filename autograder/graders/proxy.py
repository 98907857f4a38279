"""Proxies of the student's code, so that a hidden test reads as the statement that it checks.

`student.attention_scores(queries, keys)` calls the student's function. `student.SelfAttention_v1(3, 2)` builds an
instance of the student's class, which can be called in turn.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from ..core import operations
from ..core.arguments import Arguments, InstancePositions
from ..core.assembled import Shapes
from ..core.bench import Target
from ..core.cost import Limits, MeasuredCall
from ..core.device_probe import Probed
from ..core.faults import Raised, Unusable
from ..core.observation import Observation
from ..core.operations import Kind
from .backend import Backend, Event, Recording, separate
from .decoding import decode_cost

Cotangent = torch.Tensor | tuple[torch.Tensor, ...]
"""The gradient of some loss with respect to each output."""
_NO_SHAPES: Shapes = {}
_NO_NAMES: Mapping[str, str] = {}


class CallableProxy:
    """A proxy of a student's function, or of an instance's `forward` or other method."""

    def __init__(self, backend: Backend, target: Target, part: str = "") -> None:
        """part: the name of an instance's method."""
        self._backend = backend
        self._target = target
        self._part = part

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the code and return its result: tensors and plain values; anything else as `Opaque`."""
        return self.observe(*args, **named).value

    def observe(self, *args: Any, cotangent: Cotangent | None = None, **named: Any) -> Observation[Any]:
        """Call the code and return everything that the call shows; with a cotangent, gradients too.

        Tensors among the arguments are copied, instances are not.
        """
        arguments, held = _without_instances(args, named)
        cotangents = (cotangent,) if isinstance(cotangent, torch.Tensor) else cotangent
        return self._backend.ask(operations.Call(self._target, arguments, cotangents, held, self._part))

    def once(self, *args: Any) -> Any:
        """Call the code with an iterator instead of each list and tuple, which can be walked only once."""
        return self._backend.ask(operations.Call(self._target, Arguments(args), part=self._part, once=True)).value

    def measured(self, *args: Any, limits: Limits, once: bool = False, **named: Any) -> MeasuredCall:
        """Call the code and count what that costs: see `core.cost`.

        limits: the limits of the hidden test, which the release states. once: each list and tuple is a generator.
        """
        arguments, held = _without_instances(args, named)
        seen = self._backend.ask(operations.MeasureCost(self._target, arguments, held=held, once=once, limits=limits))
        return MeasuredCall(decode_cost(seen.cost), seen.value)

    def timed(self, *args: Any) -> Observation[Any]:
        """Call the code and measure the CPU time of the call."""
        arguments, held = _without_instances(args, {})
        return self._backend.ask(operations.TimedCall(self._target, arguments, held=held))

    def of_blocks(self, seed: int, number: int, length: int) -> Any:
        """Call the code with a generator of `number` random blocks, (length,) each; return its result."""
        return self._backend.ask(operations.BlocksCall(self._target, Arguments(), blocks=(seed, number, length))).value

    def probe_device(self, *args: Any, **named: Any) -> Probed:
        """Return whether the code follows its inputs to another device: see `core.device_probe`."""
        return self._backend.ask(operations.ProbeDevice(self._target, Arguments(args, named)))


class InstanceProxy(CallableProxy):
    """A proxy of an instance of one of the student's classes."""

    def __init__(self, backend: Backend, number: int) -> None:
        super().__init__(backend, number)
        self._number = number

    def named_parameters(self) -> dict[str, torch.Tensor]:
        """Return the parameters by name, in the order of creation."""
        return self._backend.ask(operations.NamedParameters(self._number))

    def load_parameters(self, values: Mapping[str, torch.Tensor], *, exactly: bool = False) -> None:
        """Set parameters by name, so that a different order of creation fails only the test with a seed.

        A bias that only the instance has becomes zero, and one that only `values` has is left out. exactly: no name may
        differ.
        """
        self._backend.ask(operations.LoadParameters(self._number, values, exactly))

    def to(self, dtype: torch.dtype) -> "InstanceProxy":
        """Change the parameters' dtype, in place."""
        self._backend.ask(operations.ToDtype(self._number, str(dtype).removeprefix("torch.")))
        return self

    def train(self, mode: bool = True) -> "InstanceProxy":
        """Switch between training and evaluation."""
        self._backend.ask(operations.Train(self._number, mode))
        return self

    def eval(self) -> "InstanceProxy":
        """Switch to evaluation: `train(False)`."""
        return self.train(False)

    def method(self, name: str) -> CallableProxy:
        """Return a proxy of one of the instance's methods."""
        return CallableProxy(self._backend, self._number, name)

    def read(self, name: str) -> Any:
        """Return an attribute of the instance: a tensor or a plain value."""
        return self._backend.ask(operations.Read(self._number, Arguments(), part=name)).value


class StudentProxy:
    """A proxy of the names that a notebook defines.

    Example:
        student = StudentProxy(backend)
        weights = student.softmax(torch.randn(2, 3))  # calls the function
        layer = student.SelfAttention_v1(3, 2)  # builds an instance of the class
    """

    def __init__(
        self,
        backend: Backend,
        kinds: Mapping[str, Kind] | None = None,
        *,
        known: Mapping[str, Kind] | None = None,
    ) -> None:
        """kinds: the required kind of each exercise; a function instead of a class is `Unusable`, and vice versa.

        known: the kinds of names that need not be queried again.
        """
        self._backend = backend
        self._required = kinds or {}
        self.kinds: dict[str, Kind] = dict(known or {})
        """The kinds of the names that were queried."""

    def manual_seed(self, seed: int) -> None:
        """Call `torch.manual_seed` in the process of the student's code."""
        self._backend.ask(operations.ManualSeed(seed))

    def assemble(
        self,
        parameters: Shapes,
        *,
        buffers: Shapes = _NO_SHAPES,
        frozen: tuple[str, ...] = (),
        shared: Mapping[str, str] = _NO_NAMES,
        computes: str = "",
        others: tuple[str, ...] = (),
    ) -> InstanceProxy:
        """Build a module of none of the student's classes, for the code to work on: see `core.assembled`."""
        return self._build(operations.Assemble(parameters, buffers, frozen, shared, computes, others))

    def plain(self, name: str, *args: Any, **named: Any) -> InstanceProxy:
        """Build an instance of a class that need not be a module."""
        self._kind(name)
        return self._build(operations.Build(name, Arguments(args, named), plain=True))

    def _build(self, operation: operations.Assemble | operations.Build) -> InstanceProxy:
        return InstanceProxy(self._backend, self._backend.ask(operation))

    def apart(self, spare_memory: int = 0, cpu_seconds: int = 0) -> "StudentProxy | None":
        """Return the same code in a worker of its own on the CPU: see `backend.Separable`. None without a sandbox."""
        backend = separate(self._backend, spare_memory, cpu_seconds)
        return None if backend is None else StudentProxy(backend, self._required, known=self.kinds)

    @contextmanager
    def by_chance(self) -> Iterator[Callable[[Any], None]]:
        """Record of calls with random results only what the hidden test notes about them, never their values.

        with student.by_chance() as note:
            note(structure(student.attention_dropout(weights, 0.5)))

        The generator starts from the same seed each time, whatever the notebook drew before.
        """
        self.manual_seed(0)
        recording = self._backend if isinstance(self._backend, Recording) else Recording(self._backend)
        before, notes = len(recording.events), list[Event]()
        try:
            yield lambda shown: notes.append(Event(None, shown))
        finally:
            drawn = recording.events[before:]
            recording.events[before:] = [event for event in drawn if not isinstance(event.shown, Observation)] + notes

    @contextmanager
    def refusing(self, errors: frozenset[str]) -> Iterator[None]:
        """Record of a call that one of these errors should end only that one did, not which."""
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
        if self._kind(name) == "function":
            return CallableProxy(self._backend, name)
        return lambda *args, **named: self._build(operations.Build(name, Arguments(args, named)))

    def _kind(self, name: str) -> Kind:
        if name not in self.kinds:
            kind = self._backend.ask(operations.KindOf(name))
            if kind != self._required.get(name, kind):
                raise Unusable(f"`{name}` is a {kind}; it should be a {self._required[name]}.")
            self.kinds[name] = kind
        return self.kinds[name]


def _without_instances(args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Arguments, InstancePositions]:
    """Return the arguments without the instances among them, and the positions and numbers of the instances."""
    held = tuple((position, arg._number) for position, arg in enumerate(args) if isinstance(arg, InstanceProxy))
    return Arguments(tuple(arg for arg in args if not isinstance(arg, InstanceProxy)), named), held
