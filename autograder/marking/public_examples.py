"""The graders as data: the calls they make and the right results, for the check that students get.

A grader is run on the solutions with a recording in between, and what it looks at is found out (`what_is_asked`). A
public grader is recorded as it is; any other with other numbers than its own, so that its cases stay hidden.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from ..course import content
from ..graders.collected import Grader, Graders
from ..handout.written_values import identity, packed
from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.faults import StudentFault
from ..sandbox.inside.observation import Observation
from ..sandbox.inside.operations import (
    Build,
    Call,
    KindOf,
    LoadParameters,
    ManualSeed,
    NamedParameters,
    Operation,
    ProbeDevice,
    ToDtype,
    Train,
    is_bias,
)
from ..student.backend import Backend
from ..student.face import Student
from ..student.reference import Exact
from .examiner import candidate_bench
from .other_numbers import OtherCases, OtherReference, Rules
from .right_without_dropout import with_the_right_sums
from .solution_fails import FAILURES, SolutionFails, sentence
from .what_is_asked import BIASES, close_for, looks_at, refusals

T = TypeVar("T")
DECIMALS, EXACT_DECIMALS = 6, 12
INSTEAD = "instead"
"""The module of the hidden graders with what is released in the place of some of them."""
LONG = 24
"""So many numbers stand in the release in a form that can be read; longer ones in one that is short."""


class NotReleasable(Exception):
    """A grader asks what no check can; `str()` says which."""


def of_unit(graders: Graders, unit: str) -> dict[str, Any]:
    """By exercise, one example for each grader, what is not tried, and what may not be called.

    Raises NotReleasable and SolutionFails.
    """
    return {exercise: _of_exercise(unit, list(its_graders)) for exercise, its_graders in graders[unit].items()}


def _of_exercise(unit: str, graders: list[Grader]) -> dict[str, Any]:
    made = [(grader, example(unit, grader)) for grader in graders]
    return {
        "forbids": sorted({library for grader in graders for library in grader.forbids}),
        "not_tried": [grader.statement for grader, example in made if example is None],
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
    about = {"statement": grader.statement, "weight": grader.points}
    about |= {
        kind: True for kind, is_so in (("property", grader.is_property), ("essential", grader.is_essential)) if is_so
    }
    about["public"] = grader.is_public
    steps, graders = _instead()
    by_hand = steps.get((grader.exercise, grader.name))
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
    writing = _Writing(runs.rules, aspects, refused)
    return {**about, "looks_at": sorted(aspects), "steps": [step for one in asked for step in writing.steps(one)]}


@dataclass
class _Asked:
    """What a grader asked, and what came of it."""

    operation: Operation[Any]
    given: Any = None
    dtype: str = ""
    """Of a call's result."""
    fault: bool = False


class _Keeping:
    """Stands before the solutions and keeps what is asked, with what they give when they compute in float64."""

    def __init__(self, unit: str, other_seeds: int) -> None:
        self._backend = candidate_bench(unit, None)
        self._exact = Exact(candidate_bench(unit, None))
        self._other_seeds = other_seeds
        self.asked: list[_Asked] = []

    def ask(self, operation: Operation[T]) -> T:
        made: Any = operation
        if isinstance(operation, ManualSeed) and self._other_seeds:
            made = ManualSeed(operation.seed + self._other_seeds)
        try:
            given: T = self._backend.ask(made)
        except StudentFault:
            self.asked.append(_Asked(operation, fault=True))
            raise
        if not isinstance(operation, KindOf):
            exact = given if isinstance(operation, ProbeDevice | NamedParameters) else self._exact.ask(made)
            self.asked.append(_Asked(operation, exact, _dtype_of(given)))
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

    def recorded(self, other_seeds: int = 0) -> list[_Asked]:
        """What it asks, answered in float64."""
        keeping = _Keeping(self._unit, other_seeds)
        try:
            self._run(Student(keeping))
        except FAILURES as found:
            on = "" if self._grader.is_public else " with numbers drawn for the release"
            raise SolutionFails(sentence(self._grader, found, on)) from found
        return keeping.asked

    def depends_on_chance(self, asked: list[_Asked]) -> bool:
        """Whether under other seeds something else comes of it."""
        if self._grader.is_public:
            return False
        again = self.recorded(other_seeds=1)
        pairs = zip(asked, again, strict=True)
        return any(as_json(one.given.value) != as_json(other.given.value)
                   for one, other in pairs if isinstance(one.operation, Call) and not one.fault)  # fmt: skip

    def shows_a_hidden_case(self, asked: list[_Asked]) -> bool:
        """Whether numbers or words of its own stand in it, which no other draw takes the place of."""
        if self._grader.is_public or "rng" in self._grader.asks_for:
            return False
        calls = [one.operation for one in asked if isinstance(one.operation, Call)]
        return any(isinstance(arg, torch.Tensor | str) for call in calls for arg in call.arguments.positional)


