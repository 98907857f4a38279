"""Attention as the formulas have it: one number after another, sums without rounding, e^x to 30 digits.

Nothing here is fast, and nothing is shared with the solutions: no torch, no matrix product, no shifted softmax.
Vectors are lists or rows of NumPy's arrays; a matrix is a list of its rows.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

import numpy as np

Vector = Sequence[float]
Matrix = Sequence[Vector]


def dot(a: Vector, b: Vector) -> float:
    """Σ a_i b_i"""
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def softmax(scores: Vector) -> list[float]:
    """e^(s_i) / Σ e^(s_j), in numbers that hold e^10000."""
    with localcontext(prec=30, Emax=10**9, Emin=-(10**9)):
        powers = [Decimal(float(score)).exp() if score > -math.inf else Decimal(0) for score in scores]
        total = sum(powers)
        return [float(power / total) for power in powers]


def blend(weights: Vector, vectors: Matrix) -> list[float]:
    """Σ w_j v_j"""
    return [dot(weights, column) for column in zip(*vectors, strict=True)]


def scores(queries: Matrix, keys: Matrix) -> list[list[float]]:
    """q_i · k_j"""
    return [[dot(query, key) for key in keys] for query in queries]


def attention_weights(queries: Matrix, keys: Matrix, *, causal: bool) -> list[list[float]]:
    """softmax over j of q_i · k_j / √d_k, where causal with j ≤ i alone."""
    root = math.sqrt(len(keys[0]))
    return [
        _softmax_of_visible([score / root for score in row], i + 1 if causal else len(row))
        for i, row in enumerate(scores(queries, keys))
    ]


def causal_softmax(scores: Matrix, d_k: int) -> list[list[float]]:
    """softmax over j ≤ i of s_ij / √d_k; 0 where j > i."""
    return [_softmax_of_visible([s / math.sqrt(d_k) for s in row], i + 1) for i, row in enumerate(scores)]


def _softmax_of_visible(row: Vector, visible: int) -> list[float]:
    return softmax(row[:visible]) + [0.0] * (len(row) - visible)


def attention(queries: Matrix, keys: Matrix, values: Matrix, *, causal: bool = False) -> list[list[float]]:
    """softmax(Q Kᵀ / √d_k) V"""
    return [blend(weights, values) for weights in attention_weights(queries, keys, causal=causal)]


def masked_attention(queries: Matrix, keys: Matrix, values: Matrix, mask: Matrix) -> list[list[float]]:
    """Return each query's attention to the keys that its row of the mask leaves; zeros if it leaves no key."""
    found = []
    for query, row in zip(queries, mask, strict=True):
        seen = [j for j, is_hidden in enumerate(row) if not is_hidden]
        if not seen:
            found.append([0.0] * len(values[0]))
            continue
        found += attention([query], [keys[j] for j in seen], [values[j] for j in seen])
    return found


def rotated(x: Matrix, positions: Sequence[int], base: float) -> list[list[float]]:
    """Each pair of neighbours, as a complex number, times e^(i p base^(-2m/d))"""
    rows = []
    for row, position in zip(x, positions, strict=True):
        turned = []
        for m in range(len(row) // 2):
            angle = position * base ** (-2 * m / len(row))
            number = complex(row[2 * m], row[2 * m + 1]) * complex(math.cos(angle), math.sin(angle))
            turned += [number.real, number.imag]
        rows.append(turned)
    return rows


def linear(x: Matrix, weight: Matrix, bias: Vector | None = None) -> list[list[float]]:
    """y_i = W x_i + b, W as nn.Linear stores it."""
    return [
        [dot(row, token) + (0.0 if bias is None else float(bias[n])) for n, row in enumerate(weight)] for token in x
    ]


def heads(x: Matrix, num_heads: int) -> list[list[list[float]]]:
    """Head n has the n-th piece of every token."""
    width = len(x[0]) // num_heads
    return [[list(token[n * width : (n + 1) * width]) for token in x] for n in range(num_heads)]


def side_by_side(pieces: Sequence[Matrix]) -> list[list[float]]:
    """Every token's pieces of all heads in one row."""
    return [[number for head in pieces for number in head[token]] for token in range(len(pieces[0]))]


def multi_head_attention(queries: Matrix, keys: Matrix, values: Matrix, num_heads: int) -> list[list[float]]:
    """Causal attention of each head over its pieces, side by side."""
    return side_by_side(
        [
            attention(q, k, v, causal=True)
            for q, k, v in zip(heads(queries, num_heads), heads(keys, num_heads), heads(values, num_heads), strict=True)
        ]
    )


def variance(numbers: Vector) -> float:
    """Σ (x - mean)² / (n - 1)"""
    mean = math.fsum(numbers) / len(numbers)
    return math.fsum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)


def vocabulary(sentence: str) -> dict[str, int]:
    """Each word's number is how many distinct words come before it."""
    distinct = set(words(sentence))
    return {word: sum(other < word for other in distinct) for word in distinct}


def words(sentence: str) -> list[str]:
    """Return the words of a text, each letter by itself, without commas."""
    found = [""]
    for letter in sentence:
        if letter.isspace():
            found.append("")
        elif letter != ",":
            found[-1] += letter
    return [word for word in found if word]


def for_each(formula: Callable[..., object], *arrays: np.ndarray) -> np.ndarray:
    """The formula for each matrix of stacks of them, which share their leading dimensions."""
    leading = arrays[0].shape[:-2]
    results = [formula(*(array[place] for array in arrays)) for place in np.ndindex(leading)]
    flat = np.array(results, dtype=np.float64)
    return flat.reshape(leading + flat.shape[1:])
