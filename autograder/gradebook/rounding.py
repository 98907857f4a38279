"""How points and figures are rounded wherever a person or another program reads them: a half goes up."""

from decimal import ROUND_HALF_UP, Decimal

_NOISE = 9
"""In decimal places: what binary fractions add to a sum, and where a half is to be seen."""


def rounded(number: float, places: int) -> float:
    """The number with so many decimal places: with two, 1.005 is 1.01 and 29.740000000000002 is 29.74; never -0."""
    return float(Decimal(repr(round(number, _NOISE))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)) + 0.0