@dataclass
class _Writing:
    """Writes down what was asked."""

    rules: Rules
    aspects: dict[str, Any]
    refused: list[str]

    def steps(self, asked: _Asked) -> list[dict[str, Any]]:
        step = self._step(asked)
        if step and asked.fault:
            step["refuses"] = self.refused
        return [step] if step else []

    def _step(self, asked: _Asked) -> dict[str, Any] | None:
        match asked.operation:
            case ManualSeed(seed):
                return {"operation": "manual_seed", "seed": seed}
            case Build(name, arguments):
                return {"operation": "build", "name": name, **self._arguments(arguments)}
            case Call():
                return self._call(asked.operation, asked)
            case LoadParameters(instance, values):
                written = {name: self._plain(value) for name, value in values.items()}
                return {"operation": "load", "instance": instance, "values": written}
            case ToDtype(instance, dtype):
                return {"operation": "to", "instance": instance, "dtype": dtype}
            case Train(instance, mode):
                return {"operation": "train", "instance": instance, "mode": mode}
            case NamedParameters(instance):
                right = {name: list(one.shape) for name, one in asked.given.items()}
                looked_at = {"right": right} if "parameters" in self.aspects else {}
                return {"operation": "parameters", "instance": instance, **looked_at}
            case ProbeDevice(target, arguments):
                return {"operation": "probe", **_target(target), **self._arguments(arguments)}
        what = type(asked.operation).__name__
        raise NotReleasable(
            f"A grader asks for {what}, which the check cannot do: {INSTEAD}.py can hold another for it."
        )

    def _call(self, call: Call, asked: _Asked) -> dict[str, Any]:
        step = {"operation": "call", **_target(call.target), **self._arguments(call.arguments)}
        close = self.aspects.get("value") or close_for(call)
        decimals = EXACT_DECIMALS if close < 1e-6 else DECIMALS
        given = asked.given
        if given is None:
            return step
        if "dtype" in self.aspects:
            step["dtype"] = asked.dtype
        if self.aspects.keys() & {"value", "steady"}:
            step |= {"result": self._plain(given.value, decimals), "close": close}
        if call.cotangents is not None and self.aspects.keys() & {"gradients", "arrival", "finite"}:
            step["cotangents"] = [self._plain(one) for one in call.cotangents]
            if "gradients" in self.aspects:
                step["close"] = close
                biases = self.aspects["gradients"] == BIASES
                step["gradients"] = [None if biases else self._plain(one, decimals) for one in given.gradients]
                named = [(name, one) for name, one in given.parameter_gradients.items() if is_bias(name) or not biases]
                step["parameter_gradients"] = {name: self._plain(one, decimals) for name, one in named}
            elif "arrival" in self.aspects:
                step["arrives_at"] = [n for n, one in enumerate(given.gradients) if one is not None]
        return step

    def _arguments(self, arguments: Arguments) -> dict[str, Any]:
        positional = [self._plain(value) for value in arguments.positional]
        return {"args": positional, "named": dict(arguments.named)} if arguments.named else {"args": positional}

    def _plain(self, value: Any, decimals: int | None = None) -> Any:
        if decimals is None and isinstance(value, torch.Tensor) and (short := self._by_a_rule(value)):
            return short
        return as_json(value, decimals)

    def _by_a_rule(self, value: torch.Tensor) -> dict[str, Any] | None:
        about = {"shape": list(value.shape), "dtype": _name(value.dtype)}
        if found := self.rules.of(value):
            rule, dtype = found
            then = {} if dtype == value.dtype else {"then": _name(value.dtype)}
            return {"drawn": rule, **about, "dtype": _name(dtype), **then}
        if value.dim() > 1 and value.numel() > 16:
            for size in (1, *value.shape[-2:]):
                if torch.equal(identity(size, value.shape).to(value.dtype), value):
                    return {"identity": size, **about}
        return None


def _target(target: str | int) -> dict[str, Any]:
    return {"instance": target} if isinstance(target, int) else {"name": target}


def _dtype_of(given: Any) -> str:
    value = given.value if isinstance(given, Observation) else None
    first = value[0] if isinstance(value, tuple) else value
    return _name(first.dtype) if isinstance(first, torch.Tensor) else ""


def _shape_of(asked: _Asked) -> tuple[int, ...]:
    value = getattr(asked.given, "value", None)
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def as_json(value: Any, decimals: int | None = None) -> Any:
    """As JSON; `written_values.as_value` reads it again."""
    if isinstance(value, tuple | list):
        return {"tuple": [as_json(item, decimals) for item in value]}
    if isinstance(value, dict):
        return {"plain": value}
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.detach().flatten()
    if value.is_floating_point():
        # The shortest digits that give the same number again, or the rounded ones.
        shortest = [float(str(number)) for number in (flat.float() if flat.dtype == torch.bfloat16 else flat).numpy()]
        digits = [round(number, decimals) for number in shortest] if decimals is not None else shortest
        if len(digits) > LONG:
            dtype = "float32" if decimals == DECIMALS or value.dtype == torch.float32 else "float64"
            return {"shape": list(value.shape), "dtype": dtype, "packed": packed(digits, dtype)}
    else:
        digits = flat.int().tolist() if flat.dtype == torch.bool else flat.tolist()
    # JSON has no infinity; as a word it survives.
    written = [number if math.isfinite(number) else str(number) for number in digits]
    return {"shape": list(value.shape), "dtype": _name(value.dtype), "values": written}
