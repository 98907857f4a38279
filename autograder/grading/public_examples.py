"""Run the hidden tests on the solutions: verify that all pass, and record the examples of the student check.

The solutions must pass, and call no library that their exercise forbids. Otherwise right answers would lose points: by
a faulty test, or by a wrong list of forbidden libraries. A public test is recorded with its own inputs, any other test
with inputs drawn for the release (`released_steps`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import torch

from .. import UserError
from ..catalogue.bug_hunts import hunt_of
from ..core.bench import Operation
from ..core.comparison import Expected, Mismatch
from ..core.judgement import value_sums
from ..core.observation import Observation, StudentFault
from ..core.operations import Call, KindOf, LoadParameters, ManualSeed, NamedParameters, ProbeDevice, Read, is_bias
from ..course import content
from ..course.settings import folder
from ..graders.backend import Backend, Recording
from ..graders.collection import HiddenTest, HiddenTests, line_in_hidden
from ..graders.proxy import Float64Backend, StudentProxy
from ..student_check.examples import Call as ExampleCall
from ..student_check.examples import StepRunner
from ..student_check.run_examples import new_notebook_state
from .examiner import candidate_bench
from .infer_aspects import ATTRIBUTES, ONLY, accepted_errors, infer_aspects
from .released_steps import INSTEAD, Answered, SeededCases, SeededInputs, SeededReference, StepWriter, as_json, name_of

_MOST_REPORTED = 3
_LONGEST = 160
"""Most characters of a value in a message."""

FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""Exceptions that may end a hidden test; those of pytest are not derived from Exception."""


class SolutionFails(UserError):
    """Raised if a solution fails hidden tests or calls a forbidden library.

    `str()` names the tests, with the actual and the expected values.
    """


def verify_solutions(graders: HiddenTests, unit: str) -> None:
    """Run each hidden test of a unit on the solution, with the inputs of grading; raises SolutionFails.

    From then on, this process records which libraries an answer calls.
    """
    messages: list[str] = []
    solutions = content.solutions(unit)
    for exercise, tests in graders.get(unit, {}).items():
        if exercise not in solutions:  # `build` reports tests of an exercise that no text mentions
            continue
        recording = Recording(candidate_bench(unit, None, watch=True))
        kinds = {exercise: recording.ask(KindOf(exercise))}
        for test in tests:
            try:
                test.run(StudentProxy(recording, kinds))
            except FAILURES as error:
                messages.append(failure_message(test, error))
        forbidden = {library for test in tests for library in test.forbids} & recording.library_calls
        messages += [
            f"solutions/{unit}.py: `{exercise}` calls {library}, which its graders forbid: an answer like it gets no "
            "points."
            for library in sorted(forbidden)
        ]
    if messages:
        more = [f"And {len(messages) - _MOST_REPORTED} more."] if len(messages) > _MOST_REPORTED else []
        raise SolutionFails("\n".join([*messages[:_MOST_REPORTED], *more]))


def failure_message(test: HiddenTest, error: BaseException, on: str = "") -> str:
    """Return the error message on a hidden test that fails on the solution.

    on: words that describe the inputs, if they are not the test's own.
    """
    place = line_in_hidden(error)
    file = f" ({place.filename}, line {place.lineno})".replace(f"{folder()}/", "") if place else ""
    name, solution = f"`{test.name}` of {test.exercise}{file}", f"solutions/{test.unit}.py"
    if isinstance(error, Mismatch | StudentFault):
        return f"{solution} fails the grader {name}{on}: {error}{_compared(error)}"
    reason = " ".join(str(error).partition("\n +")[0].split())  # pytest appends where each value came from
    return f"The grader {name} itself fails on {solution}{on}: {type(error).__name__}: {reason}"


def _compared(error: Exception) -> str:
    if not isinstance(error, Mismatch) or error.compared is None:
        return ""
    actual, expected = (
        text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in map(_plain, error.compared)
    )
    return f" The result is {actual}, but {expected} is expected."


def _plain(value: Any) -> str:
    """Return a value as text, with tensors as nested lists."""
    match value:
        case Expected():
            return _plain(value.value)
        case torch.Tensor():
            return _plain(value.detach().tolist())
        case list():
            return f"[{', '.join(map(_plain, value))}]"
        case tuple():
            return f"({', '.join(map(_plain, value))})"
        case float():
            return f"{value:.6g}"
    return repr(value)


