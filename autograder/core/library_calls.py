"""Record of the library functions that ran, regardless of the name and the way by which code called them.

`observed_calls` makes library functions note that they run. Calls of other functions cost nothing.
"""

import re
from functools import cache

LIBRARY_SOFTMAX = "library softmax"
LIBRARY_ATTENTION = "library attention"

_PATTERNS = {
    LIBRARY_SOFTMAX: re.compile(r"\w*(soft(max|min)|log(cum)?sumexp)\w*", re.I),
    LIBRARY_ATTENTION: re.compile(
        r"\w*(attention|attn|sdpa_dense|_sfdp_pattern)\w*|_transformer_encoder_layer_fwd", re.I
    ),
}
_CLASSES = {
    LIBRARY_SOFTMAX: re.compile(r"soft(max|min)|stickbreaking", re.I),
    LIBRARY_ATTENTION: re.compile(r"attention|attn", re.I),
}
LIBRARIES = _PATTERNS.keys()
"""What an exercise may forbid."""
_NOT_ATTENTION = re.compile(r"(register|activate|restore|list|current)_\w*")
"""These choose a kernel, and run none."""

_seen: set[str] = set()


@cache
def library_of(name: str) -> str | None:
    """The library that an operator or a function of this name belongs to, if it is one of those that are noted."""
    if _NOT_ATTENTION.fullmatch(name):
        return None
    return next((library for library, pattern in _PATTERNS.items() if pattern.fullmatch(name)), None)


def library_of_class(name: str) -> str | None:
    """The library that a class of this name computes what belongs to, as a `SoftmaxTransform` and its kin do."""
    return next((library for library, pattern in _CLASSES.items() if pattern.search(name)), None)


def note(library: str) -> None:
    """One of the library's functions begins to run."""
    _seen.add(library)


def taken() -> list[str]:
    """The libraries that ran since this was last asked."""
    found = sorted(_seen)
    _seen.clear()
    return found
