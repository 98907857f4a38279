"""The public graders as data: the calls they make and the right results, for the check that students get.

A public grader is run on the solutions with a recording in between. What it asked and what came back is all
that goes into the release; the graders themselves, and every grader that is not public, stay here.
"""

import math
from typing import Any

import torch

from ..graders.collected import Grader, Graders, run
from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.observation import Observation
from ..sandbox.inside.operations import Build, Call, ManualSeed
from ..student.face import Student
from ..student.recording import Event, Recording
from ..student.reference import Exact
from .examiner import candidate_bench

DECIMALS = 6


class NotReleasable(Exception):
    """A public grader cannot be released: its solution fails it, or it asks for too much; `str()` says which."""


def of_unit(graders: Graders, unit: str) -> dict[str, list[Any]]:
    """By exercise, one entry for each public grader: what it states, and its steps. Raises NotReleasable."""
    return {
        exercise: [
            {"statement": grader.statement, "steps": _steps(unit, grader)} for grader in its_graders if grader.is_public
        ]
        for exercise, its_graders in graders[unit].items()
    }


def _steps(unit: str, grader: Grader) -> list[Any]:
    recording = Recording(Exact(candidate_bench(unit, None)))
    (verdict,) = run(Student(recording), [grader])
    if verdict.outcome != "passed":
        raise NotReleasable(f"solutions/{unit}.py fails the public grader {grader.name}. {verdict.seen}")
    steps = [_step(event) for event in recording.events]
    if None in steps:
        raise NotReleasable(f"{unit}: the public grader {grader.name} may seed, build and call, and asks for more.")
    return steps


def _step(event: Event) -> dict[str, Any] | None:
    """As JSON; None for what the check cannot repeat."""
    match event:
        case Event(ManualSeed(seed)):
            return {"operation": "manual_seed", "seed": seed}
        case Event(Build(name, arguments)):
            return {"operation": "build", "name": name, **_plain_arguments(arguments)}
        case Event(Call(target, arguments, None), Observation(value=value)):
            call = {
                "operation": "call",
                **_plain_arguments(arguments),
                "result": _plain(value, DECIMALS),
            }
            return call if isinstance(target, int) else {**call, "name": target}
    return None


def _plain_arguments(arguments: Arguments) -> dict[str, Any]:
    positional = [_plain(value) for value in arguments.positional]
    return {"args": positional, "named": dict(arguments.named)} if arguments.named else {"args": positional}


def _plain(value: Any, decimals: int | None = None) -> Any:
    """As JSON; `check._value` reads it again."""
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
