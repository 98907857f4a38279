"""The arguments of hidden tests: `student` and `reference`, proxies of code, and `rng`, random cases.

With a proxy, hidden tests call code like ordinary Python: `student.attention_scores(queries, keys)` calls the student's
function. `student.SelfAttention_v1(3, 2)` builds an instance of the student's class, and the instance can be called,
too. `reference` is a proxy of the solutions.
"""

import copy
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

import torch

from ..core import operations
from ..core.arguments import Arguments, InstancePositions, Shapes, tensors_in
from ..core.bench import Bench, Operation, Target
from ..core.comparison import TOLERANCE, as_expected
from ..core.cost import Limits, MeasuredCall
from ..core.device_probe import Probed
from ..core.observation import Observation, Raised, Unusable
from ..core.operations import Kind
from .backend import Backend, Event, Recording, separate
from .decoding import decode_cost

Cotangent = torch.Tensor | tuple[torch.Tensor, ...]
"""The gradient of a loss with respect to the result, or to each of several results."""
_NO_SHAPES: Shapes = {}
_NO_NAMES: Mapping[str, str] = {}
T = TypeVar("T")


class CallableProxy:
    """A proxy of a student's function, or of an instance's `forward` or other method."""

    def __init__(self, backend: Backend, target: Target, part: str = "") -> None:
        """target: name of the function, or number of the instance. part: name of a method; empty for `forward`."""
        self._backend = backend
        self._target = target
        self._part = part

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the code and return its result. Values other than tensors and plain values come as `Opaque`."""
        return self.observe(*args, **named).value

    def observe(self, *args: Any, cotangent: Cotangent | None = None, **named: Any) -> Observation[Any]:
        """Call the code and return all that is observed: result, changed arguments and, with a cotangent, gradients.

        Tensors among the arguments are copied, instances are not.
        """
        arguments, held = _without_instances(args, named)
        cotangents = (cotangent,) if isinstance(cotangent, torch.Tensor) else cotangent
        return self._backend.ask(operations.Call(self._target, arguments, cotangents, held, self._part))

    def once(self, *args: Any) -> Any:
        """Call the code with lists and tuples replaced by iterators, which can be read only once; return its result."""
        return self._backend.ask(operations.Call(self._target, Arguments(args), part=self._part, once=True)).value

    def measured(self, *args: Any, limits: Limits, once: bool = False, **named: Any) -> MeasuredCall:
        """Call the code and count the cost of the call: see `core.cost`. Return the cost and the result.

        limits: those of the hidden test, for the release. once: replace lists and tuples by iterators.
        """
        arguments, held = _without_instances(args, named)
        seen = self._backend.ask(operations.MeasureCost(self._target, arguments, held=held, once=once, limits=limits))
        return MeasuredCall(decode_cost(seen.cost), seen.value)

    def timed(self, *args: Any) -> Observation[Any]:
        """Call the code and return the observation, with the CPU time of the call."""
        arguments, held = _without_instances(args, {})
        return self._backend.ask(operations.TimedCall(self._target, arguments, held=held))

    def of_blocks(self, seed: int, number: int, length: int) -> Any:
        """Call the code with a generator of `number` random tensors of shape (length,); return its result."""
        return self._backend.ask(operations.BlocksCall(self._target, Arguments(), blocks=(seed, number, length))).value

    def probe_device(self, *args: Any, **named: Any) -> Probed:
        """Call the code with inputs on another device; return the verdict and the result: see `core.device_probe`."""
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
        """Set the instance's parameters by name, so that the order in which it creates them does not matter.

        A bias that only the instance has becomes zero; a bias that only `values` has is ignored. exactly: all names
        must be equal.
        """
        self._backend.ask(operations.LoadParameters(self._number, values, exactly))

    def to(self, dtype: torch.dtype) -> "InstanceProxy":
        """Convert the instance's parameters to another dtype, in place; return this proxy."""
        self._backend.ask(operations.ToDtype(self._number, str(dtype).removeprefix("torch.")))
        return self

    def train(self, mode: bool = True) -> "InstanceProxy":
        """Switch the instance to training mode, or to evaluation mode if `mode` is False; return this proxy."""
        self._backend.ask(operations.Train(self._number, mode))
        return self

    def eval(self) -> "InstanceProxy":
        """Switch the instance to evaluation mode; return this proxy."""
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
        """kinds: by exercise, whether a function or a class is required; using the other one raises Unusable.

        known: the kinds of names that need not be queried again.
        """
        self._backend = backend
        self._required = kinds or {}
        self.kinds: dict[str, Kind] = dict(known or {})
        """The kinds, function or class, of the names used so far."""

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
        """Build a module that is an argument for the student's code, not one of its classes: see `Assembled`."""
        return self._build(operations.Assemble(parameters, buffers, frozen, shared, computes, others))

    def plain(self, name: str, *args: Any, **named: Any) -> InstanceProxy:
        """Build an instance of a student's class that need not be an nn.Module. name: the class's name."""
        self._kind(name)
        return self._build(operations.Build(name, Arguments(args, named), plain=True))

    def _build(self, operation: operations.Assemble | operations.Build) -> InstanceProxy:
        return InstanceProxy(self._backend, self._backend.ask(operation))

    def apart(self, spare_memory: int = 0, cpu_seconds: int = 0) -> "StudentProxy | None":
        """Return a proxy of the same code in another worker (see `backend.Separable`); None without a sandbox."""
        backend = separate(self._backend, spare_memory, cpu_seconds)
        return None if backend is None else StudentProxy(backend, self._required, known=self.kinds)

    @contextmanager
    def by_chance(self) -> Iterator[Callable[[Any], None]]:
        """Record only notes on the calls in the block, not their results, because these are random.

        with student.by_chance() as note:
            note(structure(student.attention_dropout(weights, 0.5)))

        The random generator is seeded with 0 first.
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
        """If a call in the block raises one of these errors, record only that it did, not which error it was."""
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


DIGITS = 3
DRAWN_FROM = f"torch.Generator on the CPU, seeded with the CRC-32 of the grader's name; {DIGITS} decimals"
DRAWN_FROM_SECRET = f"torch.Generator on the CPU, seeded with the grader's name and a secret; {DIGITS} decimals"


class Cases:
    """Random tensors for one hidden test, seeded by its name, so that a new test changes no other test's cases.

    Numbers are rounded to three decimals, so that they are equal on all CPUs. secret: if not empty, also seeds them.
    """

    def __init__(self, name: str, secret: str = "") -> None:
        digest = hashlib.sha256(f"{secret} {name}".encode()).digest()
        seed = int.from_bytes(digest[:4]) if secret else zlib.crc32(name.encode())
        self._generator = torch.Generator().manual_seed(seed)
        self._dtype = torch.float32

    def of(self, dtype: torch.dtype) -> "Cases":
        """Return these cases, but with tensors of another dtype. The same numbers are drawn for any dtype."""
        cases = copy.copy(self)
        cases._dtype = dtype
        return cases

    def rand(self, *shape: int) -> torch.Tensor:
        """Return a random tensor of this shape with elements between 0.1 and 1.1, so that none is zero."""
        return self._even(shape).to(self._dtype)

    def randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Return a random tensor of this shape with normally distributed elements. scale: the standard deviation."""
        return self._bell(shape, scale).to(self._dtype)

    def _even(self, shape: tuple[int, ...]) -> torch.Tensor:
        drawn = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return (drawn + 0.1).round(decimals=DIGITS)

    def _bell(self, shape: tuple[int, ...], scale: float) -> torch.Tensor:
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return (drawn * scale).round(decimals=DIGITS)


