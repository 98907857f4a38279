"""What a face needs of whatever runs the code: a worker far away, or a bench in this process."""

from typing import Protocol, TypeVar

from ..sandbox.inside.operations import Operation

T = TypeVar("T")


class Backend(Protocol):
    """Whatever operations can be asked of; their docstrings say what each does and raises."""

    def ask(self, operation: Operation[T]) -> T:
        """What the operation gives."""
