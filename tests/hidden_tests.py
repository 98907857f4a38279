"""List of the hidden tests: one line each, with its statement.

`python -m tests.hidden_tests > tests/hidden_tests.txt` writes the list again, after an intended change of hidden tests.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from autograder import course
from autograder.core.arguments import Arguments
from autograder.core.bench import Operation
from autograder.graders.backend import Recording
from autograder.graders.collection import HiddenTest, HiddenTests, collect
from autograder.graders.proxy import StudentProxy
from autograder.grading.examiner import candidate_bench

LIST = Path(__file__).with_name("hidden_tests.txt")


@dataclass(frozen=True)
class Listed:
    """A grader's line."""

    exercise: str
    name: str
    weight: str
    markers: str
    operations: str
    """A digest of what it asks of the solution, in order: operations, names, shapes, dtypes, other values."""
    numbers: float
    """A sum over all the numbers that it gives the solution; the last digits may differ between machines."""
    statement: str

    def __str__(self) -> str:
        asked = f"{self.operations} {self.numbers:.8g}"
        return f"{self.exercise} {self.name} {self.weight} {self.markers} {asked} {self.statement}"

    @property
    def in_words(self) -> tuple[str, ...]:
        """Text of a hidden test's statement."""
        return self.name, self.weight, self.markers, self.statement

    @classmethod
    def of(cls, line: str) -> "Listed":
        """The grader of a line of the list."""
        exercise, name, weight, markers, operations, numbers, statement = line.split(" ", 6)
        return cls(exercise, name, weight, markers, operations, float(numbers), statement)


def listed() -> list[Listed]:
    """The graders of the list, in its order."""
    return [Listed.of(line) for line in LIST.read_text().splitlines()]


def _fields(operation):
    return tuple(getattr(operation, field.name) for field in fields(operation))


def _line(grader: HiddenTest) -> Listed:
    operations = _asked(grader)
    structure = repr([(one.tag, _structure(_fields(one))) for one in operations])
    tensors = [tensor for one in operations for tensor in _tensors(_fields(one))]
    markers = {"public": grader.is_public, "property": grader.is_property, "device": grader.probes_device}
    markers |= {"essential": grader.is_essential}
    markers |= {f"forbids_{name.replace(' ', '_')}": True for name in grader.forbids}
    return Listed(
        f"{grader.unit}.{grader.exercise}",
        grader.name,
        f"{grader.points:g}",
        ",".join(grading_process for grading_process, carries in markers.items() if carries) or "-",
        hashlib.sha256(structure.encode()).hexdigest()[:12],
        math.fsum(_sum(tensor, place) for place, tensor in enumerate(tensors)),
        grader.statement,
    )


def _asked(grader: HiddenTest) -> list[Operation[Any]]:
    # Behind another recording, from which what is drawn by chance is taken away.
    behind = Recording(candidate_bench(grader.unit, None))
    grader.run(StudentProxy(Recording(behind)))
    return [event.operation for event in behind.events if event.operation is not None]


def _structure(value: Any) -> Any:
    match value:
        case torch.Tensor():
            return str(value.dtype), tuple(value.shape)
        case Arguments(positional, named):
            return _structure(positional), _structure(dict(named))
        case dict():
            return {key: _structure(one) for key, one in value.items()}
        case tuple() | list():
            return [_structure(one) for one in value]
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    match value:
        case torch.Tensor():
            yield value
        case Arguments(positional, named):
            yield from _tensors([*positional, *named.values()])
        case dict():
            yield from _tensors([*value.values()])
        case tuple() | list():
            for one in value:
                yield from _tensors(one)


def _sum(tensor: torch.Tensor, place: int) -> float:
    """Each number weighs by its place, so that none can change places with another. Infinite ones are large here."""
    weights = torch.cos(torch.arange(tensor.numel(), dtype=torch.float64) + place)
    return float(tensor.detach().double().nan_to_num(posinf=1e6, neginf=-1e6).flatten() @ weights)


def _print_lines(graders: HiddenTests) -> None:
    for unit in course.unit_names():
        for exercise in course.unit(unit).exercises:
            for grader in graders[unit][exercise.name]:
                print(_line(grader))


if __name__ == "__main__":
    torch.set_num_threads(1)
    _print_lines(collect())
