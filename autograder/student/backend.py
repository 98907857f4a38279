"""What a face needs of whatever runs the code: a worker far away, or a bench in this process."""

from typing import Protocol, Self, TypeVar, runtime_checkable

from ..core.bench import Operation

T = TypeVar("T")


class Backend(Protocol):
    """Whatever operations can be asked of; their docstrings say what each does and raises."""

    def ask(self, operation: Operation[T]) -> T:
        """What the operation gives."""


@runtime_checkable
class Separable(Protocol):
    """A backend that can run the same code in another worker."""

    def apart(self, spare_memory: int, cpu_seconds: int) -> Self | None:
        """Return the same code in a worker of its own on the CPU, for the exercise that is tested now.

        spare_memory: the bytes that it may use beyond what its imports take; 0 for the usual limit.
        cpu_seconds: CPU time of a call with this spare memory. None if there is no sandbox.
        """
