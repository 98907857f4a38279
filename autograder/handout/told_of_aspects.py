"""What a student reads of the line that loses what is asked beside right values."""

from collections.abc import Sequence

from ..compare.values import ORDINALS
from ..core.lost_aspects import (
    BY_CAST,
    CUT_BY_DATA,
    CUT_BY_DETACH,
    CUT_BY_NO_GRAD,
    CUT_BY_NUMBERS,
    OF_DEVICE,
    OF_DTYPE,
    OF_GRADIENT,
    OF_NOTHING,
    OF_OTHERS,
    OF_WRITING,
    Lost,
)
from ..tracing.case import TellingCase
from ..tracing.told import call_in_words, quoted

_ENDS = {
    CUT_BY_DETACH: "what `.detach()` gives carries no gradient.",
    CUT_BY_DATA: "what `.data` gives carries no gradient.",
    CUT_BY_NO_GRAD: "what is computed without gradients carries none.",
    CUT_BY_NUMBERS: "plain numbers carry no gradient, and nothing that is made of them does.",
    OF_OTHERS: "what is made there carries no gradient.",
}
HOW = {*_ENDS, BY_CAST, OF_NOTHING}
"""In which ways a line may lose something."""


def told_of_aspect(aspect: str, details: Sequence[str], lost: Lost, case: TellingCase, line: str) -> str:
    """Lines of plain text. line: the text of the line."""
    said = [f"Where it goes wrong, tried on {call_in_words(case)}", f"line {lost.line}: {_does(aspect, details)}"]
    return "\n".join([*said, f"  line {lost.line}: {quoted(line)}", _meaning(aspect, details, lost.how)])


def _does(aspect: str, details: Sequence[str]) -> str:
    if aspect == OF_WRITING:
        return f"writes into {_argument(details[0])}"
    if aspect == OF_DTYPE:
        return f"makes numbers in torch.{details[0]}, of which the result is made"
    if aspect == OF_GRADIENT:
        return f"ends the way of the gradient to {_argument(details[0])}"
    return "makes a tensor that stays on the CPU when the inputs are elsewhere"


def _meaning(aspect: str, details: Sequence[str], how: str) -> str:
    if aspect == OF_WRITING:
        return "Whoever calls it has that tensor too. Make a new one of it, or write into a copy (`.clone()`)."
    if aspect == OF_GRADIENT:
        return f"A gradient goes back the way that the numbers came: {_ENDS[how]}"
    if aspect == OF_DTYPE:
        return _of_dtype(details[0], details[1], how)
    assert aspect == OF_DEVICE
    if how == OF_NOTHING:
        return "What is made of nothing is on the CPU, unless `device=` says where: that of the inputs is wanted."
    return "What follows should be where the inputs are."


def _of_dtype(found: str, wanted: str, how: str) -> str:
    made = "A new tensor has the dtype that it is made with (`dtype=`). " if how == OF_NOTHING else ""
    end = " It may be so on the way, if it is brought back at the end." if found == "float64" else ""
    return f"{made}The result should be torch.{wanted}.{end}"


def _argument(where: str) -> str:
    return f"the {ORDINALS[int(where)]} argument" if where.isdigit() else f"`{where}`"
