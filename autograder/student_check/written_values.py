"""Values as the released examples have them: written out, or as the rule that makes them."""

import base64
import random
import struct
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Any

import torch

DRAWN_DIGITS = 3
USUAL = "float32"
"""The dtype of values that do not say theirs."""


def drawn(rule: Sequence[float], shape: Sequence[int]) -> torch.Tensor:
    """Numbers in float64 that are the same on every machine: [seed, mean, spread], or [seed] for 0.1 to 1.1."""
    return _drawn(tuple(rule), tuple(shape)).clone()


@cache
def _drawn(rule: tuple[float, ...], shape: tuple[int, ...]) -> torch.Tensor:
    seed, *bell = rule
    numbers, count = random.Random(int(seed)), torch.Size(shape).numel()
    if bell:
        normal = NormalDist(*bell)
        made = [normal.inv_cdf(numbers.random() or 0.5) for _ in range(count)]
    else:
        made = [0.1 + numbers.random() for _ in range(count)]
    rounded = [round(number, DRAWN_DIGITS) for number in made]
    return torch.tensor(rounded, dtype=torch.float64).reshape(shape)


def identity(size: int, shape: Sequence[int]) -> torch.Tensor:
    """Identity matrices of this size, as often side by side as there is room for."""
    *_, rows, columns = shape
    distance = torch.arange(rows)[:, None] - torch.arange(columns)[None, :]
    return (distance % size == 0).double().expand(*shape)


_decoded = cache(base64.b85decode)
"""Decoding takes most of the time of a value that is read again."""
_PACKED = {"float32": "f", "float64": "d"}


def packed(numbers: Sequence[float], dtype: str = "float32") -> str:
    """Numbers as text, in less than half of the room."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}{_PACKED[dtype]}", *numbers)).decode()


def unpacked(text: str, dtype: str = "float32") -> list[float]:
    """The numbers again."""
    held = _decoded(text)
    code = _PACKED[dtype]
    return list(struct.unpack(f"<{len(held) // struct.calcsize(code)}{code}", held))


def are_short(numbers: Sequence[float]) -> bool:
    """Whether the numbers are thousandths, not too many of them: as those are that are drawn to be shown."""
    return all(abs(number) < 2**15 / 1000 and round(number, DRAWN_DIGITS) == number for number in numbers)


def in_thousandths(numbers: Sequence[float]) -> str:
    """Short numbers as text, in half of the room of others."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}h", *(round(number * 1000) for number in numbers))).decode()


def shortened(steps: Sequence[Any]) -> list[Any]:
    """Steps, with the number of an earlier one in the place of one that is the same, and without the usual dtype."""
    first = [steps.index(step) for step in steps]
    return [_usual(step) if at == first[at] else {"again": first[at]} for at, step in enumerate(steps)]


def _usual(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        return [_usual(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    left_out = "shape" in plain and plain.get("dtype") == USUAL
    return {name: _usual(one) for name, one in plain.items() if not (left_out and name == "dtype")}


def in_full(steps: Sequence[Any]) -> list[Any]:
    """The steps again."""
    return [steps[step["again"]] if "again" in step else step for step in steps]


def as_value(plain: Any) -> Any:
    """A value as it was before it was written down as JSON."""
    if not isinstance(plain, dict):
        return plain
    if "tuple" in plain:
        return tuple(as_value(item) for item in plain["tuple"])
    if "plain" in plain:
        return plain["plain"]
    shape, kind = plain["shape"], plain.get("dtype", USUAL)
    dtype = getattr(torch, kind)
    if "repeated" in plain:
        made = as_value(plain["repeated"]).to(dtype).expand(shape)
    elif "drawn" in plain:
        made = drawn(plain["drawn"], shape).to(dtype)
    elif "identity" in plain:
        made = identity(plain["identity"], shape).to(dtype)
    elif "thousandths" in plain:
        held = _decoded(plain["thousandths"])
        counts = struct.unpack(f"<{len(held) // 2}h", held)
        made = torch.tensor([count / 1000 for count in counts], dtype=dtype).reshape(shape)
    elif "packed" in plain:
        made = torch.tensor(unpacked(plain["packed"], kind), dtype=dtype).reshape(shape)
    else:
        values = [float(value) if isinstance(value, str) else value for value in plain["values"]]  # "-inf" is a word
        made = torch.tensor(values, dtype=dtype).reshape(shape)
    return made.to(getattr(torch, plain["then"])) if "then" in plain else made.clone()
