"""Mistakes of the kind "dtype"."""

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class ScoresInFloat32(RightHeads):
    """The weights are computed in float32 whatever the input is, so float64 loses digits; leave the dtype alone."""

    def weigh(self, scores):
        return super().weigh(scores.float()).to(scores.dtype)


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_context_vectors")
class HalfPrecisionInside(RightHeads):
    """The weights are computed in half precision, which has three digits; leave the dtype alone."""

    def weigh(self, scores):
        return super().weigh(scores.half()).to(scores.dtype)


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_dtype_is_kept")
class ResultInFloat64(RightHeads):
    """The result is float64 whatever the input is; keep the input's dtype."""

    def forward(self, x):
        return super().forward(x).double()


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class FailsInFloat64(RightHeads):
    """Something is float32 whatever the input is (`.float()`, zeros without dtype), which float64 numbers cannot meet;
    keep x's dtype."""

    def forward(self, x):
        return super().forward(x.float())


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class ResultInFloat32(RightHeads):
    """The result is float32 whatever the input is, so float64 loses digits; keep the input's dtype."""

    def forward(self, x):
        return super().forward(x).float()
