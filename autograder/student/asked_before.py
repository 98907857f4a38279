"""What was found of a student's code, kept by all that the code answered: the same answers are looked at once.

A grader asks the next thing by what it was answered so far, and what it finds follows from the answers alone. In a
class most answers to an exercise are right, and many of these, and of the wrong ones, are alike to the last bit.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..core.bench import Operation
from ..core.packing import Tensors
from ..sandbox.client import Response
from ..sandbox.worker import protocol
from .backend import Backend, Separable

R = TypeVar("R")
T = TypeVar("T")

MOST_KEPT = 16
"""Results of one thing that is looked for; more would cost memory with the size of a class."""
MOST_BYTES, MOST_BYTES_OF_ALL = 2 << 20, 128 << 20
"""Of the answers that a result follows from, which it may hold: of one result, and of all that a process keeps."""


class Asked(NamedTuple):
    """An operation on its way, without the request's own number."""

    header: dict[str, object]
    payload: bytes


def packed(operation: Operation[Any]) -> Asked:
    """The operation as it is sent."""
    tensors: Tensors = {}
    header = operation.packed(tensors)
    return Asked(header, protocol.encode_tensors(tensors) if tensors else b"")


class Far(Backend, Protocol):
    """A backend across the wire."""

    def exchange(self, asked: Asked) -> Response:
        """Sends what is asked; what came, not yet read."""

    def read(self, operation: Operation[T], answered: Response) -> T:
        """What the operation gives by this answer."""


@dataclass
class _Next(Generic[R]):
    """What is asked next, and where each answer leads."""

    asked: Asked
    answers: "dict[bytes, _Next[R] | _Found[R]]" = field(default_factory=dict)


@dataclass
class _Found(Generic[R]):
    result: R


class AskedBefore(Generic[R]):
    """Results of looking at students' code, by what is looked for and all that was answered."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, _Next[R] | _Found[R]] = {}
        self._kept: dict[Hashable, int] = {}
        self._bytes = 0

    def find(self, what: Hashable, code: Far, look: Callable[[Backend], R], *, is_to_keep: Callable[[R], bool]) -> R:
        """What `look` finds in the code, or found before where the answers were the same.

        is_to_keep: whether a result follows from `what` and the answers alone.
        """
        place, again = self._begun.get(what), _Again(code)
        while isinstance(place, _Next) and again.hears(place.asked):
            digest = again.heard[-1].digest
            place = place.answers.get(digest) if digest else None
        if isinstance(place, _Found):
            return place.result
        result = look(again)
        has_room = again.size <= min(MOST_BYTES, MOST_BYTES_OF_ALL - self._bytes)
        if again.told is not None and is_to_keep(result) and has_room and self._kept.get(what, 0) < MOST_KEPT:
            self._bytes += again.size
            self._keep(what, again.told, result)
        return result

    def _keep(self, what: Hashable, told: "list[tuple[Asked, bytes]]", result: R) -> None:
        self._kept[what] = self._kept.get(what, 0) + 1
        steps: list[_Next[R] | _Found[R]] = [*(_Next(asked) for asked, _ in told), _Found(result)]
        place = self._begun.setdefault(what, steps[0])
        for (asked, digest), following in zip(told, steps[1:], strict=True):
            if not isinstance(place, _Next) or place.asked != asked:
                self._begun.pop(what)  # it draws by chance, so nothing follows from its answers
                self._kept[what] = MOST_KEPT
                return
            place = place.answers.setdefault(digest, following)


class _Again:
    """The code, once more from the first question on: what was answered already is not asked twice."""

    def __init__(self, code: Far) -> None:
        self._code = code
        self._asked: list[Asked] = []
        self._read = 0
        self._trouble: Exception | None = None
        self.size = 0
        """Bytes of the answers."""
        self.heard: list[Response] = []
        self.told: list[tuple[Asked, bytes]] | None = []
        """All that was asked, with the answers' digests; None where something else than an answer came."""

    def hears(self, asked: Asked) -> bool:
        """Asks what is going to be asked; whether an answer came."""
        try:
            self.heard.append(self._code.exchange(asked))
        except Exception as trouble:  # for whoever asks
            self._trouble = trouble
            return False
        self._asked.append(asked)
        return True

    def apart(self, spare_memory: int, cpu_seconds: int) -> Backend | None:
        """Return the code's separate backend. The verdict then depends on more than the answers and is not cached."""
        self.told = None
        return self._code.apart(spare_memory, cpu_seconds) if isinstance(self._code, Separable) else None

    def ask(self, operation: Operation[T]) -> T:
        """What the operation gives."""
        asked = packed(operation)
        if self._read < len(self._asked) and self._asked[self._read] != asked:
            del self._asked[self._read :], self.heard[self._read :]  # something else than the last time
        if self._read == len(self.heard) and (self._trouble or not self.hears(asked)):
            assert self._trouble is not None
            trouble, self._trouble, self.told = self._trouble, None, None
            raise trouble
        answered = self.heard[self._read]
        self._read += 1
        self.size += sum(map(len, answered.frame))
        if answered.digest is None:
            self.told = None
        if self.told is not None and answered.digest is not None:
            self.told.append((asked, answered.digest))
        return self._code.read(operation, answered)
