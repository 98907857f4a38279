"""What a student reads of where an answer goes wrong: the steps as far as they are right, the line, what it made."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .case import TellingCase
from .locating import Located
from .reference import TOLERANCE, comparable, is_mask

MAX_LINE = 100
"""Characters of a line that is quoted."""
_SHOWN = 4
_SMALL = 1e-3

Source = Callable[[str, int], str]
"""The text of a line of a file; empty where it is not known."""


def told(located: Located, case: TellingCase, source: Source) -> str:
    """Lines of plain text, as wide as they must be; no number in them is of a hidden case."""
    right = [(step, f"as it should be      (line {line})") for step, line in located.right_so_far.items()]
    is_missing = located.how == "missing" and len(located.lines) > 1
    wrong = located.lines[-1:] if is_missing else located.lines
    step = located.step or ("the result" if located.how == "returned" else _lines(wrong))
    steps = [
        said
        for (name, line), said in zip(located.right_so_far.items(), right, strict=True)
        if name != step and line not in located.lines
    ]
    width = max(len(name) for name, _ in [*steps, (step, "")])
    rows = [f"{name:{width}}  {said}" for name, said in steps]
    where = "" if step == _lines(wrong) else f"  ({_lines(wrong)})"
    rows.append(f"{step:{width}}  not as it should be{where}")
    rows += [f"  line {line}: {quoted}" for line in located.lines if (quoted := _quoted(source(located.file, line)))]
    rows += ["", f"Tried on {_case(case)}"]
    if is_missing:
        first, second = located.lines
        rows.append(
            f"What line {first} makes is right; on the way to what line {second} makes, a step is wrong or missing."
        )
    elif located.how == "unused" and len(located.lines) > 1:
        rows.append("What the first line makes is right, but the other does not use it.")
    elif len(located.lines) > 1:
        rows.append("These lines do not fit each other: what the first makes, the other uses the other way round.")
    elif located.how == "returned":
        rows.append("All that is made is right, but this is not what should be returned.")
    elif located.how == "of another kind":
        rows.append("What is returned is not of the kind, or not as many tensors, as is asked for.")
    elif located.how == "first of two":
        rows.append("This is the first line that is not right; a later one is not right either.")
    rows += _beside(located.made, located.expected)
    rows += [f"  {one}" for one in _seen(located)]
    return "\n".join(rows)


def _lines(lines: Sequence[int]) -> str:
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {' and '.join(map(str, lines))}"


def _quoted(line: str) -> str:
    line = line.strip()
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def _case(case: TellingCase) -> str:
    args = ", ".join(map(_argument, case.arguments))
    built = "" if case.built is None else f"({', '.join(map(str, case.built))})"
    return f"`{case.exercise}{built}` with {args}." if built else f"`{case.exercise}({args})`."


def _argument(arg: Any) -> str:
    return f"a tensor of shape {tuple(arg.shape)}" if isinstance(arg, torch.Tensor) else repr(arg)[:MAX_LINE]


def _beside(made: torch.Tensor | None, needed: torch.Tensor | None) -> list[str]:
    """What was made above what is needed; a few of the numbers, from where they begin to differ."""
    start = 0
    if made is not None and needed is not None and made.shape == needed.shape and made.numel():
        apart = (comparable(made) - comparable(needed)).abs().flatten() > TOLERANCE * (
            1 + comparable(needed).abs().flatten()
        )
        start = int(apart.long().argmax())
    rows = [] if made is None else [f"  made:   {_tensor(made, start)}"]
    return rows if needed is None else [*rows, f"  needed: {_tensor(needed, start)}"]


def _tensor(values: torch.Tensor, start: int) -> str:
    if values.dim() == 0:
        return f"the number {float(values):.4g}"
    numbers = ", ".join(f"{number:.4g}" for number in values.flatten()[start : start + _SHOWN].tolist())
    more = ", …" if values.numel() > start + _SHOWN else ""
    place = [int(at) for at in torch.unravel_index(torch.tensor(start), values.shape)] if start else []
    where = f"from {place} on" if start else "beginning with"
    return f"shape {tuple(values.shape)}, {where} {numbers}{more}" if numbers else f"shape {tuple(values.shape)}"


def _seen(located: Located) -> list[str]:
    """What can be said of the numbers without knowing the code."""
    made, needed = located.made, located.expected
    if made is None or needed is None or made.shape != needed.shape or made.dim() == 0 or not made.numel():
        return []
    made, needed = made.double(), needed.double()
    if bool(made.isnan().any()) and not bool(needed.isnan().any()):
        return ["There are NaN in it, as infinity minus infinity and 0 / 0 give them."]
    if is_mask(made) or is_mask(needed):
        return []
    return [*_of_rows(made, needed), *_of_a_factor(made, needed)]


def _of_rows(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    sums, right = made.sum(dim=-1), needed.sum(dim=-1)
    ones = torch.ones_like(right)
    if not torch.allclose(right, ones, atol=1e-4):
        return []
    if not torch.allclose(sums, ones, atol=1e-4):
        return []
    largest, should = float(made.amax(dim=-1).mean()), float(needed.amax(dim=-1).mean())
    if abs(largest - should) < 0.02 or not torch.equal(made == 0, needed == 0):
        return []
    how = "too even" if largest < should else "too uneven"
    if made.dim() == 1:
        return [f"They sum to 1, but are {how}: the largest is {largest:.2f}, and should be {should:.2f}."]
    return [f"Each row sums to 1, but they are {how}: the largest of a row is {largest:.2f}, and should be {should:.2f}"
            ", on average."]  # fmt: skip


def _of_a_factor(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    there = needed.isfinite() & made.isfinite() & (needed.abs() > 1e-6)
    if int(there.sum()) < 2 or not torch.equal(needed.isfinite(), made.isfinite()):
        return []
    ratio = made[there] / needed[there]
    factor = float(ratio[0])
    if (
        not torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-3)
        or abs(factor) < _SMALL
        or abs(factor - 1) < _SMALL
    ):
        return []
    return [f"It is {factor:.4g} times what is needed."]