T = TypeVar("T")
_DIGITS = 4


def examples_of(unit: str, tests: Sequence[HiddenTest]) -> dict[str, Any]:
    """Return an exercise's data for the student check: examples, tests without an example, forbidden libraries.

    tests: the exercise's hidden tests. Raises NotReleasable and SolutionFails.
    """
    examples = [(test, example(unit, test)) for test in tests]
    return {
        "forbids": sorted({library for test in tests for library in test.forbids}),
        "not_tried": [_about(test) for test, written in examples if written is None],
        "examples": [written for _, written in examples if written is not None],
    }


def example(unit: str, test: HiddenTest) -> dict[str, Any] | None:
    """Return the example of a hidden test: its statement, weight, aspects and steps; None if it cannot be released.

    Raises NotReleasable and SolutionFails.
    """
    about = _about(test)
    if (hunt := hunt_of(test)) is not None:  # the answer to a bug hunt has no single right result
        step = {"operation": "call", "name": test.exercise, "hunt": hunt.released(unit)}
        return {**about, "looks_at": ["hunt"], "steps": [step]}
    steps_instead, tests_instead = _instead()
    key = test.exercise, test.name
    if key in steps_instead:
        aspect_names, written_steps = steps_instead[key]
        return {**about, "looks_at": aspect_names, "steps": _with_right_sums(unit, written_steps)}
    if key in tests_instead:
        test = replace(test, function=tests_instead[key], arguments=frozenset({"student", "reference", "rng"}))
    runs = _Runs(unit, test)
    answered = runs.recorded()
    if key not in tests_instead and runs.shows_a_hidden_case(answered):
        return None
    calls = [one for one in answered if isinstance(one.operation, Call)]
    reads = any(isinstance(one.operation, Read) for one in calls)
    aspects = infer_aspects(runs, len(calls), _number_of_results(calls), reads=reads)
    if "steady" in aspects and len({_shape_of(one) for one in calls}) > 1:
        aspects = {**aspects, "value": None}  # the test compares results of several shapes
        del aspects["steady"]
    errors = accepted_errors(runs) if any(one.has_raised for one in answered) else []
    if not (aspects or errors) or (
        aspects.keys() & {"value", "steady", "gradients"} and runs.depends_on_chance(answered)
    ):
        return None
    steps = StepWriter(runs.inputs, aspects, errors).steps(answered)
    written = {**about, "looks_at": sorted(aspects.keys() - {ATTRIBUTES, ONLY}), "steps": steps}
    if any(isinstance(one.operation, LoadParameters) and not one.operation.exactly for one in answered):
        answered = runs.recorded(has_biases=False)  # draws its inputs again
        unbiased = StepWriter(runs.inputs, aspects, errors).steps(answered)
        if unbiased != steps:
            written["unbiased"] = unbiased
    return written


def _instead() -> tuple[Mapping[tuple[str, str], Any], Mapping[tuple[str, str], Callable[..., None]]]:
    """Return the steps and the tests that the course defines as substitutes for tests that cannot be released.

    Both are keyed by exercise and test name.
    """
    if not (content.place(content.HIDDEN) / f"{INSTEAD}.py").is_file():
        return {}, {}
    module = content.module(f"{content.HIDDEN}.{INSTEAD}")
    return module.STEPS, module.GRADERS


