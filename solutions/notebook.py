"""What the notebooks have imported and defined where an answer is written; known answers may use it too."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .six_words import SIX_WORDS as X

__all__ = ["Callable", "F", "X", "math", "nn", "torch"]
