"""The bench: the names of a notebook, the instances built from its classes, and the execution of operations on them.

The worker has a bench for the student's code. The grading process has benches for the solutions and the known
misconceptions, so that all code is observed in the same way.

Two operations change the names: `Redefine`, and `TryEdits`, which runs other operations with each of several variants.
Its results are fingerprints, which compare the results of hundreds of edited answers without sending the results.
"""

import signal
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from types import CodeType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch

from .observation import CELL_PREFIX, Missing, Observation, StudentFault, student_code
from .packing import Tensors, pack

T = TypeVar("T")
PLAIN = (str, int, bool, type(None))
"""The types of values that a header holds without packing."""
Target = str | int  # a name in the notebook, or the number of an instance built from one of its classes
_SECONDS_OF_VARIANT = 0.25
"""CPU time limit for one variant, whose operations take milliseconds."""


class Building(Protocol):
    """An operation that builds an instance."""

    def made(self, bench: "Bench", /) -> Any:
        """Build another instance in the same way."""


class Bench:
    """The student's names, and the instances built from their classes."""

    def __init__(self, names: Mapping[str, Any], device: str = "cpu") -> None:
        self._names = names
        self._redefined: dict[str, Any] = {}
        """The original values of the names that `redefine` replaced."""
        self.device = torch.device(device)
        self.instances: list[Any] = []
        self.built: list[Building] = []
        """The operation that built each instance."""
        self.next_seed = 0
        """The seed for the instance that is built next."""

    def ask(self, operation: "Operation[T]") -> T:
        """Execute an operation and return its result."""
        return operation.on(self)

    def begin(self) -> None:
        """Drop all instances before the next exercise, which counts its instances from 0."""
        self.instances.clear()
        self.built.clear()

    def redefine(self, codes: Mapping[str, CodeType]) -> None:
        """Run new definitions of some names, after restoring the names that an earlier call redefined.

        Instances are counted from 0 again. Raises what the code raises.
        """
        names = self._names
        assert isinstance(names, dict)
        names.update(self._redefined)
        self._redefined = {name: self.find(name) for name in codes}
        self.begin()
        for code in codes.values():
            exec(code, names)

    def add(self, instance: Any, built: Building) -> int:
        """Store an instance and return its number."""
        self.instances.append(instance)
        self.built.append(built)
        return len(self.instances) - 1

    def find(self, name: str) -> Any:
        """Return the value of a name of the notebook; raises Missing."""
        if name not in self._names:
            raise Missing(name)
        return self._names[name]

    def target(self, target: Target) -> Any:
        """Return the instance of this number, or the value of this name."""
        return self.instances[target] if isinstance(target, int) else self.find(target)

    def seed(self, seed: int) -> None:
        """Seed the generators of the CPU and of this bench's device."""
        seed_generators(seed, self.device)


@dataclass(frozen=True)
class Operation(Generic[T]):
    """One request to the student's code, whose result is a T."""

    tag: ClassVar[str] = ""
    """The operation's name in a header."""
    form: ClassVar[Any] = None
    """The result's type, for decoding an answer; None unless it is a plain value."""

    def on(self, bench: Bench) -> T:
        """Execute the operation on a bench. Raises StudentFault if the student's code fails."""
        raise NotImplementedError

    def packed(self, tensors: Tensors) -> dict[str, Any]:
        """Return the operation as a header, and add its tensors to `tensors`."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        packed = {name: value if type(value) in PLAIN else pack(value, tensors) for name, value in values.items()}
        return {"operation": self.tag, **packed}


# Bound before any cell can replace it.
_cpu_generator = torch.default_generator


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators of the CPU and of a device."""
    _cpu_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def seed_in_use(seed: int) -> None:
    """Seed the generators of the CPU and, if this process uses one, of the GPU."""
    seed_generators(seed, torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))


@dataclass(frozen=True)
class Redefine(Operation[None]):
    """Replace definitions of functions or classes of the notebook until the next `Redefine`.

    definitions: for each its name, its source, its cell, and the line of the cell at which the source begins.
    """

    tag = "redefine"
    definitions: tuple[tuple[str, str, str, int], ...]

    def on(self, bench: Bench) -> None:
        with student_code():
            bench.redefine({name: _compiled(text, cell, line) for name, text, cell, line in self.definitions})


