"""What may go wrong with a student's code, as it is told to the trusted side."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A line in one of the notebook's cells."""

    cell: str
    line: int


class StudentFault(Exception):
    """The student's code did not do what was asked; `str()` is a sentence for the student."""


class Missing(StudentFault):
    """The notebook defines no such name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is not defined in the notebook.")
        self.name = name


class Raised(StudentFault):
    """The student's code raised an exception."""

    MAX_MESSAGE = 300

    def __init__(
        self,
        type_name: str,
        message: str,
        place: Place | None = None,
        kinds: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        """kinds: the names of the exception's classes, its own and those it inherits from. hint: what to say beside."""
        self.type_name = type_name[:80]
        self.kinds = tuple(kinds)
        self.message = message[: self.MAX_MESSAGE]
        self.place = place
        self.hint = hint
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        if self.type_name == "NotImplementedError" and not self.message and self.place:
            return (
                f"Nothing is written in the cell `{self.place.cell}` yet: its line {self.place.line} raises "
                "NotImplementedError."
            )
        said = f"{self.type_name}: {self.message}" if self.message else self.type_name
        where = f" (line {self.place.line} of the cell `{self.place.cell}`)" if self.place else ""
        return f"Raised {said}{where}{'. ' if self.hint else ''}{self.hint}"


class Unusable(StudentFault):
    """The student's object cannot be used as the exercise asks, e.g. a parameter has another name."""

    MAX_SENTENCE = 600

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence[: self.MAX_SENTENCE])
