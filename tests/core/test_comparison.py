"""Messages for a wrong result that no misconception explains."""

import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch

from autograder.core.comparison import Expected, Mismatch, OddForm, assert_close, assert_equal, only
from autograder.core.judgement import assert_dtype, assert_gradients
from autograder.core.observation import Observation

SCORES = torch.tensor([[1.0, 2.0, 0.5], [0.1, 0.4, 3.0], [2.0, 2.0, 2.0]])
WEIGHTS = SCORES.softmax(-1)
HIDDEN = torch.ones(3, 3, dtype=torch.bool).triu(1)
MASKED = SCORES.masked_fill(HIDDEN, -torch.inf)

SEEN = {
    "rows are not weights": (
        WEIGHTS * torch.tensor([[1.0], [1.0], [0.5]]),
        WEIGHTS,
        "Row [2] sums to 0.5 instead of 1",
    ),
    "one row": (WEIGHTS[0] * 2, WEIGHTS[0], "It sums to 2 instead of 1."),
    "over the queries": (SCORES.softmax(-2), WEIGHTS, "Its columns sum to 1; its rows should."),
    "in a batch": (WEIGHTS.repeat(2, 1, 1) * 0.9, WEIGHTS.repeat(2, 1, 1), "Row [0, 0] sums to 0.9 instead of 1."),
    "weights, but others": (WEIGHTS.flip(-1), WEIGHTS, "by up to 0.84 at [1, 0]."),
    "a score left": (SCORES, MASKED, "is finite in 3 of 9 places where it should be infinite, first at [0, 1]."),
    "NaN where infinite": (MASKED - MASKED, MASKED, "has NaN in 3 of 9 places, first at [0, 1]."),
    "NaN": (SCORES / 0 * 0, SCORES, "has NaN in 9 of 9 places, first at [0, 0]."),
    "scores": (SCORES + 1, SCORES, "differs in 9 of 9 places, by up to 1 at"),
}


@pytest.mark.parametrize(("actual", "expected", "words"), SEEN.values(), ids=SEEN)
def test_difference_in_words(actual, expected, words):
    with pytest.raises(Mismatch) as mismatch:
        assert_close(actual, Expected(expected, 1e-5))
    assert words in str(mismatch.value)
    if "sum" not in words:
        assert "sum" not in str(mismatch.value)


