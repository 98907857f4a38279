"""Sentences that marking and the check that students get both say of an answer, in the same words.

Needs nothing but what the check imports, of which it becomes a part.
"""

import re
from collections.abc import Mapping, Sequence

from ..sandbox.inside.device_probe import BY_NUMBERS, DIFFERS, ELSEWHERE, MIXED
from ..sandbox.inside.library_calls import LIBRARY_ATTENTION, LIBRARY_SOFTMAX
from ..sandbox.inside.lost_aspects import OF_DEVICE, OF_DTYPE, OF_GRADIENT, OF_WRITING
from .values import ORDINALS

SAME_WEIGHTS = "The weights are the same under every seed: is one set inside the class?"
RAISES_NOTHING = "It raises nothing."
_NO_MORE_THAN_HALF = "As long as this fails, the exercise gives no more than half of its points."
_OF_LIBRARIES = {
    LIBRARY_SOFTMAX: "a library's softmax, or a part of one such as logsumexp",
    LIBRARY_ATTENTION: "a library's attention",
}
_OF_DEVICES = {
    MIXED: "It mixes devices: a tensor that it makes stays on the CPU when the inputs are elsewhere. Make it "
    "where they are (`device=`), or bring it there (`.to`).",
    ELSEWHERE: "The result is not on the inputs' device.",
    DIFFERS: "On another device it gives another result than on the CPU.",
}


def with_article(name: str) -> str:
    """`a list`, `an int`."""
    return f"{'an' if name[:1].lower() in tuple('aeio') else 'a'} {name}"


def argument(number: int) -> str:
    """What an argument is called, by its place."""
    return f"the {ORDINALS[number]} argument"


def detached(where: str) -> str:
    """A gradient that is None."""
    return f"No gradient arrives at {where}: is it left unused, or the result detached from it somewhere?"


def no_parameter(name: str) -> str:
    """A layer that is called otherwise."""
    return f"It has no parameter `{name}`."


def of_another_shape(found: str, shape: Sequence[int]) -> str:
    """A result that is no tensor of the shape that is expected. found: what it is."""
    return f"The result is {found}; a tensor of shape {tuple(shape)} is expected."


RESULT_NOT_FINITE = "The result has NaN or infinite values."


def not_finite(where: str) -> str:
    """A gradient with NaN or infinity, of a result that has neither."""
    return f"The gradient of {where} has NaN or infinite values; the result has none."


def writes_into(arguments: Sequence[int]) -> str:
    """Arguments that are not as they were, by their places."""
    which = " and ".join(f"the {ORDINALS[number]}" for number in arguments)
    return f"It writes into {which} argument. Operations ending in `_`, `+=`, `/=` and `x[i] = ...` work in place."


def changed_by_the_future(token: int) -> str:
    """A result that later tokens have a part in."""
    return f"The result of token {token} changes when only later tokens do: something of the future gets into it."


def calls_forbidden(libraries: Sequence[str]) -> str:
    """Library functions that an exercise forbids."""
    named = " and ".join(_OF_LIBRARIES.get(one, one) for one in libraries)
    return f"It calls {named}; this exercise asks you to write that step yourself."


def halves_the_points(complaint: str) -> str:
    """A complaint of what makes a module another one, where the exercise would give more than half of its points."""
    return f"{complaint}{'' if complaint.endswith(('.', '?', '!')) else '.'} {_NO_MORE_THAN_HALF}"


def of_devices(verdict: str) -> str | None:
    """What a probe of devices found; None where it found nothing wrong."""
    return _OF_DEVICES.get(verdict.removesuffix(BY_NUMBERS))


def other_parameters(found: Mapping[str, Sequence[int]]) -> str:
    """The parameters that there are, and their shapes, where others are expected."""
    return f"Found: {', '.join(f'{name} {tuple(shape)}' for name, shape in found.items()) or 'none'}."


_ASPECTS = {
    OF_WRITING: re.compile(r"It writes into the (\w+)"),
    OF_DTYPE: re.compile(r"The result is torch\.(\w+); torch\.(\w+) is expected"),
    OF_GRADIENT: re.compile(r"No gradient arrives at (?:the (\w+)|`([\w.]+)`)"),
    OF_DEVICE: re.compile("|".join(re.escape(_OF_DEVICES[one]) for one in (MIXED, ELSEWHERE))),
}


def aspect_of(complaint: str) -> tuple[str, tuple[str, ...]] | None:
    """What beside the values a complaint is about, and the words that say more: an argument by its number, dtypes."""
    for aspect, pattern in _ASPECTS.items():
        if found := pattern.search(complaint):
            words = [one for one in found.groups() if one]
            return aspect, tuple(_number(one) for one in words)
    return None


def _number(word: str) -> str:
    """An argument's, as digits; any other word as it is."""
    return str(ORDINALS.index(word)) if word in ORDINALS else "0" if word == "input" else word
