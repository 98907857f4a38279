"""Draw the trace cases: the inputs on which an answer is traced to find its faulty line.

The cases may be shown to students, so they are never those of a hidden test. All dimensions of a case have different
sizes, so that a trace distinguishes them. The course lists the sizes in the module `telling_sizes` in the folder of its
hidden tests:

- `FUNCTIONS`: by exercise, the arguments of each call.
- `CLASSES`: by exercise, the arguments of the constructor and those of the call.
- `THROUGH`: for a class whose instances are not called, the method that is called, and the attributes read afterwards.
- `SILENT`: exercises for whose wrong values no line is reported, but only for lost aspects, such as a gradient.
- `UNTOLD`: by exercise, the values of `LocatedFault.kind` that are not reported because they often name a wrong line.

The line is reported for the first case on which an answer goes wrong.
"""

import zlib
from functools import cache
from typing import Any

import torch

from ..course import content
from ..student_check.examples import decode_value
from ..tracing.reference import TraceCase

_DECIMALS = 3
_TABLE = "telling_sizes"


class Shape(tuple[int, ...]):
    """A shape in the table of traced calls (`hidden/telling_sizes`), for a tensor of normally distributed elements."""


class Weights(Shape):
    """A shape for a tensor of positive elements whose last dimension sums to 1."""


class Mask(Shape):
    """A shape for a boolean tensor."""


class Large(Shape):
    """A shape for a tensor with elements in the thousands."""


class Below(Shape):
    """A shape for a tensor with elements in the thousands, all negative."""


@cache
def trace_cases(unit: str, exercise: str) -> list[TraceCase]:
    """Return the trace cases of an exercise in the order in which they are tried; empty if the course lists none."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"to be shown: {unit} {exercise}".encode()))
    if not (content.place(content.HIDDEN) / f"{_TABLE}.py").is_file():
        return []
    sizes = content.module(f"{content.HIDDEN}.{_TABLE}")
    about: dict[str, Any] = {
        "is_silent": exercise in sizes.SILENT,
        "unreported": frozenset(sizes.UNTOLD.get(exercise, ())),
    }
    cases = [TraceCase(exercise, _draw(args, generator), **about) for args in sizes.FUNCTIONS.get(exercise, ())]
    for built, args in sizes.CLASSES.get(exercise, ()):
        named = _parameters(content.solutions(unit)[exercise], built)
        rules = {name: _rule(parameter, generator) for name, parameter in named.items()}
        parameters = {name: decode_value(rule) for name, rule in rules.items()}
        through = sizes.THROUGH.get(exercise, ())
        cases.append(TraceCase(exercise, _draw(args, generator), built, parameters, rules, through, **about))
    return cases


def _parameters(kind: type, built: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    if not issubclass(kind, torch.nn.Module):
        return {}
    with torch.random.fork_rng(devices=[]):
        return dict(kind(*built).named_parameters())


def _rule(parameter: torch.Tensor, generator: torch.Generator) -> dict[str, Any]:
    """Return a rule by which a parameter's elements are drawn; the release contains only the rule."""
    seed = int(torch.randint(2**31, (), generator=generator))
    return {"drawn": [seed, 0.0, 1.0], "shape": list(parameter.shape)}


def _draw(arg: Any, generator: torch.Generator) -> Any:
    match arg:
        case Mask():
            return torch.rand(tuple(arg), generator=generator) > 0.6
        case Shape():
            normal = torch.randn(tuple(arg), generator=generator, dtype=torch.float64)
            tensor = normal.round(decimals=_DECIMALS).float()
            match arg:
                case Weights():
                    return torch.softmax(tensor, dim=-1)
                case Large():
                    return tensor * 1000
                case Below():
                    return tensor.abs() * -1000 - 1000
            return tensor
        case tuple():
            return tuple(_draw(one, generator) for one in arg)
    return arg
