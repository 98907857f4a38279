"""`check("attention_scores")` tries your function on the public examples and says what it sees.

It needs nothing but torch. The hidden tests that decide the points try more than these examples.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

_EXERCISES = json.loads(Path(__file__).with_name("public_examples.json").read_text())


def check(exercise: str) -> float | None:
    """Try one exercise on its public examples; returns the share of its points that they would give."""
    if exercise not in _EXERCISES:
        print(f"There is no exercise {exercise!r} here. There are: {', '.join(_EXERCISES)}.")
        return None
    points, examples = _EXERCISES[exercise]["points"], _EXERCISES[exercise]["examples"]
    names = sys._getframe(1).f_globals
    if exercise not in names:
        print(f"{exercise} is not defined yet: run its cell first.")
        return 0.0
    passed = 0
    for example in examples:
        problem = _problem(names, example["steps"])
        if problem == _NOT_WRITTEN:
            print(f"{exercise} is not written yet: its stub still raises NotImplementedError.")
            return 0.0
        passed += problem is None
        print(f"{'passed' if problem is None else 'FAILED'}  {example['statement']}")
        if problem is not None:
            print(f"        {problem}")
    score = round(float(points) * passed / len(examples), 2)
    if passed == len(examples):
        print(f"{exercise} passes on the public examples.")
    print(f"On the public examples that is {score:g} of {points:g} points:")
    return score


_NOT_WRITTEN = "not written"


def _problem(names: dict[str, Any], steps: list[Any]) -> str | None:
    """What is wrong with the example, in a sentence; None where nothing is."""
    state = torch.get_rng_state()
    try:
        called: Any = None
        for step in steps:
            args, named = [_value(arg) for arg in step.get("args", ())], step.get("named", {})
            if step["operation"] == "manual_seed":
                torch.manual_seed(step["seed"])
            elif step["operation"] == "build":
                called = names[step["name"]](*args, **named)
            else:
                function = names[step["name"]] if "name" in step else called
                difference = _difference(function(*args, **named), _value(step["result"]))
                if difference:
                    return difference
    except NotImplementedError as error:
        return f"It raised NotImplementedError: {error}" if str(error) else _NOT_WRITTEN
    except Exception as error:
        return f"It raised {type(error).__name__}: {error}"
    finally:
        torch.set_rng_state(state)
    return None


def _value(plain: Any) -> Any:
    """A value as it was before it was written down as JSON."""
    if not isinstance(plain, dict):
        return plain
    if "tuple" in plain:
        return tuple(_value(item) for item in plain["tuple"])
    if "plain" in plain:
        return plain["plain"]
    values = [float(value) if isinstance(value, str) else value for value in plain["values"]]  # "-inf" is a word there
    return torch.tensor(values, dtype=getattr(torch, plain["dtype"])).reshape(plain["shape"])


def _difference(actual: Any, expected: Any, what: str = "The result") -> str | None:
    """How two values differ, in a sentence; None where they do not."""
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            return f"{what} is {_described(actual)}; {len(expected)} tensors are expected."
        pairs = zip(_ORDINALS, actual, expected, strict=False)
        differences = [_difference(one, other, f"The {nth} result") for nth, one, other in pairs]
        return next(filter(None, differences), None)
    if not isinstance(expected, torch.Tensor):
        return None if actual == expected else f"{what} is {actual!r}; {expected!r} is expected."
    if not isinstance(actual, torch.Tensor):
        return f"{what} is {_described(actual)}; a tensor of shape {tuple(expected.shape)} is expected."
    if actual.shape != expected.shape:
        return f"{what} has shape {tuple(actual.shape)}; {tuple(expected.shape)} is expected."
    actual = actual.detach().to("cpu", expected.dtype)
    close = torch.isclose(actual, expected, rtol=1e-4, atol=1e-4)
    if close.all():
        return None
    place = tuple((~close).nonzero()[0].tolist())
    numbers = f"{actual[place].item():.4f} where {expected[place].item():.4f} is expected."
    if not place:
        return f"{what} is {numbers}"
    return f"{what} differs in {int((~close).sum())} of {close.numel()} places; the first, {list(place)}, is {numbers}"


_ORDINALS = ("first", "second", "third")


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
