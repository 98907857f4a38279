"""The graders as data: the calls they make and the right results, for the check that students get.

A grader is run on the solutions with a recording in between, and what it looks at is found out (`what_is_asked`). A
public grader is recorded as it is; any other with other numbers than its own, so that its cases stay hidden.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch

from ..core.bench import Operation
from ..core.faults import StudentFault
from ..core.observation import Observation
from ..core.operations import Call, KindOf, LoadParameters, ManualSeed, NamedParameters, ProbeDevice, is_bias
from ..course import content
from ..graders.collected import Grader
from ..student.backend import Backend
from ..student.face import Student
from ..student.reference import Exact
from .examiner import candidate_bench
from .other_numbers import OtherCases, OtherReference, Rules
from .right_without_dropout import with_the_right_sums
from .solution_fails import FAILURES, SolutionFails, sentence
from .what_is_asked import looks_at, refusals
from .written_calls import INSTEAD, Asked, Writing, as_json, name_of

T = TypeVar("T")
_AS_IT_IS = (ProbeDevice, NamedParameters)
"""What these give is not computed again in float64."""


def of_exercise(unit: str, graders: Sequence[Grader]) -> dict[str, Any]:
    """One example for each grader of an exercise, what is not tried, and what may not be called.

    Raises NotReleasable and SolutionFails.
    """
    made = [(grader, example(unit, grader)) for grader in graders]
    return {
        "forbids": sorted({library for grader in graders for library in grader.forbids}),
        "not_tried": [_about(grader) for grader, example in made if example is None],
        "examples": [example for _, example in made if example is not None],
    }


def _instead() -> tuple[Mapping[tuple[str, str], Any], Mapping[tuple[str, str], Callable[..., None]]]:
    """What the course releases in the place of graders whose own calls cannot be: steps, and other graders."""
    if not (content.place(content.HIDDEN) / f"{INSTEAD}.py").is_file():
        return {}, {}
    module = content.module(f"{content.HIDDEN}.{INSTEAD}")
    return module.STEPS, module.GRADERS


def example(unit: str, grader: Grader) -> dict[str, Any] | None:
    """What it states, what it weighs, what it looks at, and the steps; None where it cannot be released."""
    about = _about(grader)
    if grader.hunted is not None:  # what it looks at is no result that is known
        step = {"operation": "call", "name": grader.exercise, "hunt": grader.hunted.released(unit)}
        return {**about, "looks_at": ["hunt"], "steps": [step]}
    instead, graders = _instead()
    by_hand = instead.get((grader.exercise, grader.name))
    if by_hand:
        return {**about, "looks_at": by_hand[0], "steps": with_the_right_sums(unit, by_hand[1])}
    other = graders.get((grader.exercise, grader.name))
    if other:
        asks_for = frozenset({"student", "reference", "rng"})
        grader = replace(grader, function=other, asks_for=asks_for)
    runs = _Runs(unit, grader)
    asked = runs.recorded()
    if not other and runs.shows_a_hidden_case(asked):
        return None
    aspects = looks_at(runs, sum(isinstance(one.operation, Call) for one in asked))
    if "steady" in aspects and len({_shape_of(one) for one in asked if isinstance(one.operation, Call)}) > 1:
        aspects = {**aspects, "value": None}  # what is compared there is of several kinds
        del aspects["steady"]
    refused = refusals(runs) if any(one.fault for one in asked) else []
    if not (aspects or refused) or (
        aspects.keys() & {"value", "steady", "gradients"} and runs.depends_on_chance(asked)
    ):
        return None
    writing = Writing(runs.rules, aspects, refused)
    steps = [step for one in asked for step in writing.steps(one)]
    found = {**about, "looks_at": sorted(aspects), "steps": steps}
    if any(isinstance(one.operation, LoadParameters) and not one.operation.exactly for one in asked):
        asked = runs.recorded(has_biases=False)  # which draws by new rules
        writing = Writing(runs.rules, aspects, refused)
        unbiased = [step for one in asked for step in writing.steps(one)]
        if unbiased != steps:
            found["unbiased"] = unbiased
    return found


def _about(grader: Grader) -> dict[str, Any]:
    """Return the statement and weight of a hidden test, and by which rules it earns points."""
    rules = (("property", grader.is_property), ("essential", grader.is_essential))
    about = {"statement": grader.statement, "weight": grader.points, "public": grader.is_public}
    return about | {rule: True for rule, applies in rules if applies}


class _Keeping:
    """Stands before the solutions and keeps what is asked, with what they give when they compute in float64."""

    def __init__(self, unit: str, other_seeds: int, *, has_biases: bool) -> None:
        """has_biases: false to hide the biases of instances from the hidden test, which then expects none."""
        self._backend = candidate_bench(unit, None)
        self._exact = Exact(candidate_bench(unit, None))
        self._other_seeds = other_seeds
        self._has_biases = has_biases
        self.asked: list[Asked] = []

    def ask(self, operation: Operation[T]) -> T:
        made: Any = operation
        if isinstance(operation, ManualSeed) and self._other_seeds:
            made = ManualSeed(operation.seed + self._other_seeds)
        try:
            given: T = self._backend.ask(made)
        except StudentFault:
            self.asked.append(Asked(operation, fault=True))
            raise
        if not isinstance(operation, KindOf):
            exact = given if isinstance(operation, _AS_IT_IS) else self._exact.ask(made)
            self.asked.append(Asked(operation, exact, _dtype_of(given)))
        if isinstance(operation, NamedParameters) and not self._has_biases:
            parameters: Any = given
            without: Any = {name: one for name, one in parameters.items() if not is_bias(name)}
            given = without
        return given


class _Runs:
    """Runs one grader on the solutions, with the numbers that are released."""

    def __init__(self, unit: str, grader: Grader) -> None:
        self._unit = unit
        self._grader = grader
        self.rules = Rules(f"{unit} {grader.exercise} {grader.name}")

    def __call__(self, between: Callable[[Backend], Backend]) -> None:
        """With something between the grader and the solutions, which compute in the dtypes that they are given."""
        self._run(Student(between(candidate_bench(self._unit, None))))

    def _run(self, student: Student) -> None:
        if self._grader.is_public:
            self._grader.ask(student)
            return
        self.rules = Rules(f"{self._unit} {self._grader.exercise} {self._grader.name}")
        solutions = content.solutions(self._unit)
        self._grader.ask(student, OtherReference(solutions, self.rules), OtherCases(self.rules))

    def recorded(self, other_seeds: int = 0, *, has_biases: bool = True) -> list[Asked]:
        """Return the operations of the hidden test, answered in float64; without biases if the answer lacks them."""
        keeping = _Keeping(self._unit, other_seeds, has_biases=has_biases)
        try:
            self._run(Student(keeping))
        except FAILURES as found:
            on = "" if self._grader.is_public else " with numbers drawn for the release"
            raise SolutionFails(sentence(self._grader, found, on)) from found
        return keeping.asked

    def depends_on_chance(self, asked: list[Asked]) -> bool:
        """Whether under other seeds something else comes of it."""
        if self._grader.is_public:
            return False
        again = self.recorded(other_seeds=1)
        pairs = zip(asked, again, strict=True)
        return any(as_json(one.given.value) != as_json(other.given.value)
                   for one, other in pairs if isinstance(one.operation, Call) and not one.fault)  # fmt: skip

    def shows_a_hidden_case(self, asked: list[Asked]) -> bool:
        """Whether numbers or words of its own stand in it, which no other draw takes the place of."""
        if self._grader.is_public or "rng" in self._grader.asks_for:
            return False
        calls = [one.operation for one in asked if isinstance(one.operation, Call)]
        return any(isinstance(arg, torch.Tensor | str) for call in calls for arg in call.arguments.positional)


def _dtype_of(given: Any) -> str:
    value = given.value if isinstance(given, Observation) else None
    first = value[0] if isinstance(value, tuple) else value
    return name_of(first.dtype) if isinstance(first, torch.Tensor) else ""


def _shape_of(asked: Asked) -> tuple[int, ...]:
    value = getattr(asked.given, "value", None)
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()
