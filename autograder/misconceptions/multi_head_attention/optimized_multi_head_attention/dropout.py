"""Mistakes of the kind "dropout"."""

from ....catalogue import misconception
from ..multi_head_attention.dropout import (
    DropoutAlwaysOn,
    DropoutIgnored,
    DropoutKeepsP,
    DropoutNotRescaled,
    DropoutOfAHalf,
    DropoutOnNumbers,
    DropoutOnTheMaskedScores,
    DropoutOnTheResultToo,
    DropoutOnTheScores,
    DropoutOnTheValues,
    DropoutRenormalised,
    DropoutSharedByHeads,
    DropoutSharedByTheBatch,
    DroppedTwice,
    SeedSetInForward,
)
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutIgnored(DropoutIgnored, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class OptimizedDropoutAlwaysOn(DropoutAlwaysOn, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutNotRescaled(DropoutNotRescaled, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDroppedTwice(DroppedTwice, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutKeepsP(DropoutKeepsP, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheScores(DropoutOnTheScores, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnNumbers(DropoutOnNumbers, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_each_call_drops_anew")
class OptimizedSeedSetInForward(SeedSetInForward, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheMaskedScores(DropoutOnTheMaskedScores, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheValues(DropoutOnTheValues, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheResultToo(DropoutOnTheResultToo, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutSharedByTheBatch(DropoutSharedByTheBatch, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOfAHalf(DropoutOfAHalf, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutRenormalised(DropoutRenormalised, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutSharedByHeads(DropoutSharedByHeads, RightOptimized):
    pass
