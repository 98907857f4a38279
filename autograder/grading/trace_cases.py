"""Draw the cases on which an answer is traced to find its faulty line.

The cases are drawn for display and are never those of a hidden test. The sizes of a case differ in every dimension, so
that a trace tells one dimension from another. The course lists the sizes among its hidden tests, in the module
`telling_sizes`:

- `FUNCTIONS`: by exercise, the arguments of each call.
- `CLASSES`: by exercise, the arguments of the constructor and those of the call.
- `THROUGH`: for a class whose instances are not called, the method that is called, and the attributes read afterwards.
- `SILENT`: exercises whose wrong values have no reported line. Only lost aspects are searched, such as a gradient.
- `UNTOLD`: by exercise, the values of `LocatedFault.kind` that are not reported because they often name a wrong line.

The first case on which an answer goes wrong is the one that is reported.
"""

import zlib
from functools import cache
from typing import Any

import torch

from ..course import content
from ..student_check.written_values import decode_value
from ..tracing.reference import TraceCase

_DECIMALS = 3
_TABLE = "telling_sizes"


class Shape(tuple[int, ...]):
    """A tensor of this shape, in the course's table."""


class Weights(Shape):
    """A tensor whose rows are positive and sum to 1."""


class Mask(Shape):
    """A boolean tensor."""


class Large(Shape):
    """A tensor with elements in the thousands."""


class Below(Shape):
    """A tensor with elements in the thousands, all negative."""


@cache
def trace_cases(unit: str, exercise: str) -> list[TraceCase]:
    """Return the cases of an exercise in the order in which they are tried; empty if no trace would find a line."""
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
    """Return a rule from which a parameter's elements are drawn; the release holds only the rule."""
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
