"""What is right on a telling case, as the release has it: numbers, each tensor as short as it can be told.

A tensor is given, or written out, or said to be another one: a part of it, turned, scaled, partly hidden.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .reference import Reference, Right, TraceCase, distinct, parts_of

BY_HAND: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shifted": lambda values: values - values.amax(dim=-1, keepdim=True),
    "exponentials": torch.exp,
    "sums": lambda values: values.sum(dim=-1, keepdim=True),
}
"""What a softmax by hand makes of scores."""
OUT_OF_SCALE = {-(2**23): -torch.inf, 2**23 - 1: torch.inf, 1 - 2**23: torch.nan}
"""What no number of 24 bits can say."""
LARGEST = 2**23 - 2


def read_reference(written: Mapping[str, Any], operators: Sequence[str], case: TraceCase) -> Reference:
    """The reference again. operators: their names, which stand in what is written as numbers."""
    given = given_in(case)
    rights: list[Right] = []
    for one in written["rights"]:
        operator = operators[one["operator"]]
        rights.append(Right(read_tensor(one, given, rights), operator, one.get("number"), one.get("step", "")))
    return Reference(
        case,
        [read_tensor(one, given, rights) for one in written["result"]],
        distinct([*rights, *parts_of(rights)]),
        {number: frozenset(numbers) for number, numbers in enumerate(written["before"])},
        dict(enumerate(written["inputs"])),
        [rights[of].values.squeeze() * by for of, by in written["scaled"]],
    )


def given_in(case: TraceCase) -> list[torch.Tensor]:
    """The tensors that an answer is given: arguments and parameters."""
    found = [arg for arg in case.arguments if isinstance(arg, torch.Tensor)] + list((case.parameters or {}).values())
    return [one.double() for one in found]


def read_tensor(written: Mapping[str, Any], given: Sequence[torch.Tensor], earlier: Sequence[Right]) -> torch.Tensor:
    """One tensor, in float64."""
    if "given" in written or "of" in written:
        values = given[written["given"]] if "given" in written else earlier[written["of"]].values
        return _made_of(values, written)
    if "whole" in written:
        return torch.tensor(written["whole"], dtype=torch.float64).reshape(written["shape"])
    return numbers_in(written).reshape(written["shape"])


def _made_of(values: torch.Tensor, written: Mapping[str, Any]) -> torch.Tensor:
    """What is said to be another tensor: a part of it, filled in, turned, scaled, or made of it by hand."""
    if "by hand" in written:
        return BY_HAND[written["by hand"]](values)
    if "part" in written:
        values = values.narrow(*written["part"])
    if "order" in written:
        values = values.squeeze().permute(written["order"])
    values = values.reshape(written.get("shape", values.shape)) * written.get("times", 1.0)
    if "filled" in written:
        hidden = torch.tensor([digit == "1" for digit in f"{int(written['hidden'], 16):0{values.numel()}b}"])
        values = torch.where(hidden.reshape(values.shape), float(written["filled"]), values)
    return values


def numbers_in(written: Mapping[str, Any]) -> torch.Tensor:
    """Numbers that are written out: 24 bits each, as so many of a unit; or as float32, where there is none."""
    held = torch.frombuffer(bytearray(base64.b85decode(written["packed"])), dtype=torch.uint8)
    if "unit" not in written:
        return held.view(torch.float32).double()
    first, second, third = held.reshape(-1, 3).long().unbind(1)
    counts = first + (second << 8) + (third << 16) - 2**23
    values: torch.Tensor = counts.double() * float(written["unit"])
    for count, said in OUT_OF_SCALE.items():
        values[counts == count] = said
    return values
