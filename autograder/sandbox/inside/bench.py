"""The bench on which a student's function or class is tried: the student's names, and what was built from them.

The worker has one beside the student's code; the trusted side has the same for the reference solution and the known
misconceptions, so that all three are observed in the same way. What can be asked of it stands in `operations`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from .faults import Missing
from .seeding import seed_generators

if TYPE_CHECKING:
    from .operations import Assemble, Build, Operation

T = TypeVar("T")
Target = str | int  # a name in the notebook, or the number of an instance built from one of its classes


class Bench:
    """The student's names, and the instances built from their classes."""

    def __init__(self, names: Mapping[str, Any], device: str = "cpu") -> None:
        self._names = names
        self.device = torch.device(device)
        self.instances: list[Any] = []
        self.built: list[Build | Assemble] = []
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

    def add(self, instance: Any, built: "Build | Assemble") -> int:
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
