"""The bench: the names of a notebook, the instances built from its classes, and the execution of operations on them.

The worker has a bench for the student's code. The grading process has benches for the solutions and the known
misconceptions, so that all code is observed in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import CodeType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch

from .observation import Missing
from .packing import Tensors, pack

T = TypeVar("T")
PLAIN = (str, int, bool, type(None))
"""The types of values that a header holds without packing."""
Target = str | int  # a name in the notebook, or the number of an instance built from one of its classes


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
