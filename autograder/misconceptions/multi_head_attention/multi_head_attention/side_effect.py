"""Mistakes of the kind "side effect"."""

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputOverwritten(RightHeads):
    """The input's memory is written into (`x[...] =`, `+=`, a method ending in `_`); make new tensors instead."""

    def forward(self, x):
        result = super().forward(x)
        x.data[..., : result.shape[-1]] = result.detach()
        return result


@misconception("MultiHeadAttention", kind="side effect", caught_by="test_shorter_sequences")
class FirstCallRemembered(RightHeads):
    """What one call computed is used again by a later one; a call depends on its own input alone."""

    def attend(self, queries, keys, values):
        kept = self.__dict__.setdefault("kept", {})
        return super().attend(queries, keys, kept.setdefault(values.shape, values))
