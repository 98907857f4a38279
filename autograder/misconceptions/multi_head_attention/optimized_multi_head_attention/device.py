"""Mistakes of the kind "device"."""

from ....catalogue import misconception
from ..multi_head_attention.device import MaskIsNoBuffer
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="device", caught_by="test_follows_device")
class OptimizedMaskIsNoBuffer(MaskIsNoBuffer, RightOptimized):
    pass