def _with_right_sums(unit: str, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the shape and sums of the solution's result to steps that compare a module's result in evaluation mode.

    With these, the student check can distinguish a wrong result from wrong dropout.
    """
    solution = StepRunner(content.solutions(unit))
    completed: list[dict[str, Any]] = []
    with new_notebook_state():
        for step in steps:
            call = solution.run(step)
            if isinstance(call, ExampleCall) and step.get("whole") == "evaluation":
                right = {
                    "shape": list(call.whole.shape),
                    "sums": [round(number, _DIGITS) for number in value_sums(call.whole)],
                }
                step = {**step, "dropped": {**step["dropped"], "evaluation": right}}
            completed.append(step)
    return completed


def _about(test: HiddenTest) -> dict[str, Any]:
    """Return the statement and weight of a hidden test, and the special rules by which it earns points."""
    rules = (("property", test.is_property), ("essential", test.is_essential))
    about = {"statement": test.statement, "weight": test.points, "public": test.is_public}
    return about | {rule: True for rule, applies in rules if applies}


class _Recorder:
    """A backend that runs operations on the solutions, and records them with their results in float64."""

    def __init__(self, unit: str, other_seeds: int, *, has_biases: bool) -> None:
        """other_seeds: added to each seed. has_biases: False to hide instances' biases from the hidden test."""
        self._backend = candidate_bench(unit, None)
        self._exact = Float64Backend(candidate_bench(unit, None))
        self._other_seeds = other_seeds
        self._has_biases = has_biases
        self.answered: list[Answered] = []

    def ask(self, operation: Operation[T]) -> T:
        seeded: Any = operation
        if isinstance(operation, ManualSeed) and self._other_seeds:
            seeded = ManualSeed(operation.seed + self._other_seeds)
        try:
            result: Any = self._backend.ask(seeded)
        except StudentFault:
            self.answered.append(Answered(operation, has_raised=True))
            raise
        if not isinstance(operation, KindOf):
            exact = result if isinstance(operation, ProbeDevice | NamedParameters) else self._exact.ask(seeded)
            self.answered.append(Answered(operation, exact, _dtype_of(result)))
        if isinstance(operation, NamedParameters) and not self._has_biases:
            result = {name: parameter for name, parameter in result.items() if not is_bias(name)}
        recorded: T = result
        return recorded


class _Runs:
    """Runs one hidden test on the solutions, with inputs that may be released."""

    def __init__(self, unit: str, test: HiddenTest) -> None:
        self._unit = unit
        self._test = test
        self._new_inputs()

    def _new_inputs(self) -> None:
        self.inputs = SeededInputs(f"{self._unit} {self._test.exercise} {self._test.name}")

    def __call__(self, between: Callable[[Backend], Backend]) -> None:
        """Run the test on the solutions, which compute in the dtypes of their arguments; raises what the test raises.

        between: wraps the solutions' backend.
        """
        self._run(StudentProxy(between(candidate_bench(self._unit, None))))

    def _run(self, student: StudentProxy) -> None:
        if self._test.is_public:
            self._test.run(student)
            return
        self._new_inputs()
        solutions = content.solutions(self._unit)
        self._test.run(student, SeededReference(solutions, self.inputs), SeededCases(self.inputs))

    def recorded(self, other_seeds: int = 0, *, has_biases: bool = True) -> list[Answered]:
        """Return the operations of the hidden test with the solution's results in float64; raises SolutionFails.

        other_seeds, has_biases: see `_Recorder`.
        """
        recorder = _Recorder(self._unit, other_seeds, has_biases=has_biases)
        try:
            self._run(StudentProxy(recorder))
        except FAILURES as error:
            on = "" if self._test.is_public else " with numbers drawn for the release"
            raise SolutionFails(failure_message(self._test, error, on)) from error
        return recorder.answered

    def depends_on_chance(self, answered: list[Answered]) -> bool:
        """Return whether the results depend on the random seeds. answered: the result of `recorded()`."""
        if self._test.is_public:
            return False
        pairs = zip(answered, self.recorded(other_seeds=1), strict=True)
        return any(
            as_json(one.result.value) != as_json(other.result.value)
            for one, other in pairs
            if isinstance(one.operation, Call) and not one.has_raised
        )

    def shows_a_hidden_case(self, answered: list[Answered]) -> bool:
        """Return whether a hidden test contains its tensors or strings as constants, which would be released."""
        if self._test.is_public or "rng" in self._test.arguments:
            return False
        calls = [one.operation for one in answered if isinstance(one.operation, Call)]
        return any(isinstance(arg, torch.Tensor | str) for call in calls for arg in call.arguments.positional)


def _dtype_of(result: Any) -> str:
    value = result.value if isinstance(result, Observation) else None
    results = value if isinstance(value, tuple) else (value,)
    first = next((one for one in results if isinstance(one, torch.Tensor)), None)
    return name_of(first.dtype) if isinstance(first, torch.Tensor) else ""


def _number_of_results(calls: Sequence[Answered]) -> int:
    """Return the number of results of each call; 1 if it differs between the calls."""
    values = [getattr(one.result, "value", None) for one in calls]
    numbers = {len(value) if isinstance(value, tuple | list) else 1 for value in values}
    return numbers.pop() if len(numbers) == 1 else 1


def _shape_of(answered: Answered) -> tuple[int, ...]:
    value = getattr(answered.result, "value", None)
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()
