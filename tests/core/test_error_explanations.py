"""Explanations of the errors that this version of PyTorch raises, with the sizes in them."""

import pytest
import torch
from torch import nn

from autograder.core.complaints import explain_error

X = torch.ones
PRODUCTS = {
    "vector and matrix": (lambda: X(3) @ X(6, 3), "3 and 6"),
    "matrix and vector": (lambda: X(6, 3) @ X(6), "3 and 6"),
    "matrices": (lambda: X(4, 3) @ X(2, 3), "3 and 2"),
    "a batch": (lambda: X(2, 4, 3) @ X(2, 5, 3), "3 and 5"),
    "heads": (lambda: X(2, 8, 4, 3) @ X(2, 8, 5, 3), "3 and 5"),
    "a layer": (lambda: nn.Linear(3, 4)(X(2, 5)), "5 and 3"),
}
NUMBER_BY_NUMBER = {
    "a sum": (lambda: X(3, 4) + X(4, 3), "4 and 3"),
    "a mask": (lambda: X(2, 4, 4).masked_fill(X(6, 6).bool(), 1.0), "6 and 4"),
    "a batch of another size": (lambda: X(3, 2, 4, 3) @ X(2, 2, 3, 4), "3 and 2"),
}
OTHERS = {
    "dtypes": (lambda: X(6, 3) @ X(3, 2).double(), "combines tensors of two dtypes"),
    "dtypes in a layer": (lambda: nn.Linear(3, 2)(X(6, 3).double()), "combines tensors of two dtypes"),
    "a parameter": (lambda: nn.Parameter(X(3)).copy_(X(3)), "use `with torch.no_grad():`"),
    "something else": (lambda: X(6, 3).view(4, 4), ""),
}


def said_of(wrong):
    with pytest.raises(RuntimeError) as raised:
        wrong()
    return explain_error(str(raised.value))


@pytest.mark.parametrize(("wrong", "met"), PRODUCTS.values(), ids=PRODUCTS)
def test_of_a_product(wrong, met):
    assert "In a matrix product, the last dimension" in said_of(wrong)
    assert f"here they are {met}." in said_of(wrong)


@pytest.mark.parametrize(("wrong", "met"), NUMBER_BY_NUMBER.values(), ids=NUMBER_BY_NUMBER)
def test_of_what_meets_number_by_number(wrong, met):
    assert "In operations element by element" in said_of(wrong)
    assert f"here they are {met}." in said_of(wrong)


@pytest.mark.parametrize(("wrong", "says"), OTHERS.values(), ids=OTHERS)
def test_of_the_rest(wrong, says):
    said = said_of(wrong)
    assert (said and says in said) or said == says
