"""The values printed in the source documents, asserted against the solutions. See CURRICULUM's rows for unit 2."""

import pytest
import torch

from solutions import self_attention as solutions

X = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)


@pytest.fixture
def projections():
    torch.manual_seed(123)
    W_query, W_key, W_value = (torch.rand(3, 2) for _ in range(3))
    return X @ W_query, X @ W_key, X @ W_value


def printed(tensor):
    """As a source document prints it: four decimals."""
    return [round(number, 4) for number in tensor.flatten().tolist()]


def test_attention_scores(projections):
    queries, keys, _ = projections
    scores = solutions.attention_scores(queries, keys)
    assert printed(scores[0]) == [0.9231, 1.3545, 1.3241, 0.7910, 0.4032, 1.1330]


def test_scaled_softmax(projections):
    queries, keys, _ = projections
    weights = solutions.scaled_softmax(queries @ keys.T, 2)
    assert printed(weights[1]) == [0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]


def test_scaled_softmax_of_keys_of_width_24():
    scores = torch.tensor([8.5808, -7.6597, 3.2558, 1.0395, 11.1466, -0.4800])
    assert printed(solutions.scaled_softmax(scores, 24)) == [0.2912, 0.0106, 0.0982, 0.0625, 0.4917, 0.0458]


def test_self_attention_v1():
    torch.manual_seed(123)
    context = solutions.SelfAttention_v1(3, 2)(X)
    assert printed(context) == [
        *(0.2996, 0.8053, 0.3061, 0.8210, 0.3058, 0.8203),
        *(0.2948, 0.7939, 0.2927, 0.7891, 0.2990, 0.8040),
    ]
