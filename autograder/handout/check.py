"""`check("attention_scores")` tries your function on the public examples; `check()` shows how far you are.

It needs nothing but torch. The hidden tests that decide the points try more than these examples.
`known_mistakes.json` holds, as numbers, what common mistakes show on the same examples.
"""

import contextlib
import copy
import io
import json
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from .values import difference, expecting


def check(exercise: str | None = None) -> float | None:
    """Try one exercise on its public examples; returns the share of its points that they would give.

    Without a name: how far you are in the whole notebook.
    """
    names = sys._getframe(1).f_globals
    exercises = _read("public_examples.json")
    if exercise is None:
        with _as_in_a_new_notebook():
            _progress(names, exercises)
        return None
    if not isinstance(exercise, str) or exercise not in exercises:
        print(f"The name of an exercise is wanted, as in check({next(iter(exercises))!r}). They are:")
        print(", ".join(exercises))
        return None
    with _as_in_a_new_notebook():
        return _tried(names, exercise, exercises)


@contextlib.contextmanager
def _as_in_a_new_notebook() -> Iterator[None]:
    """With torch's switches as the hidden tests have them, and the random state put back afterwards."""
    state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(mode=False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(state)


def _tried(names: dict[str, Any], exercise: str, exercises: dict[str, Any]) -> float:
    examples, points = exercises[exercise]["examples"], float(exercises[exercise]["points"])
    problems = _problems(names, exercise, examples)
    if isinstance(problems, str):
        print(f"{exercise} is {problems}: {_WHAT_TO_DO[problems]}.")
        return 0.0
    for example, problem in zip(examples, problems, strict=True):
        print(f"{'FAILED' if problem else 'passed'}  {example['statement']}")
        if problem:
            print(f"        {problem}")
    score = round(points * problems.count(None) / len(problems), 2)
    if not any(problems):
        print(f"{exercise} passes on the public examples.")
    mistakes = _mistakes(names, exercise, examples)
    if mistakes:
        which = "A common mistake" if len(mistakes) == 1 else "Each of these common mistakes"
        print(f"{which} does exactly this:" if any(problems) else f"But so does {which.lower()}:")
        print("\n".join(f"        {sentence}" for sentence in mistakes))
    print(f"On the public examples that is {score:g} of {points:g} points:")
    return score


def _progress(names: dict[str, Any], exercises: dict[str, Any]) -> None:
    """Prints a line for each exercise, and the sum."""
    total, passed_whole = 0.0, 0
    for exercise, of in exercises.items():
        problems = _problems(names, exercise, of["examples"])
        if isinstance(problems, str):
            score, said = 0.0, problems
        else:
            right = problems.count(None)
            score = round(float(of["points"]) * right / len(problems), 2)
            said = "passes" if right == len(problems) else f"{right} of {len(problems)} examples pass"
            passed_whole += right == len(problems)
        total += score
        print(f"{exercise:<32}{said:<24}{score:>5g} of {of['points']:g}")
    points = sum(of["points"] for of in exercises.values())
    print(f"{passed_whole} of {len(exercises)} exercises pass: {total:g} of {points:g} points on the public examples.")
    print("The hidden tests try more, and a person reads the written answers.")


def _problems(names: dict[str, Any], exercise: str, examples: list[Any]) -> list[str | None] | str:
    """For each example what is wrong, None where nothing is; or why none can be tried."""
    if exercise not in names:
        return _NOT_DEFINED
    problems = [_problem(names, example["steps"]) for example in examples]
    if _NOT_WRITTEN in problems:
        return _NOT_WRITTEN
    return problems


_NOT_DEFINED, _NOT_WRITTEN = "not defined yet", "not written yet"
_WHAT_TO_DO = {
    _NOT_DEFINED: "run its cell first",
    _NOT_WRITTEN: "its stub still raises NotImplementedError",
}
_LONGEST = 200
_CLOSE = 1e-4


def _problem(names: dict[str, Any], steps: list[Any]) -> str | None:
    """What is wrong with the example, in a sentence; None where nothing is."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for step, function, args in _calls(names, steps):
                problem = _difference(function(*args, **step.get("named", {})), _value(step["result"]))
                if problem:
                    return problem
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        if isinstance(error, NotImplementedError) and not str(error):
            return _NOT_WRITTEN
        first_line = str(error).strip().partition("\n")[0]
        return f"It raised {type(error).__name__}: {first_line[:_LONGEST]}"
    return None


def _calls(
    names: dict[str, Any], steps: list[Any], dtype: torch.dtype | None = None
) -> Iterator[tuple[Any, Callable[..., Any], list[Any]]]:
    """The calls that an example makes, each with what is called and its arguments (floats in another dtype, if given).

    Randomness starts at the same place each time.
    """
    torch.manual_seed(0)
    called: Any = None
    for step in steps:
        args = [_in(_value(arg), dtype) for arg in step.get("args", ())]
        if step["operation"] == "manual_seed":
            torch.manual_seed(step["seed"])
        elif step["operation"] == "build":
            called = names[step["name"]](*args, **step.get("named", {}))
            called = called if dtype is None else called.to(dtype)
        else:
            yield step, names[step["name"]] if "name" in step else called, args


def _mistakes(names: dict[str, Any], exercise: str, examples: list[Any]) -> list[str]:
    """The sentences on the common mistakes that show, number for number, what this code shows; mostly none or one."""
    shown = numbers(names, examples)
    for mistake in _read("known_mistakes.json").get(exercise, ()):
        if alike(shown, mistake["shows"]):
            return list(mistake["sentences"])
    return []


def numbers(names: dict[str, Any], examples: list[Any], dtype: torch.dtype | None = None) -> list[list[float]]:
    """What the code shows on the examples: a row of numbers for each.

    A row describes every call in turn: a checksum of all that is exact (shapes, dtypes, what was written into, which
    gradients arrive, the kind of an error), then a few sums over the values and the gradients.
    """
    rows = []
    for example in examples:
        row: list[float] = []
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's own, of which the student has read already
                for step, function, args in _calls(names, example["steps"], dtype):
                    row += _observed(function, args, step.get("named", {}))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            row.append(_checksum(type(error).__name__))
        rows.append([number if isinstance(number, int) else round(number, 5) for number in row])
    return rows


def alike(one: list[list[float]], other: list[list[float]]) -> bool:
    """Whether two pieces of code show the same, but for the last digits."""
    return all(
        len(row) == len(other_row) and all(map(_close, row, other_row))
        for row, other_row in zip(one, other, strict=True)
    )


def _close(one: float, other: float) -> bool:
    if isinstance(one, int) or isinstance(other, int):  # a checksum
        return one == other
    return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))


def _observed(function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> list[float]:
    """One call: its result, the arguments that it wrote into, its gradients, and its dtype for float64 arguments."""
    held = copy.deepcopy(args)
    unused = copy.deepcopy(function)  # afterwards it may hold tensors that cannot be copied
    exact, sums = _described(function(*args, **named))
    changed = [not _same(before, after) for before, after in zip(held, args, strict=True)]
    wide = [_in(arg, torch.float64) for arg in copy.deepcopy(held)]
    wider = _attempt(lambda: _described(_widened(unused)(*wide, **named))[0])
    gradients = _attempt(lambda: _gradients(function, held, named))
    flows, flow_sums = gradients if isinstance(gradients, tuple) else (gradients, [])
    return [_checksum(repr((exact, changed, wider, flows))), *sums, *flow_sums]


def _gradients(function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> tuple[list[bool], list[float]]:
    """At which arguments and parameters a gradient arrives, and their sums."""
    args = [arg.clone().requires_grad_() if _is_float(arg) else arg for arg in args]
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    leaves = [leaf for leaf in [*args, *parameters] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    result = function(*args, **named)
    outputs = [one for one in (result if isinstance(result, tuple | list) else [result]) if _is_float(one)]
    reached = [_weighed(one.double()).sum() for one in outputs if one.requires_grad]
    found = torch.autograd.grad(reached, leaves, allow_unused=True) if reached else [None] * len(leaves)
    sums = [number for gradient in found if gradient is not None for number in _described(gradient)[1]]
    return [gradient is not None for gradient in found], sums


def _described(value: Any) -> tuple[Any, list[float]]:
    """A value as what is exact about it, and some sums over its numbers."""
    if isinstance(value, tuple | list):
        parts = [_described(item) for item in value]
        return (type(value).__name__, [exact for exact, _ in parts]), [number for _, sums in parts for number in sums]
    if isinstance(value, dict):
        return sorted(map(repr, value.items())), []
    if isinstance(value, int | float):
        return (type(value).__name__, []), _described(torch.tensor(float(value)))[1]
    if not isinstance(value, torch.Tensor):
        return type(value).__name__, []
    flat = value.detach().flatten().double()
    broken = [int(flat.isnan().sum()), int((flat == torch.inf).sum()), int((flat == -torch.inf).sum())]
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # beside one huge number the others still count
    return (list(value.shape), str(value.dtype), broken), [float(flat.abs().sum()), float(_weighed(flat).sum())]


def _weighed(values: torch.Tensor) -> torch.Tensor:
    """Each number times one of its own, so that their sum tells which stands where."""
    places = torch.arange(1, values.numel() + 1, dtype=torch.float64).reshape(values.shape)
    return values * torch.cos(places * 2.399963)  # the golden angle: the cosines never repeat


def _checksum(exact: str) -> int:
    return zlib.crc32(exact.encode())


def _attempt(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        return type(error).__name__


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.double() if isinstance(function, torch.nn.Module) else function


def _in(value: Any, dtype: torch.dtype | None) -> Any:
    return value.to(dtype) if dtype is not None and _is_float(value) else value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())


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


def _difference(actual: Any, expected: Any) -> str | None:
    """How two values differ, in a sentence; None where they do not."""
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor) and not actual.is_complex():
        actual = actual.to(expected.dtype)  # which type it has is left to the hidden tests
    if isinstance(expected, tuple | torch.Tensor):
        return difference(actual, expecting(expected, _CLOSE), _called, _first_place)
    return None if actual == expected else f"The result is {actual!r}; {expected!r} is expected."


def _first_place(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    place = tuple((~close).nonzero()[0].tolist())
    said = f"{actual[place].item():.4f} where {expected[place].item():.4f} is expected."
    if not place:
        return f"is {said}"
    return f"differs in {int((~close).sum())} of {close.numel()} places; the first, {list(place)}, is {said}"


def _called(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text())
    return found
