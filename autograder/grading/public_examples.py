"""The public graders as data: the calls they make and the right results, for the check that students get.

A public grader is run on the solutions with a recording in between. What it asked and what came back is all
that goes into the release; the graders themselves, and every grader that is not public, stay here.
"""

from collections.abc import Sequence
from typing import Any

import torch

from ..sandbox.inside.bench import Bench, Observation, Target
from ..student.face import Student
from ..student.recording import Event, Recording
from .examiner import candidate_bench
from .session import Grader, Session

DECIMALS = 6


class _Exact:
    """The solutions computed in float64, so that the digits written down are the same on every machine."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench, name)

    def build(self, name: str, args: Sequence[Any]) -> int:
        instance = self._bench.build(name, args)
        self._bench.to_dtype(instance, torch.float64)
        return instance

    def call(self, target: Target, args: Sequence[Any], cotangent: torch.Tensor | None = None) -> Observation:
        return self._bench.call(target, [a.double() if isinstance(a, torch.Tensor) else a for a in args], cotangent)


def of_unit(session: Session, unit: str) -> dict[str, list[Any]]:
    """By exercise, one entry for each public grader: what it states, and its steps."""
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
        raise AssertionError(f"{unit}: the solutions fail the public grader {grader.name}: {verdict.seen}")
    return [_step(event) for event in recording.events]


def _step(event: Event) -> dict[str, Any]:
    match event:
        case Event("manual_seed", (seed,)):
            return {"operation": "manual_seed", "seed": seed}
        case Event("build", (name, args)):
            return {"operation": "build", "name": name, "args": [_plain(arg) for arg in args]}
        case Event("call", (target, args, None), Observation(value=value)):
            call = {
                "operation": "call",
                "args": [_plain(arg) for arg in args],
                "result": _plain(value, DECIMALS),
            }
            return call if isinstance(target, int) else {**call, "name": target}
    raise AssertionError(f"A public grader can seed, build and call; {event.operation} cannot be released.")


def _plain(value: Any, decimals: int | None = None) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    # The shortest digits that give the same number again, or the rounded ones.
    digits = [float(str(number)) for number in value.detach().flatten().numpy()]
    if decimals is not None:
        digits = [round(number, decimals) for number in digits]
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch."), "values": digits}
