"""The bench on which a student's function or class is tried: the student's names, and what was built from them.

The worker has one beside the student's code; the trusted side has the same for the reference solution and the known
misconceptions, so that all three are observed in the same way. What can be asked of it stands in `operations`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import CodeType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch

from .faults import Missing
from .packing import Tensors, pack

T = TypeVar("T")
PLAIN = (str, int, bool, type(None))
"""The types of values that a header holds without packing."""
Target = str | int  # a name in the notebook, or the number of an instance built from one of its classes


class Building(Protocol):
    """An operation that makes an instance."""

    def made(self, bench: "Bench", /) -> Any:
        """Make another instance in the same way."""


class Bench:
    """The student's names, and the instances built from their classes."""

    def __init__(self, names: Mapping[str, Any], device: str = "cpu") -> None:
        self._names = names
        self._redefined: dict[str, Any] = {}
        """The names that are redefined for a trial, with their usual contents."""
        self.device = torch.device(device)
        self.instances: list[Any] = []
        self.built: list[Building] = []
        """What each instance was built by."""
        self.next_seed = 0
        """The seed for the instance that is built next."""

    def ask(self, operation: "Operation[T]") -> T:
        """Carries an operation out."""
        return operation.on(self)

    def begin(self) -> None:
        """Begins with the next exercise, whose instances are counted anew."""
        self.instances.clear()
        self.built.clear()

    def redefine(self, codes: Mapping[str, CodeType]) -> None:
        """Run new definitions of some names; give names that were redefined before their usual contents back.

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
        """Keeps an instance; its number."""
        self.instances.append(instance)
        self.built.append(built)
        return len(self.instances) - 1

    def find(self, name: str) -> Any:
        """What the student calls so; raises Missing."""
        if name not in self._names:
            raise Missing(name)
        return self._names[name]

    def target(self, target: Target) -> Any:
        """What is to be called."""
        return self.instances[target] if isinstance(target, int) else self.find(target)

    def seed(self, seed: int) -> None:
        """Seeds the CPU's generator, and the device's."""
        seed_generators(seed, self.device)


@dataclass(frozen=True)
class Operation(Generic[T]):
    """One request to the student's code, which results in a T."""

    tag: ClassVar[str] = ""
    """The operation's name in a header."""
    form: ClassVar[Any] = None
    """The type that the answer is read as, if it is a plain value."""

    def on(self, bench: Bench) -> T:
        """Carry the operation out. A mistake of the student's code is raised as a StudentFault."""
        raise NotImplementedError

    def packed(self, tensors: Tensors) -> dict[str, Any]:
        """Return the operation as a header, and add its tensors to `tensors`."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        packed = {name: value if type(value) in PLAIN else pack(value, tensors) for name, value in values.items()}
        return {"operation": self.tag, **packed}


# Bound before any cell can put something else in its place.
_cpu_generator = torch.default_generator


def seed_generators(seed: int, device: torch.device) -> None:
    """Seeds the CPU's generator, and the device's."""
    _cpu_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def seed_in_use(seed: int) -> None:
    """Seeds the generators of the devices that this process computes on."""
    seed_generators(seed, torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))
