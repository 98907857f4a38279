"""Values in the released examples: their elements as JSON, or the rule that generates them."""

import base64
import random
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import NormalDist
from typing import Any

import torch

from ..core.comparison import only

DRAWN_DIGITS = 3
USUAL = "float32"
"""The dtype of values without a `dtype` field."""


def draw_values(rule: Sequence[float], shape: Sequence[int]) -> torch.Tensor:
    """Return float64 values that are equal on every machine.

    rule: [seed, mean, standard deviation] for a normal distribution, [seed] for numbers between 0.1 and 1.1.
    """
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
    """Return identity matrices of this size that fill the shape's last two dimensions."""
    *_, rows, columns = shape
    distance = torch.arange(rows)[:, None] - torch.arange(columns)[None, :]
    return (distance % size == 0).double().expand(*shape)


_decoded = cache(base64.b85decode)
"""Cached, because decoding takes most of the time of reading a value again."""
_PACKED = {"float32": "f", "float64": "d"}


def pack_numbers(numbers: Sequence[float], dtype: str = "float32") -> str:
    """Return numbers as text, less than half as long as their digits."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}{_PACKED[dtype]}", *numbers)).decode()


def unpack_numbers(text: str, dtype: str = "float32") -> list[float]:
    """Return the numbers of a packed text."""
    held = _decoded(text)
    code = _PACKED[dtype]
    return list(struct.unpack(f"<{len(held) // struct.calcsize(code)}{code}", held))


def are_thousandths(numbers: Sequence[float]) -> bool:
    """Return whether all numbers are multiples of 0.001 that fit into 16 bits, like generated values."""
    return all(abs(number) < 2**15 / 1000 and round(number, DRAWN_DIGITS) == number for number in numbers)


def pack_thousandths(numbers: Sequence[float]) -> str:
    """Return multiples of 0.001 as text, half as long as `pack_numbers` does."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}h", *(round(number * 1000) for number in numbers))).decode()


def shorten_steps(steps: Sequence[Any]) -> list[Any]:
    """Return the steps without the usual dtype, and with an earlier step's number instead of an equal later one."""
    first = [steps.index(step) for step in steps]
    return [_without_usual_dtype(step) if at == first[at] else {"again": first[at]} for at, step in enumerate(steps)]


def _without_usual_dtype(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        return [_without_usual_dtype(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    left_out = "shape" in plain and plain.get("dtype") == USUAL
    return {name: _without_usual_dtype(one) for name, one in plain.items() if not (left_out and name == "dtype")}


def expand_steps(steps: Sequence[Any]) -> list[Any]:
    """Return steps with each number of an earlier step replaced by that step."""
    return [steps[step["again"]] if "again" in step else step for step in steps]


def inspected_result(step: Mapping[str, Any]) -> Any:
    """Return the right result of a step, with None for those of several results that the test does not inspect."""
    right = decode_value(step["result"])
    return only(right, *step["only"]) if "only" in step else right


def decode_value(plain: Any) -> Any:
    """Return the value of a released example's JSON."""
    if not isinstance(plain, dict):
        return plain
    if "tuple" in plain:
        return tuple(decode_value(item) for item in plain["tuple"])
    if "plain" in plain:
        return plain["plain"]
    shape, kind = plain["shape"], plain.get("dtype", USUAL)
    dtype = getattr(torch, kind)
    if "repeated" in plain:
        made = decode_value(plain["repeated"]).to(dtype).expand(shape)
    elif "drawn" in plain:
        made = draw_values(plain["drawn"], shape).to(dtype)
    elif "identity" in plain:
        made = identity(plain["identity"], shape).to(dtype)
    elif "thousandths" in plain:
        held = _decoded(plain["thousandths"])
        counts = struct.unpack(f"<{len(held) // 2}h", held)
        made = torch.tensor([count / 1000 for count in counts], dtype=dtype).reshape(shape)
    elif "packed" in plain:
        made = torch.tensor(unpack_numbers(plain["packed"], kind), dtype=dtype).reshape(shape)
    else:
        values = [float(value) if isinstance(value, str) else value for value in plain["values"]]  # "-inf" is a string
        made = torch.tensor(values, dtype=dtype).reshape(shape)
    return made.to(getattr(torch, plain["then"])) if "then" in plain else made.clone()