def test_to_say_where_a_result_differs_imports_nothing_more():
    """sympy takes half a second, and PyTorch imports it for small things."""
    code = """
import sys, torch
from autograder.core.comparison import Expected, Mismatch, assert_close
before = set(sys.modules)
try:
    assert_close(torch.eye(3), Expected(torch.zeros(3, 3), 1e-5))
except Mismatch as found:
    print(found)
print({name.partition(".")[0] for name in set(sys.modules) - before})"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] in ("set()", "{'torch'}"), done.stdout


CANCELLED = torch.tensor([50.0, -50.0, 0.01], dtype=torch.float64)


@pytest.mark.parametrize(
    ("expected", "error", "is_right"),
    [
        (CANCELLED, 4e-4, True),
        (CANCELLED, 6e-4, False),
        (CANCELLED / 50, 4e-5, False),
        (torch.tensor([-1e38, 0.5, 0.01], dtype=torch.float64), 2e-5, False),
        (torch.tensor([-torch.inf, torch.nan, 0.01], dtype=torch.float64), 2e-5, False),
        (torch.tensor([-torch.inf, torch.nan, 0.01], dtype=torch.float64), 0.5e-5, True),
    ],
)
def test_an_element_may_be_off_by_the_rounding_error_of_the_largest_one(expected, error, is_right):
    actual = expected.clone()
    actual[2] += error
    with nullcontext() if is_right else pytest.raises(Mismatch):
        assert_close(actual, Expected(expected, 1e-5))


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.inf, 1.0),
        (1.0, torch.inf),
        (-torch.inf, torch.inf),
        (torch.nan, 1.0),
        (1.0, torch.nan),
        (torch.nan, torch.inf),
    ],
)
def test_infinity_and_nan_are_close_only_to_themselves(actual, expected):
    one, other = (torch.tensor([number, 2.0], dtype=torch.float64) for number in (actual, expected))
    with pytest.raises(Mismatch):
        assert_close(one, Expected(other, 1e-5))
    assert_close(other, Expected(other, 1e-5))


def test_a_gradient_may_be_off_by_the_rounding_error_of_the_call_s_largest_gradient():
    right = {"W.weight": Expected(torch.tensor([[20.0, 3.0]]), 1e-5), "W.bias": Expected(torch.tensor([0.0]), 1e-5)}

    def assert_bias(error):
        gradients = {"W.weight": right["W.weight"].value, "W.bias": torch.tensor([error])}
        seen = Observation(None, gradients=[], parameter_gradients=gradients)
        assert_gradients(seen, [], right)

    assert_bias(1e-4)
    with pytest.raises(Mismatch, match=r"W\.bias"):
        assert_bias(3e-4)


@pytest.mark.parametrize("actual", [{"a": torch.eye(2)[0], "b": torch.eye(2)[1]}, [("a", torch.zeros(0))], object()])
def test_a_plain_value_of_anything_else_is_not_right_in_another_form(actual):
    with pytest.raises(Mismatch) as wrong:
        assert_equal(actual, {"a": 0, "b": 1})
    assert not isinstance(wrong.value, OddForm)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (3.0, 3),
        (torch.tensor(3), 3),
        ([("a", 0)], {"a": 0}),
        ((1, 2), [1, 2]),
        ({"a": 0.0}, {"a": 0}),
        ({"a": torch.tensor(0)}, {"a": 0}),
        ([torch.tensor(1), 2], [1, 2]),
    ],
)
def test_a_plain_value_can_be_right_in_another_form(actual, expected):
    with pytest.raises(OddForm):
        assert_equal(actual, expected)


RIGHT = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "actual", [RIGHT.tolist(), [RIGHT[0], RIGHT[1]], (RIGHT, RIGHT + 1), {"weights": RIGHT + 1, "context": RIGHT}]
)
def test_a_tensor_can_be_right_in_another_form(actual):
    with pytest.raises(OddForm):
        assert_close(actual, Expected(RIGHT, 1e-5))


@pytest.mark.parametrize("actual", [RIGHT.T, [RIGHT + 1] * 3 + [RIGHT], [[1, 2], [3]], 10**400, ["a"], None])
def test_a_wrong_tensor_is_not_right_in_another_form(actual):
    with pytest.raises(Mismatch) as wrong:
        assert_close(actual, Expected(RIGHT, 1e-5))
    assert not isinstance(wrong.value, OddForm)


NUMBER_AND_TENSOR = 2, Expected(RIGHT, 1e-5)


def test_a_tuple_can_hold_an_int():
    assert_close((2, RIGHT), NUMBER_AND_TENSOR)


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        ((1, RIGHT), "The first result differs by 1."),
        ((2, RIGHT + 1), "The second result differs in 4 of 4 places"),
        (("2", RIGHT), "The first result is a str; an int is expected."),
        ((torch.tensor(1), RIGHT), "The first result is a tensor of shape (); an int is expected."),
        (RIGHT, "; 2 results are expected."),
    ],
)
def test_an_int_in_a_tuple_is_compared(actual, words):
    with pytest.raises(Mismatch) as wrong:
        assert_close(actual, NUMBER_AND_TENSOR)
    assert words in str(wrong.value)
    assert not isinstance(wrong.value, OddForm)


@pytest.mark.parametrize("actual", [(torch.tensor(2), RIGHT), [2.0, RIGHT], (torch.tensor([2]), RIGHT.tolist())])
def test_an_int_in_a_tuple_can_be_right_in_another_form(actual):
    with pytest.raises(OddForm):
        assert_close(actual, NUMBER_AND_TENSOR)


@pytest.mark.parametrize("expected", [2, (2, 3.0), (2, RIGHT)])
def test_what_says_no_tolerance_is_no_expectation(expected):
    with pytest.raises(TypeError, match="has no tolerance for the expected value"):
        assert_close(expected, expected)


def test_an_int_next_to_a_tensor_has_no_dtype():
    assert_dtype((2, RIGHT), torch.float32)
    for value in ((2, RIGHT.double()), (2, 3), (2.0, RIGHT), [2]):
        with pytest.raises(Mismatch):
            assert_dtype(value, torch.float32)


def test_some_of_several_results_are_compared():
    expected = Expected(RIGHT, 1e-5), Expected(RIGHT + 1, 1e-5), Expected(RIGHT + 2, 1e-5)
    for actual in ((RIGHT, RIGHT, None), [None, RIGHT + 1, RIGHT + 2], (RIGHT, RIGHT, RIGHT)):
        right = [actual[0] is RIGHT, actual[1] is not RIGHT, actual[2] is not None and actual[2] is not RIGHT]
        for at in range(3):
            if right[at]:
                assert_close(actual, only(expected, at))
            else:
                with pytest.raises(Mismatch, match=f"The {('first', 'second', 'third')[at]} result "):
                    assert_close(actual, only(expected, at))
    with pytest.raises(Mismatch, match="3 tensors are expected"):
        assert_close(RIGHT, only(expected, 0))
    with pytest.raises(TypeError):
        assert_close(RIGHT, None)
