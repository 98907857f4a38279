"""What an answer showed to all of its graders, short enough to be kept in a report and read by another process."""

import hashlib
from collections.abc import Hashable

from ..report import Behaviour
from .fingerprint import Fingerprint
from .shown import shown

_MOST_SUMS = 64
_DIGITS = 6


def in_short(fingerprint: Fingerprint) -> Behaviour:
    """The behaviour with this fingerprint. Equal fingerprints are alike in it; nearly all others are not."""
    exact, sums = shown(list(fingerprint))
    digest = hashlib.sha256(_in_order(exact).encode(errors="surrogatepass")).hexdigest()
    return Behaviour(digest[:32], [round(number, _DIGITS) for number in sums[:_MOST_SUMS]])


def _in_order(value: Hashable) -> str:
    """The value as text that is the same in every process, which the order of a set is not."""
    if isinstance(value, tuple):
        return f"({','.join(map(_in_order, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_in_order, value)))}}}"
    return repr(value)
