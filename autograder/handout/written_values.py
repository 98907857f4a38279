"""Values as the released examples have them: written out, or as the rule that makes them."""

import base64
import random
import struct
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import torch

DRAWN_DIGITS = 3


def drawn(rule: Sequence[float], shape: Sequence[int]) -> torch.Tensor:
    """Numbers in float64 that are the same on every machine: [seed, mean, spread], or [seed] for 0.1 to 1.1."""
    seed, *bell = rule
    numbers, count = random.Random(int(seed)), torch.Size(shape).numel()
    if bell:
        normal = NormalDist(*bell)
        made = [normal.inv_cdf(numbers.random() or 0.5) for _ in range(count)]
    else:
        made = [0.1 + numbers.random() for _ in range(count)]
    rounded = [round(number, DRAWN_DIGITS) for number in made]
    return torch.tensor(rounded, dtype=torch.float64).reshape(tuple(shape))


def identity(size: int, shape: Sequence[int]) -> torch.Tensor:
    """Identity matrices of this size, as often side by side as there is room for."""
    *_, rows, columns = shape
    distance = torch.arange(rows)[:, None] - torch.arange(columns)[None, :]
    return (distance % size == 0).double().expand(*shape)


def packed(numbers: Sequence[float]) -> str:
    """Numbers of float32 as text, in half of the room."""
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def unpacked(text: str) -> list[float]:
    """The numbers again."""
    held = base64.b64decode(text)
    return list(struct.unpack(f"<{len(held) // 4}f", held))


def as_value(plain: Any) -> Any:
    """A value as it was before it was written down as JSON."""
    if not isinstance(plain, dict):
        return plain
    if "tuple" in plain:
        return tuple(as_value(item) for item in plain["tuple"])
    if "plain" in plain:
        return plain["plain"]
    shape, dtype = plain["shape"], getattr(torch, plain["dtype"])
    if "drawn" in plain:
        made = drawn(plain["drawn"], shape).to(dtype)
    elif "identity" in plain:
        made = identity(plain["identity"], shape).to(dtype)
    elif "packed" in plain:
        made = torch.tensor(unpacked(plain["packed"]), dtype=dtype).reshape(shape)
    else:
        values = [float(value) if isinstance(value, str) else value for value in plain["values"]]  # "-inf" is a word
        made = torch.tensor(values, dtype=dtype).reshape(shape)
    return made.to(getattr(torch, plain["then"])) if "then" in plain else made.clone()
