"""What PyTorch's commonest errors mean, in a sentence: which sizes met, and what to think of.

Needs nothing but what the check imports, of which it becomes a part.
"""

import re

_PRODUCT = (
    "A matrix product joins the last dimension of the left with the last but one of the right (of a vector, the only "
    "one), which have to be equal: here {} meets {}. Is one of them to be turned, or should they change places?"
)
_NUMBER_BY_NUMBER = (
    "Where tensors meet number by number, and in the leading dimensions of a product, sizes have to be equal, or 1: "
    "here {} meets {}. Is one of them turned the wrong way, or larger than the part that is needed here?"
)
_DTYPES = "Tensors of two dtypes meet: is one made here that should have the dtype of the inputs?"
_LEAF = (
    "Of an argument make a new tensor: `x = x + ...` in place of `x += ...`. A parameter can be changed where no "
    "gradients are recorded: under `with torch.no_grad():`."
)
_MEANT = (
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _PRODUCT),
    (r"mat \(\d+x(\d+)\), vec \((\d+)\)", _PRODUCT),
    (r"batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]", _PRODUCT),
    (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _NUMBER_BY_NUMBER),
    (r"to have the same dtype, but got|must have the same dtype, but got|expected scalar type", _DTYPES),
    (r"a leaf Variable that requires grad is being used in an in-place operation", _LEAF),
)


def meant(message: str) -> str:
    """What an error's text means; empty for any other."""
    for pattern, sentence in _MEANT:
        found = re.search(pattern, message)
        if found and len(set(found.groups())) == len(found.groups()):
            return sentence.format(*found.groups())
    return ""
