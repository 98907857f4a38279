"""Messages about an answer, for both the hidden tests and the student check. Each function returns one."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .device_probe import BY_NUMBERS, DIFFERS, ELSEWHERE, MIXED
from .library_calls import AUTOGRAD, LIBRARY_ATTENTION, LIBRARY_SOFTMAX

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
SAME_WEIGHTS = "The weights are the same under every seed: does the class set a seed itself?"
RAISES_NOTHING = "The call raises no exception."
_NO_MORE_THAN_HALF = "As long as this fails, the exercise gives no more than half of its points."
_OF_LIBRARIES = {
    LIBRARY_SOFTMAX: "a library's softmax, or a part of one such as logsumexp",
    LIBRARY_ATTENTION: "a library's attention",
    AUTOGRAD: "autograd, as `.backward()`, torch.autograd and torch.func do",
}
_OF_DEVICES = {
    MIXED: "The code mixes devices: a tensor that it makes stays on the CPU when the inputs are on another device. "
    "Make the tensor on the inputs' device (`device=`), or move it there (`.to`).",
    ELSEWHERE: "The result is not on the inputs' device.",
    DIFFERS: "On another device the result differs from that on the CPU.",
}


def with_article(name: str) -> str:
    """Return a name with its indefinite article: `a list`, `an int`."""
    return f"{'an' if name[:1].lower() in tuple('aeio') else 'a'} {name}"


class Part(NamedTuple):
    """A tensor of a call: an argument or a parameter."""

    words: str
    key: str = ""
    """An argument's number or a parameter's name, which the search for the line that loses its gradient needs."""

    def __str__(self) -> str:
        return self.words


def argument(number: int) -> Part:
    """Return the Part for the argument at this position."""
    return Part(f"the {ORDINALS[number]} argument", str(number))


def parameter(name: str) -> Part:
    """Return the Part for the parameter of this name."""
    return Part(f"`{name}`", name)


INPUT = Part("the input", "0")


def detached(where: Part) -> str:
    """Message for a gradient that is None."""
    return f"No gradient arrives at {where}: is it unused, or does the code detach a tensor on the way to the result?"


def no_parameter(name: str) -> str:
    """Message for an instance without a parameter of this name."""
    return f"The module has no parameter `{name}`."


def of_another_shape(found: str, shape: Sequence[int]) -> str:
    """Message for a result that is not a tensor of the expected shape. found: its type and shape in words."""
    return f"The result is {found}; a tensor of shape {tuple(shape)} is expected."


RESULT_NOT_FINITE = "The result has NaN or infinite values."


def not_finite(where: Part) -> str:
    """Message for a gradient with NaN or infinity, if the result has neither."""
    return f"The gradient of {where} has NaN or infinite values; the result has none."


def writes_into(arguments: Sequence[int]) -> str:
    """Message for a call that wrote into its arguments. arguments: their positions."""
    which = " and ".join(f"the {ORDINALS[number]}" for number in arguments)
    return (
        f"The code writes into {which} argument. Operations ending in `_`, `+=`, `/=` and `x[i] = ...` work in place."
    )


def changed_by_the_future(token: int) -> str:
    """Message for a result that depends on later tokens."""
    return f"The result of token {token} changes when only later tokens do: it depends on the future."


def calls_forbidden(libraries: Sequence[str]) -> str:
    """Message for calls of library functions that an exercise forbids."""
    named = " and ".join(_OF_LIBRARIES.get(one, one) for one in libraries)
    return f"The code calls {named}; in this exercise, write that step yourself."


def uses_wrong(exercises: Sequence[str]) -> str:
    """Message for an answer that uses other answers that are wrong; it begins with `report.USES_WRONG`."""
    named = " and ".join(f"`{name}`" for name in exercises)
    return f"It uses your {named}, which is not right yet: fix that first, because it may cause the error here."


def halves_the_points(complaint: str) -> str:
    """Return a message with the note that this failure halves the exercise's points."""
    return f"{complaint}{'' if complaint.endswith(('.', '?', '!')) else '.'} {_NO_MORE_THAN_HALF}"


def device_message(verdict: str) -> str | None:
    """Return the message for a verdict of `device_probe`; None if nothing is wrong."""
    return _OF_DEVICES.get(verdict.removesuffix(BY_NUMBERS))


def other_parameters(found: Mapping[str, Sequence[int]]) -> str:
    """Message with the names and shapes of an instance's parameters, if others are expected."""
    return f"Found: {', '.join(f'{name} {tuple(shape)}' for name, shape in found.items()) or 'none'}."


_PRODUCT = (
    "In a matrix product, the last dimension of the left factor and the last but one of the right factor (the only one "
    "of a vector) must be equal: here they are {} and {}. Should you transpose a factor, or exchange the factors?"
)
_NUMBER_BY_NUMBER = (
    "In operations element by element, and in the leading dimensions of a product, sizes must be equal, or 1: "
    "here they "
    "are {} and {}. Is a tensor transposed, or larger than the part that is needed here?"
)
_DTYPES = (
    "The operation combines tensors of two dtypes: does the code make a tensor here without the dtype of the inputs?"
)
_LEAF = (
    "Do not change an argument in place; make a new tensor: `x = x + ...`, not `x += ...`. To change a parameter, use "
    "`with torch.no_grad():`, where no gradients are recorded."
)
_MEANT = (
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _PRODUCT),
    (r"mat \(\d+x(\d+)\), vec \((\d+)\)", _PRODUCT),
    (r"batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]", _PRODUCT),
    (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _NUMBER_BY_NUMBER),
    (r"to have the same dtype, but got|must have the same dtype, but got|expected scalar type", _DTYPES),
    (r"a leaf Variable that requires grad is being used in an in-place operation", _LEAF),
)


def explain_error(message: str) -> str:
    """Return an explanation of PyTorch's error message; empty if it is not one of the usual ones."""
    for pattern, sentence in _MEANT:
        found = re.search(pattern, message)
        if found and len(set(found.groups())) == len(found.groups()):
            return sentence.format(*found.groups())
    return ""
