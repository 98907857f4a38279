"""The public graders as data: the calls they make and the right results, for the check that students get.

A public grader is run on the solutions with a recording in between. What it asked and what came back is all
that goes into the release; the graders themselves, and every grader that is not public, stay here.
"""

import math
from typing import Any

import torch

from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.bench import Bench, Observation, Target
from ..student.face import Student
from ..student.recording import Event, Recording
from .examiner import candidate_bench
from .session import Grader, Session

DECIMALS = 6


class WrongSolution(Exception):
    """A solution fails its own graders; `str()` says which."""


class _Exact:
    """The solutions computed in float64, so that the digits written down are the same on every machine."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench, name)

    def build(self, name: str, arguments: Arguments) -> int:
        instance = self._bench.build(name, arguments)
        self._bench.to_dtype(instance, torch.float64)
        return instance

    def call(
        self, target: Target, arguments: Arguments, cotangents: tuple[torch.Tensor, ...] | None = None
    ) -> Observation:
        return self._bench.call(target, arguments.mapped(_double), cotangents)


def of_unit(session: Session, unit: str) -> dict[str, list[Any]]:
    """By exercise, one entry for each public grader: what it states, and its steps. Raises WrongSolution."""
    return {
        exercise: [
            {"statement": grader.statement, "steps": _steps(session, unit, grader)}
            for grader in graders
            if grader.is_public
        ]
        for exercise, graders in session.graders[unit].items()
    }


def _steps(session: Session, unit: str, grader: Grader) -> list[Any]:
    recording = Recording(_Exact(candidate_bench(unit, None)))
    (verdict,) = session.run(Student(recording), [grader])
    if verdict.outcome != "passed":
        raise WrongSolution(f"solutions/{unit}.py fails the public grader {grader.name}. {verdict.seen}")
    return [_step(event) for event in recording.events]


def _step(event: Event) -> dict[str, Any]:
    match event:
        case Event("manual_seed", (seed,)):
            return {"operation": "manual_seed", "seed": seed}
        case Event("build", (name, arguments)):
            return {"operation": "build", "name": name, **_plain_arguments(arguments)}
        case Event("call", (target, arguments, None), Observation(value=value)):
            call = {
                "operation": "call",
                **_plain_arguments(arguments),
                "result": _plain(value, DECIMALS),
            }
            return call if isinstance(target, int) else {**call, "name": target}
    raise AssertionError(f"A public grader can seed, build and call; {event.operation} cannot be released.")


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _plain_arguments(arguments: Arguments) -> dict[str, Any]:
    positional = [_plain(value) for value in arguments.positional]
    return {"args": positional, "named": dict(arguments.named)} if arguments.named else {"args": positional}


def _plain(value: Any, decimals: int | None = None) -> Any:
    """As JSON; `attention_check._value` reads it again."""
    if isinstance(value, tuple | list):
        return {"tuple": [_plain(item, decimals) for item in value]}
    if isinstance(value, dict):
        return {"plain": value}
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.detach().flatten()
    if value.is_floating_point():
        # The shortest digits that give the same number again, or the rounded ones.
        shortest = [float(str(number)) for number in flat.numpy()]
        digits = [round(number, decimals) for number in shortest] if decimals is not None else shortest
    else:
        digits = flat.tolist()
    # JSON has no infinity; as a word it survives.
    written = [number if math.isfinite(number) else str(number) for number in digits]
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch."), "values": written}
