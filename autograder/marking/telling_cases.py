"""The cases on which an answer is watched: their sizes tell one dimension from another, their numbers are their own.

They are drawn for showing and are never a hidden grader's. The course says their sizes, in `TABLE`'s module among its
hidden graders: `FUNCTIONS` has the arguments of calls, `CLASSES` what is built, and then called with what. Of classes
whose instances are not called, `THROUGH` has the method that gets the arguments, and the attributes that are read then.
An exercise may have several cases: the first on which an answer goes wrong is the one that is told of. Of those that
are `SILENT` no line of wrong values is told, but only where an argument is written into, a gradient ends and the like;
`UNTOLD` says which ways are not told of others.
"""

import zlib
from typing import Any

import torch

from ..course import content
from ..handout.written_values import as_value
from ..tracing.case import TellingCase

DECIMALS = 3
TABLE = "telling_sizes"


class Shape(tuple[int, ...]):
    """Stands in the table for a tensor of this shape."""


class Weights(Shape):
    """For one with rows that are positive and sum to 1."""


class Mask(Shape):
    """For one of True and False."""


class Large(Shape):
    """For one with numbers in the thousands."""


class Below(Shape):
    """For one with numbers in the thousands, all below zero."""


def telling_cases(unit: str, exercise: str) -> list[TellingCase]:
    """The cases of an exercise, in the order in which they are tried; none where no run would tell a line."""
    drawn = torch.Generator().manual_seed(zlib.crc32(f"to be shown: {unit} {exercise}".encode()))
    if not (content.place(content.HIDDEN) / f"{TABLE}.py").is_file():
        return []
    sizes = content.module(f"{content.HIDDEN}.{TABLE}")
    about: dict[str, Any] = {
        "is_silent": exercise in sizes.SILENT,
        "untold": frozenset(sizes.UNTOLD.get(exercise, ())),
    }
    cases = [TellingCase(exercise, _drawn(args, drawn), **about) for args in sizes.FUNCTIONS.get(exercise, ())]
    for built, args in sizes.CLASSES.get(exercise, ()):
        solution = content.solutions(unit)[exercise]
        rules = {name: _rule(parameter, drawn) for name, parameter in _built(solution, built).items()}
        parameters = {name: as_value(rule) for name, rule in rules.items()}
        through = sizes.THROUGH.get(exercise, ())
        cases.append(TellingCase(exercise, _drawn(args, drawn), built, parameters, rules, through, **about))
    return cases


def _built(kind: type, built: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    if not issubclass(kind, torch.nn.Module):
        return {}
    with torch.random.fork_rng(devices=[]):
        return dict(kind(*built).named_parameters())


def _rule(parameter: torch.Tensor, drawn: torch.Generator) -> dict[str, Any]:
    """A rule for a parameter's numbers: there are many, and the rule is all of them that the release holds."""
    seed = int(torch.randint(2**31, (), generator=drawn))
    return {"drawn": [seed, 0.0, 1.0], "shape": list(parameter.shape)}


def _drawn(args: tuple[Any, ...], drawn: torch.Generator) -> tuple[Any, ...]:
    return tuple(_argument(arg, drawn) for arg in args)


def _argument(arg: Any, drawn: torch.Generator) -> Any:
    match arg:
        case Weights():
            return torch.softmax(_tensor(tuple(arg), drawn), dim=-1)
        case Mask():
            return torch.rand(tuple(arg), generator=drawn) > 0.6
        case Large():
            return _tensor(tuple(arg), drawn) * 1000
        case Below():
            return _tensor(tuple(arg), drawn).abs() * -1000 - 1000
        case Shape():
            return _tensor(tuple(arg), drawn)
        case tuple():
            return _drawn(arg, drawn)
    return arg


def _tensor(shape: tuple[int, ...], drawn: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=drawn, dtype=torch.float64).round(decimals=DECIMALS).float()