@lru_cache(maxsize=1024)
def _compiled(text: str, cell: str, line: int) -> CodeType:
    """Return the code of a definition; cached, because a search tries the same edits on several hidden tests."""
    return compile("\n" * (line - 1) + text, CELL_PREFIX + cell, "exec", dont_inherit=True)


@dataclass(frozen=True)
class TryEdits(Operation[torch.Tensor]):
    """Run the same operations with several variants of definitions, and return the fingerprints of all results.

    variants: each as in `Redefine`. Result: (variant, operation, 3), see `fingerprint`. An operation that fails has the
    negative fingerprint of its error message, and operations after it have zeros.
    """

    tag = "try_edits"
    variants: tuple[tuple[tuple[str, str, str, int], ...], ...]
    operations: tuple[Operation[Any], ...]

    def on(self, bench: Bench) -> torch.Tensor:
        fingerprints: list[list[_Numbers]] = []  # of numbers, because thousands of small tensors take long to make
        for variant in self.variants:
            rows: list[_Numbers] = []
            try:
                with cpu_limit(_SECONDS_OF_VARIANT), student_code():
                    bench.ask(Redefine(variant))
                    for operation in self.operations:
                        rows.append(_numbers(bench.ask(operation)))
            except StudentFault as fault:
                rows.append((-_numbers(str(fault))[0], 0.0, 0.0))
            except OverLimit:
                pass
            rows += [(0.0, 0.0, 0.0)] * len(self.operations)
            fingerprints.append(rows[: len(self.operations)])
        return torch.tensor(fingerprints, dtype=torch.float64).reshape(len(fingerprints), len(self.operations), 3)

    def packed(self, tensors: Tensors) -> dict[str, Any]:
        operations = [operation.packed(tensors) for operation in self.operations]
        return {"operation": self.tag, "variants": self.variants, "operations": operations}


_Numbers = tuple[float, float, float]
_PARTS = ("value", "changed", "devices", "gradients", "parameter_gradients")
_TOLERANCE = 1e-4


def fingerprint(result: Any) -> torch.Tensor:
    """Return three numbers, (3,): a checksum of types, shapes and dtypes, and two sums of all elements.

    Equal results have fingerprints that are equal but for rounding; different results rarely do. The checksum is
    never 0.
    """
    return torch.tensor(_numbers(result), dtype=torch.float64)


def _numbers(result: Any) -> _Numbers:
    words: list[str] = []
    total = weighted = 0.0
    values = [[getattr(result, part) for part in _PARTS] if isinstance(result, Observation) else result]
    while values:
        one = values.pop()
        if isinstance(one, torch.Tensor):
            words.append(f"{one.dtype} {tuple(one.shape)}")
            numbers = one.detach().double().flatten().nan_to_num(nan=17.25, posinf=1e6, neginf=-1e6)
            total += numbers.sum().item() * (1 + len(words) % 7)
            weighted += (numbers @ _weights(len(numbers))).item() * (1 + len(words) % 7)
        elif isinstance(one, list | tuple | dict):
            words.append(f"{len(one)}")
            values += one.values() if isinstance(one, dict) else one
        else:
            words.append(repr(one)[:100])
    return 1.0 + zlib.crc32("\n".join(words).encode()), total, weighted


@lru_cache(maxsize=16)
def _weights(size: int) -> torch.Tensor:
    return torch.arange(1, size + 1, dtype=torch.float64).sin_()


def equal_fingerprints(fingerprints: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return for each fingerprint, (..., 3), whether it equals the expected one but for rounding."""
    size = expected.abs().clamp(min=1.0)
    is_close = ((fingerprints - expected).abs() <= _TOLERANCE * size).all(dim=-1)
    return is_close & (fingerprints[..., 0] == expected[..., 0])


_AGAIN = 0.05
"""Interval in seconds at which OverLimit is raised again, because edited code may catch it."""


class OverLimit(BaseException):
    """The limit of CPU time is exceeded."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise OverLimit in and after the block once the process has used `seconds` of CPU time. Main thread only."""
    signals: list[int] = []

    def end(number: int, frame: Any) -> None:
        signals.append(number)
        raise OverLimit

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if signals:
        raise OverLimit
