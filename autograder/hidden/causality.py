"""Statements about what may see what: no token knows of those that come after it."""

from typing import Any

import torch

from autograder.core import complaints
from autograder.core.comparison import Expected, Mismatch, assert_close, assert_real, describe
from autograder.graders.proxy import CallableProxy


def assert_causal_weights(actual: Any, expected: Expected, *, tolerance: float | None = None) -> None:
    """Assert that weights of shape (..., T, T) are as expected, first that no query attends to a later token."""
    if isinstance(actual, torch.Tensor) and actual.shape == expected.value.shape and not actual.is_complex():
        ahead = torch.triu(actual.detach().double(), diagonal=1).abs() > expected.tolerance
        if bool(ahead.any()):
            *_, query, key = ahead.nonzero()[0].tolist()
            raise Mismatch(f"Query {query} gives weight to key {key}, which comes after it: it attends to the future.")
    assert_close(actual, expected, tolerance=tolerance)


def assert_blind_to_the_future(student: CallableProxy, *args: torch.Tensor, width: int) -> None:
    """A token's result stays the same whatever comes after it. args: (b, T, any width) each; width: the result's."""
    *leading, num_tokens, _ = args[0].shape
    shape = (*leading, num_tokens, width)
    now = num_tokens // 2
    later = [torch.cat([arg[:, :now], -2 * arg[:, now:]], dim=-2) for arg in args]
    one, again, other = student(*args), student(*args), student(*later)
    for value in (one, again, other):
        if not isinstance(value, torch.Tensor):
            raise Mismatch(f"The result is {describe(value)}, not a tensor.")
        if value.shape != shape:  # of what is empty, every token would stay the same
            raise Mismatch(f"The result has shape {tuple(value.shape)}; {shape} is expected.")
        assert_real(value)
    if not torch.allclose(one.double(), again.double(), rtol=1e-5, atol=1e-5, equal_nan=True):
        raise Mismatch("Two calls with the same input differ: is something drawn by chance in it?")
    same = torch.isclose(one[:, :now].double(), other[:, :now].double(), rtol=1e-5, atol=1e-5, equal_nan=True)
    if not bool(same.all()):
        token = int((~same).nonzero()[0, 1])
        raise Mismatch(complaints.changed_by_the_future(token))
