"""Mistakes of the kind "dropout"."""

from ....catalogue import misconception
from ..multi_head_attention.dropout import (
    DropoutAlwaysOn,
    DropoutIgnored,
    DropoutKeepsP,
    DropoutNotRescaled,
    DropoutOfAHalf,
    DropoutOnNumbers,
    DropoutOnTheResultToo,
    DropoutOnTheScores,
    DropoutOnTheValues,
    DropoutRenormalised,
    DropoutSharedByHeads,
    DropoutSharedByTheBatch,
    DroppedTwice,
    SeedSetInForward,
)
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutIgnored(DropoutIgnored, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class EfficientDropoutAlwaysOn(DropoutAlwaysOn, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutNotRescaled(DropoutNotRescaled, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDroppedTwice(DroppedTwice, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutKeepsP(DropoutKeepsP, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheScores(DropoutOnTheScores, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnNumbers(DropoutOnNumbers, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_each_call_drops_anew")
class EfficientSeedSetInForward(SeedSetInForward, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheValues(DropoutOnTheValues, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheResultToo(DropoutOnTheResultToo, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutSharedByTheBatch(DropoutSharedByTheBatch, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOfAHalf(DropoutOfAHalf, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutRenormalised(DropoutRenormalised, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutSharedByHeads(DropoutSharedByHeads, RightEfficient):
    pass
