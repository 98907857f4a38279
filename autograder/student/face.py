"""The face of `student` and of `reference`, so that a grader reads as the statement it checks.

`student.attention_scores(queries, keys)` calls the student's function; `student.SelfAttention_v1(3, 2)` builds an
instance of the student's class, which is called in turn.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from ..compare.costs import Limits
from ..core import operations
from ..core.arguments import Arguments, Held
from ..core.assembled import Shapes
from ..core.bench import Target
from ..core.cost import Measured
from ..core.device_probe import Probed
from ..core.faults import Raised, Unusable
from ..core.observation import Observation
from ..core.operations import Kind
from . import counted
from .backend import Backend, Separable
from .recording import Event, Recording

Cotangent = torch.Tensor | tuple[torch.Tensor, ...]
"""The gradient of some loss with respect to an output; one for each where there are several."""
_NO_SHAPES: Shapes = {}
_NO_NAMES: Mapping[str, str] = {}


class Callee:
    """A function, or an instance of a class, of the student's."""

    def __init__(self, backend: Backend, target: Target, part: str = "") -> None:
        """part: the method's name, of an instance."""
        self._backend = backend
        self._target = target
        self._part = part

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the code returns: tensors and plain values; anything else as `Opaque`."""
        return self.observe(*args, **named).value

    def observe(self, *args: Any, cotangent: Cotangent | None = None, **named: Any) -> Observation[Any]:
        """Everything that the call shows; with a cotangent, the gradients too. Instances among the arguments are no
        copies."""
        arguments, held = _apart(args, named)
        return self._backend.ask(operations.Call(self._target, arguments, _cotangents(cotangent), held, self._part))

    def once(self, *args: Any) -> Any:
        """What the code returns where each list and tuple among the arguments is an iterator, walked only once."""
        return self._backend.ask(operations.Call(self._target, Arguments(args), part=self._part, once=True)).value

    def measured(self, *args: Any, limits: Limits, once: bool = False, **named: Any) -> Measured:
        """Call the code and count what that costs: see `core.cost`.

        limits: what the cost is held to, which the release says. once: each list and tuple is a generator.
        """
        arguments, held = _apart(args, named)
        seen = self._backend.ask(operations.MeasureCost(self._target, arguments, held=held, once=once, limits=limits))
        return Measured(counted.read(seen.cost), seen.value)

    def timed(self, *args: Any) -> Observation[Any]:
        """Call the code and measure the CPU time of the call."""
        arguments, held = _apart(args, {})
        return self._backend.ask(operations.TimedCall(self._target, arguments, held=held))

    def of_blocks(self, seed: int, number: int, length: int) -> Any:
        """Call the code with a generator of `number` drawn blocks, (length,) each; return its result."""
        return self._backend.ask(operations.BlocksCall(self._target, Arguments(), blocks=(seed, number, length))).value

    def probe_device(self, *args: Any, **named: Any) -> Probed:
        """Return whether the code follows its inputs to another device: see `core.device_probe`."""
        return self._backend.ask(operations.ProbeDevice(self._target, Arguments(args, named)))


class Instance(Callee):
    """An instance of one of the student's classes."""

    def __init__(self, backend: Backend, number: int) -> None:
        super().__init__(backend, number)
        self._number = number

    def named_parameters(self) -> dict[str, torch.Tensor]:
        """The parameters by name, in the order of creation."""
        return self._backend.ask(operations.NamedParameters(self._number))

    def load_parameters(self, values: Mapping[str, torch.Tensor], *, exactly: bool = False) -> None:
        """Transplants parameters by name, so that a different order of creation costs only the seeded test.

        A bias too many becomes zero, and one too few is left out, unless the names are to be these `exactly`.
        """
        self._backend.ask(operations.LoadParameters(self._number, values, exactly))

    def to(self, dtype: torch.dtype) -> "Instance":
        """Changes the parameters' dtype, in place."""
        self._backend.ask(operations.ToDtype(self._number, str(dtype).removeprefix("torch.")))
        return self

    def train(self, mode: bool = True) -> "Instance":
        """Switches between training and evaluation."""
        self._backend.ask(operations.Train(self._number, mode))
        return self

    def eval(self) -> "Instance":
        """`train(False)`."""
        return self.train(False)

    def method(self, name: str) -> Callee:
        """One of the instance's methods."""
        return Callee(self._backend, self._number, name)

    def read(self, name: str) -> Any:
        """What the instance has under this name: a tensor or a plain value."""
        return self._backend.ask(operations.Read(self._number, Arguments(), part=name)).value


class Student:
    """The names that a notebook defines."""

    def __init__(
        self,
        backend: Backend,
        kinds: Mapping[str, Kind] | None = None,
        *,
        known: Mapping[str, Kind] | None = None,
    ) -> None:
        """kinds: whether each exercise is a function or a class, so that one in the other's place is said so.

        known: what names are that need not be asked for again.
        """
        self._backend = backend
        self._expected = kinds or {}
        self.kinds: dict[str, Kind] = dict(known or {})
        """What the names that were asked for are."""

    def manual_seed(self, seed: int) -> None:
        """`torch.manual_seed`, beside the student's code."""
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
    ) -> Instance:
        """A module for the code to work on, of none of the student's classes: see `core.assembled`."""
        made = operations.Assemble(parameters, buffers, frozen, shared, computes, others)
        return Instance(self._backend, self._backend.ask(made))

    def apart(self, spare_memory: int = 0, cpu_seconds: int = 0) -> "Student | None":
        """The same code in a worker of its own on the CPU: see `backend.Separable`. None if there is no sandbox."""
        if not isinstance(self._backend, Separable):
            return None
        if (backend := self._backend.apart(spare_memory, cpu_seconds)) is None:
            return None
        return Student(backend, self._expected, known=self.kinds)

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
            yield lambda shown: notes.append(Event(None, shown))
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

    def plain(self, name: str, *args: Any, **named: Any) -> Instance:
        """An instance of a class that need be no module."""
        self._kind(name)
        return Instance(self._backend, self._backend.ask(operations.Build(name, Arguments(args, named), plain=True)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._kind(name) == "function":
            return Callee(self._backend, name)

        def build(*args: Any, **named: Any) -> Instance:
            return Instance(self._backend, self._backend.ask(operations.Build(name, Arguments(args, named))))

        return build

    def _kind(self, name: str) -> Kind:
        if name not in self.kinds:
            kind = self._backend.ask(operations.KindOf(name))
            if kind != self._expected.get(name, kind):
                raise Unusable(f"`{name}` should be a {self._expected[name]}; here it is a {kind}.")
            self.kinds[name] = kind
        return self.kinds[name]


def _apart(args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Arguments, Held]:
    """The arguments without the instances among them, and these."""
    held = tuple((place, arg._number) for place, arg in enumerate(args) if isinstance(arg, Instance))
    return Arguments(tuple(arg for arg in args if not isinstance(arg, Instance)), named), held


def _cotangents(cotangent: Cotangent | None) -> tuple[torch.Tensor, ...] | None:
    return (cotangent,) if isinstance(cotangent, torch.Tensor) else cotangent