class Float64Backend:
    """A wrapper of a backend that converts inputs to float64. Instances are built in float32 and then converted.

    Example: `Float64Backend(bench).ask(Call("softmax", Arguments((scores,))))` returns float64 for float32 scores.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, operation: Operation[T]) -> T:
        """Execute the operation with float64 inputs and return its result."""
        precise: Operation[Any] = operation
        if isinstance(operation, operations.Call):
            cotangents = Arguments(operation.cotangents or ()).mapped(_double).positional or None
            precise = replace(operation, arguments=operation.arguments.mapped(_double), cotangents=cotangents)
        result: Any = self._backend.ask(precise)
        if isinstance(operation, operations.Assemble) or (
            isinstance(operation, operations.Build) and not operation.plain
        ):
            self._backend.ask(operations.ToDtype(result, "float64"))
        return cast(T, result)


class _ExpectedBackend(Float64Backend):
    """A wrapper that returns the results of calls as `Expected`, with the tolerance for the inputs' original dtype.

    It has its own random state, so that a known answer in this process draws the same numbers as in a sandbox.
    """

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._random_state = torch.Generator().get_state()

    def ask(self, operation: Operation[T]) -> T:
        around = torch.get_rng_state()
        torch.set_rng_state(self._random_state)
        try:
            result: Any = super().ask(operation)
        finally:
            self._random_state = torch.get_rng_state()
            torch.set_rng_state(around)
        if isinstance(operation, operations.Call):
            dtypes = (arg.dtype for arg in tensors_in(operation.arguments.positional) if arg.is_floating_point())
            tolerance = TOLERANCE[next(dtypes, torch.float32)]
            result = result.mapped(lambda value: as_expected(value, tolerance))
        return cast(T, result)


class Reference(StudentProxy):
    """A proxy of the solutions, whose calls return `Expected` values, computed in float64."""

    def __init__(self, solutions: Mapping[str, Any]) -> None:
        super().__init__(_ExpectedBackend(Bench(solutions)))


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
