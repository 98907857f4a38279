"""Time a step with many tokens in the cache. Projecting them again takes at least 25 times as long as the reference."""

from functools import partial
from statistics import median
from typing import Any

import torch

from autograder.core.comparison import assert_close
from autograder.graders import statements
from autograder.graders.proxy import Cases, InstanceProxy, Reference, StudentProxy
from solutions import inference

D_IN, D_OUT, HEADS = 8192, 32, 2
"""So wide an input that projecting tokens costs far more than whatever else an answer may do for all pairs of them."""
TEXTS, TOKENS, STEPS = 4, 768, 8
"""Several texts in a batch, so that computing on all pairs of tokens is cheap compared with the projections."""
NARROW = 32
"""The width of what is drawn: all D_IN elements of a token are made of it, each in another way."""
MOST = 11.0
"""Times what the reference takes: 12 right answers took 1.7 to 5.1, those that project all tokens again 25 to 61."""
WIDE = f"torch.sin(x.repeat(1, 1, {D_IN // NARROW}) * torch.linspace(0.5, 1.5, {D_IN}, dtype=x.dtype))"
FILL = f"attention({WIDE}, cache)[:, -3:]"
STEP = f"attention({WIDE}, cache)"


class LongText:
    """Right results for a long text and the steps after it, and the time that a right step takes."""

    def __init__(self, reference: Reference, rng: Cases) -> None:
        self.text, self.steps = rng.randn(TEXTS, TOKENS // TEXTS, NARROW), list(rng.randn(STEPS, TEXTS, 1, NARROW))
        right = reference.CachedMultiHeadAttention(D_IN, D_OUT, HEADS)
        self.parameters = {name: value.float() for name, value in right.named_parameters().items()}
        cache = reference.plain("KVCache")
        self.expected = [self._call(reference, FILL)(self.text, right, cache)]
        self.expected += [self._call(reference, STEP)(step, right, cache) for step in self.steps]

    @staticmethod
    def _call(face: StudentProxy, computes: str) -> InstanceProxy:
        return face.assemble({}, computes=computes, others=("attention", "cache"))

    def assert_steps_are_cheap(self, student: StudentProxy) -> None:
        """Raise Mismatch if a result is wrong, or if a step takes far longer than a right one in two measurements."""
        statements.assert_takes_at_most(
            MOST,
            lambda: self._times_of_reference(student),
            f"With {TOKENS:,} tokens in the cache, a step takes {{:.0f}} times as much CPU time as one that projects "
            "its own token only.",
        )

    def _times_of_reference(self, student: StudentProxy) -> float:
        """Return the median CPU time of the steps, as a multiple of the reference's. Raises Mismatch."""
        own, cache = student.CachedMultiHeadAttention(D_IN, D_OUT, HEADS), student.plain("KVCache")
        own.load_parameters(self.parameters)
        with student.refusing(statements.NO_ROOM):
            assert_close(self._call(student, FILL)(self.text, own, cache), self.expected[0])
        ask, took = self._call(student, STEP), []
        for step, right in zip(self.steps, self.expected[1:], strict=True):
            seen = ask.timed(step, own, cache)
            assert_close(seen.value, right)
            took.append(seen.cpu_seconds)
        return median(took) / self._reference_seconds()

    def _reference_seconds(self) -> float:
        """The median CPU time of a right step, now and in this process."""
        attention = inference.CachedMultiHeadAttention(D_IN, D_OUT, HEADS)
        before = torch.zeros(TEXTS, HEADS, TOKENS // TEXTS, D_OUT // HEADS)
        took = []
        for step in self.steps:
            cache = inference.KVCache()
            cache.append(before, before)
            with torch.no_grad():
                took.append(statements.cpu_seconds(partial(self._right_step, attention, step, cache)))
        return median(took)

    def _right_step(self, attention: inference.CachedMultiHeadAttention, step: torch.Tensor, cache: Any) -> Any:
        return attention(self._wide(step), cache)

    @staticmethod
    def _wide(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x.repeat(1, 1, D_IN // NARROW) * torch.linspace(0.5, 1.5, D_IN))
