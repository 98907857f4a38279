"""Time the scores of one query with 4,096 latents. Making the keys takes at least 40 times as long as the reference."""

from functools import partial
from statistics import median
from typing import Any

import torch

from autograder.core.comparison import assert_close
from autograder.graders import statements
from autograder.graders.proxy import Cases, Reference, StudentProxy
from solutions import modern_attention

HEADS, TOKENS, WIDTH, LATENT = 16, 4096, 128, 64
"""So narrow latents that a copy of them for each head, 16 MB, is no new memory in later steps."""
STEPS = 9
MOST = 28.0
"""Times what the reference takes: 6 right answers took 3 to 20, those that make the keys 40 to 79."""

_CASES: list[tuple[tuple[torch.Tensor, ...], Any]] = []
"""The arguments of each step and the right scores, which are the same for every student."""


def assert_step_is_cheap(student: StudentProxy, reference: Reference, rng: Cases) -> None:
    """Raise Mismatch if the scores are wrong, or if they take far longer than right ones in two measurements."""
    if not _CASES:
        _CASES.extend(_case(reference, rng) for _ in range(STEPS))
    statements.assert_takes_at_most(
        MOST,
        lambda: _times_of_reference(student),
        f"With one query and {TOKENS:,} tokens your code takes {{:.0f}} times as much CPU time as code that makes no "
        "keys.",
    )


def _case(reference: Reference, rng: Cases) -> tuple[tuple[torch.Tensor, ...], Any]:
    """Small numbers, so that float32 is exact enough."""
    args = (
        rng.randn(1, HEADS, 1, WIDTH, scale=0.3),
        rng.randn(1, TOKENS, LATENT, scale=0.3),
        rng.randn(HEADS, WIDTH, LATENT, scale=0.1),
    )
    return args, reference.absorbed_scores(*args)


def _times_of_reference(student: StudentProxy) -> float:
    """Return the median CPU time of the steps, as a multiple of the reference's. Raises Mismatch."""
    took = []
    for args, right in _CASES:
        seen = student.absorbed_scores.timed(*args)
        assert_close(seen.value, right)
        took.append(seen.cpu_seconds)
    times: float = median(took) / _reference_seconds()
    return times


def _reference_seconds() -> float:
    """The median CPU time of the reference, now and in this process."""
    with torch.no_grad():
        return median(statements.cpu_seconds(partial(modern_attention.absorbed_scores, *args)) for args, _ in _CASES)
