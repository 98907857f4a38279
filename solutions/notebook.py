"""Imports and names that each answer cell of the notebooks can use; known answers may use them too."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .six_words import SIX_WORDS as X

__all__ = ["Callable", "F", "X", "math", "nn", "torch"]
